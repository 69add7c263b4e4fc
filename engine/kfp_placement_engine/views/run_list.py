"""Table of the runs of a cluster, which `list` prints.

To add a column: give `RunView` (in `runs`) an attribute or property with the value, and add an
entry to the columns below. To show it to programs, too, add the attribute's name to the fields of a
run in `kfp_placement.live.documents` and to the schema of runs.
"""

from collections.abc import Iterable
from math import inf

from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.views.document import (
    NAMESPACE,
    Column,
    ColumnOf,
    NumberColumn,
    Table,
    table_of,
)
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
    """Return the table of runs, latest first.

    Args:
        runs: runs in any order.
        wide: whether columns that are seldom needed are shown.
        namespaces: whether there is a column for the namespace.
    """
    columns: list[ColumnOf[RunView]] = [
        # Names that other commands ask for stay whole.
        (NAMESPACE, lambda run: name_text(run.namespace)),
        (Column("RUN"), lambda run: name_text(run.name)),
        (Column("RUN ID", only_wide=True), lambda run: name_text(run.run_id)),
        (Column("RUN NAME", only_wide=True, shrink_to=8), lambda run: name_text(run.run_name)),
        (Column("PHASE"), lambda run: word(run.phase or RequestPhase.WAITING)),
        (NumberColumn("STEPS"), lambda run: word(run.progress) or NONE),
        (NumberColumn("PLANNED", spare=1), lambda run: duration(run.makespan_seconds)),
        (NumberColumn("FIRST PLAN", spare=4), _first_plan),
        (Column("ENDS", optional=True, spare=2), lambda run: run_ends(run, reasons=wide)),
        (
            NumberColumn("ACTUAL", only_wide=True, spare=2),
            lambda run: duration(run.actual_makespan_seconds),
        ),
        (Column("DISPATCH", only_wide=True, spare=6), lambda run: word(run.dispatch) or NONE),
        (NumberColumn("REVISION", only_wide=True, spare=5), lambda run: str(run.revision or NONE)),
        (NumberColumn("SUBMITTED", spare=3), lambda run: ago_text(run.age_seconds)),
        (Column("WAITS FOR", shrink_to=_MIN_WAITS), waiting_summary),
        (Column("NOTES", wrap_from=_MIN_NOTE), notes),
    ]
    latest = sorted(runs, key=lambda run: inf if run.age_seconds is None else run.age_seconds)
    return table_of("Runs", columns, latest, wide=wide, namespaces=namespaces)


def _first_plan(run: RunView) -> str:
    """Return the makespan of the first plan; `same` if it hardly differs from the present one."""
    first = run.first_makespan_seconds
    return "same" if is_alike(run.makespan_seconds, first) else duration(first)


def notes(run: RunView) -> str:
    """Return remarks on a run in one line: its queue, what is wrong, why it failed."""
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
    """Return how the steps of a failed run ended; the cause is in the Workflow, not read here."""
    counts = [(run.count(state), state) for state in (StepState.FAILED, StepState.SKIPPED)]
    steps = ", ".join(f"{counted(number, 'step')} {state}" for number, state in counts if number)
    return f"{steps}: `explain` says why" if steps else "`explain` says why"
