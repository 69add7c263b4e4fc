"""The runs of a cluster in a table: what `list` prints."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from types import MappingProxyType

from kfp_placement.live.formatting import (
    NONE,
    ago_text,
    alarm_text,
    is_alike,
    name_text,
    sentence,
    waiting_summary,
)
from kfp_placement.live.promises import run_ends, without_promise
from kfp_placement.live.queues import QueueView, queue_text
from kfp_placement.live.runs import RunView
from kfp_placement.report import values
from kfp_placement.report.columns import Column, layout
from kfp_placement.report.table import TableStyle
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_state import StepState

_MIN_WAITS = 24
_MIN_NOTE = 24


def runs_table(
    runs: Sequence[RunView],
    now: datetime,
    style: TableStyle,
    queued: Mapping[RunKey, QueueView] = MappingProxyType({}),
    unplanned: Sequence[QueueView] = (),
    *,
    namespaces: bool,
) -> str:
    """The table.

    Args:
        runs: in the order shown.
        now: the time.
        style: how to print.
        queued: runs that wait in queues.
        unplanned: those of them that have no plan.
        namespaces: with a column for the namespace.
    """
    ends = _ends(runs, queued, style)
    columns = [
        # Names that other commands ask for stay whole.
        *([Column("NAMESPACE")] if namespaces else []),
        Column("RUN"),
        *([Column("RUN ID"), Column("RUN NAME", shrink_to=8)] if style.wide else []),
        Column("PHASE"),
        Column("STEPS", right=True),
        Column("PLANNED", right=True, spare=1),
        Column("FIRST PLAN", right=True, spare=4),
        *([Column("ENDS", spare=2)] if ends else []),
        *([Column("ACTUAL", right=True, spare=2)] if style.wide else []),
        *([Column("DISPATCH", spare=6)] if style.wide else []),
        *([Column("REVISION", right=True, spare=5)] if style.wide else []),
        Column("SUBMITTED", right=True, spare=3),
        Column("WAITS FOR", shrink_to=_MIN_WAITS),
        Column("NOTES", wrap_from=_MIN_NOTE),
    ]
    aged = [
        (
            run.age_seconds(now),
            _row(run, now, queued.get(run.key), ends, wide=style.wide, namespaces=namespaces),
        )
        for run in runs
    ]
    aged += [
        (
            _age_seconds(view, now),
            _unplanned_row(view, now, style, ends=bool(ends), namespaces=namespaces),
        )
        for view in unplanned
    ]
    if unplanned:
        aged.sort(key=lambda each: inf if each[0] is None else each[0])
    rows = [row for _, row in aged]
    return "".join(f"{line.rstrip()}\n" for line in layout(columns, rows, style.columns))


def _ends(
    runs: Sequence[RunView], queued: Mapping[RunKey, QueueView], style: TableStyle
) -> Mapping[RunKey, str]:
    """When runs end, where that is promised; of runs that wait in a queue, since their start."""
    shown_runs = (without_promise(run) if run.key in queued else run for run in runs)
    texts = {run.key: run_ends(run, reasons=style.wide) for run in shown_runs}
    return {key: text for key, text in texts.items() if text}


def _row(
    run: RunView,
    now: datetime,
    queue: QueueView | None,
    ends: Mapping[RunKey, str],
    *,
    wide: bool,
    namespaces: bool,
) -> list[str]:
    placement = run.placement
    ids = [name_text(run.run_id), name_text(run.run_name)]
    plan = (
        ["", ""] if placement is None else [placement.spec.dispatch, str(placement.spec.revision)]
    )
    return [
        *([name_text(run.namespace)] if namespaces else []),
        name_text(run.name),
        *(ids if wide else []),
        shown(run.phase, 20),
        shown(run.progress, 20) or NONE,
        values.duration(run.makespan_seconds),
        _first_plan(run),
        *([ends.get(run.key, "")] if ends else []),
        *([values.duration(run.actual_makespan_seconds)] if wide else []),
        *([shown(text, 20) for text in plan] if wide else []),
        ago_text(run.age_seconds(now)),
        waiting_summary(run, now),
        "; ".join(each for each in (queue_text(queue) if queue else "", notes(run)) if each),
    ]


def _unplanned_row(
    view: QueueView, now: datetime, style: TableStyle, *, ends: bool, namespaces: bool
) -> list[str]:
    """A run that waits in a queue and has no plan, such as one without a marked step."""
    return [
        *([name_text(view.key.namespace)] if namespaces else []),
        name_text(view.key.name),
        *([NONE, name_text(view.run_name)] if style.wide else []),
        str(RequestPhase.WAITING),
        *[NONE] * 3,
        *([""] if ends else []),
        *[NONE] * (3 if style.wide else 0),
        ago_text(_age_seconds(view, now)),
        "",
        queue_text(view),
    ]


def _age_seconds(view: QueueView, now: datetime) -> float | None:
    if view.submitted_at is None:
        return None
    return max(0.0, (now - view.submitted_at).total_seconds())


def _first_plan(run: RunView) -> str:
    """The first plan's makespan; two that hardly differ would only be rounded apart."""
    first = run.first_makespan_seconds
    return "same" if is_alike(run.makespan_seconds, first) else values.duration(first)


def notes(run: RunView) -> str:
    """What somebody should know of a run, in a line."""
    remarks = [alarm_text(each) for each in run.alarms]
    if run.failed:
        remarks.append(_failure(run))
    deviating = sum(step.is_deviating for step in run.steps)
    if deviating:
        remarks.append(f"{values.counted(deviating, 'step')} not on the planned node")
    remarks += [sentence(problem) for problem in run.problems[:1]]
    return "; ".join(remarks)


def _failure(run: RunView) -> str:
    """What happened to the steps of a failed run; why is in its Workflow, which is not read."""
    counts = [(run.count(state), state) for state in (StepState.FAILED, StepState.SKIPPED)]
    steps = ", ".join(
        f"{values.counted(number, 'step')} {state}" for number, state in counts if number
    )
    return f"{steps}: `explain` says why" if steps else "`explain` says why"
