"""The runs of a cluster in a table: what `list` shows."""

from collections.abc import Iterable
from math import inf

from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.views.document import Column, NumberColumn, Shown, Table, table_of
from kfp_placement_engine.views.formatting import (
    NONE,
    ago_text,
    counted,
    duration,
    name_text,
    sentence,
    word,
)
from kfp_placement_engine.views.queues import queue_text
from kfp_placement_engine.views.run_texts import alarm_text, is_alike, run_ends, waiting_summary
from kfp_placement_engine.views.runs import RunView

_MIN_WAITS = 24
_MIN_NOTE = 24


def runs_table(runs: Iterable[RunView], *, wide: bool, namespaces: bool) -> Table:
    """The table, latest first.

    Args:
        runs: those that wait in a queue without a plan included.
        wide: with what is seldom asked for.
        namespaces: with a column for the namespace.
    """
    columns: list[Shown[RunView]] = [
        # Names that other commands ask for stay whole.
        (Column("NAMESPACE"), lambda run: name_text(run.namespace)),
        (Column("RUN"), lambda run: name_text(run.name)),
        (Column("RUN ID"), lambda run: name_text(run.run_id)),
        (Column("RUN NAME", shrink_to=8), lambda run: name_text(run.run_name)),
        (Column("PHASE"), lambda run: word(run.phase or RequestPhase.WAITING)),
        (NumberColumn("STEPS"), lambda run: word(run.progress) or NONE),
        (NumberColumn("PLANNED", spare=1), lambda run: duration(run.makespan_seconds)),
        (NumberColumn("FIRST PLAN", spare=4), _first_plan),
        (Column("ENDS", spare=2), lambda run: run_ends(run, reasons=wide)),
        (
            NumberColumn("ACTUAL", spare=2),
            lambda run: duration(run.actual_makespan_seconds),
        ),
        (Column("DISPATCH", spare=6), lambda run: word(run.dispatch) or NONE),
        (NumberColumn("REVISION", spare=5), lambda run: str(run.revision or NONE)),
        (NumberColumn("SUBMITTED", spare=3), lambda run: ago_text(run.age_seconds)),
        (Column("WAITS FOR", shrink_to=_MIN_WAITS), waiting_summary),
        (Column("NOTES", wrap_from=_MIN_NOTE), notes),
    ]
    seldom = {"RUN ID", "RUN NAME", "ACTUAL", "DISPATCH", "REVISION"}
    hidden = (set() if wide else seldom) | (set() if namespaces else {"NAMESPACE"})
    latest = sorted(runs, key=lambda run: inf if run.age_seconds is None else run.age_seconds)
    return table_of("Runs", columns, latest, optional=["ENDS"], hidden=hidden)


def _first_plan(run: RunView) -> str:
    """The first plan's makespan; two that hardly differ would only be rounded apart."""
    first = run.first_makespan_seconds
    return "same" if is_alike(run.makespan_seconds, first) else duration(first)


def notes(run: RunView) -> str:
    """What somebody should know of a run, in a line."""
    deviating = sum(step.is_deviating for step in run.steps)
    return "; ".join(
        filter(
            None,
            (
                queue_text(run.queue) if run.queue is not None else "",
                *map(alarm_text, run.alarms),
                _failure(run) if run.failed else "",
                f"{counted(deviating, 'step')} not on the planned node" if deviating else "",
                *map(sentence, run.problems[:1]),
            ),
        )
    )


def _failure(run: RunView) -> str:
    """What happened to the steps of a failed run; why is in its Workflow, which is not read."""
    counts = [(run.count(state), state) for state in (StepState.FAILED, StepState.SKIPPED)]
    steps = ", ".join(f"{counted(number, 'step')} {state}" for number, state in counts if number)
    return f"{steps}: `explain` says why" if steps else "`explain` says why"
