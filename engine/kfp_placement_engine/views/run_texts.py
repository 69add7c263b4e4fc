"""Texts on a run and its steps; text of strangers is escaped and shortened.

Times of a run are seconds since its submission, or UTC; only what is promised is in the local time
zone, since people compare that with their watch.
"""

from datetime import datetime

from kfp_placement_engine.contract.custom_resources import Condition
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.model.promise import PromiseOutcome, TimeRange
from kfp_placement_engine.model.step_state import StepState, WaitingFor
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.views.forecast_texts import (
    basis_text,
    ends_text,
    latest_end_text,
    range_text,
)
from kfp_placement_engine.views.formatting import (
    NONE,
    age_text,
    counted,
    duration,
    facts,
    name_text,
    sentence,
    shown,
    word,
)
from kfp_placement_engine.views.queues import queue_text
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView

_ON_TIME_SECONDS = 1.0
"""A step that starts or ends so close to its plan is on time: API times are whole seconds."""

_OUTCOMES = {
    PromiseOutcome.EARLY: "ended earlier",
    PromiseOutcome.KEPT: "kept",
    PromiseOutcome.LATE: "ended later",
}


def run_title(run: RunView) -> str:
    """Return the title of a run: `team-a/taxi-x7k2p (taxi, Tuesday)`."""
    title = f"{name_text(run.namespace)}/{name_text(run.name)}"
    return f"{title} ({shown(run.run_name, 80)})" if run.run_name else title


def progress_text(run: RunView) -> str:
    """Return the progress of a run: `3/7 steps ended`, `0/7 steps ended, 7 skipped`."""
    skipped = run.count(StepState.SKIPPED)
    ended, slash, total = run.progress.partition("/")
    if not skipped or not slash or not (ended.isascii() and ended.isdigit()):
        return f"{word(run.progress) or 'no'} steps ended"
    return f"{max(0, int(ended) - skipped)}/{word(total)} steps ended, {skipped} skipped"


def is_alike(seconds: float | None, first_seconds: float | None) -> bool:
    """Return whether two makespans hardly differ; False if one is not known."""
    if seconds is None or first_seconds is None:
        return False
    return abs(seconds - first_seconds) < _ON_TIME_SECONDS


def makespans_text(run: RunView) -> str:
    """Return how long a run takes or took, and was planned to take.

    The time of a failed run is not compared with a plan, nor a time with a plan of which a part had
    already happened.
    """
    actual, first = run.actual_makespan_seconds, run.first_makespan_seconds
    planned = run.makespan_seconds
    if run.failed:
        planned = planned if first is None else first
        took = "" if actual is None else f"took {duration(actual)}"
        was = "" if planned is None else f"was planned to take {duration(planned)}"
        return facts(took, was) or "never planned"
    if actual is not None:
        against = _lateness_text(run) or _against_text(actual, first)
        return facts(f"took {duration(actual)}", against)
    if planned is not None:
        return facts(f"planned to take {duration(planned)}", _against_text(planned, first))
    to_come = (StepState.PENDING, StepState.WAITING)
    unplaced = sum(
        step.state in to_come and step.planned_node is None and step.node is None
        for step in run.steps
    )
    if not unplaced:
        return "no planned end"
    verb = "has" if unplaced == 1 else "have"
    return f"no planned end: {counted(unplaced, 'step')} {verb} no node"


def _lateness_text(run: RunView) -> str:
    """Say when a run was first planned, if a step had started by then; "" = if not, or unknown."""
    if run.revision != 1 or run.submitted_at is None or run.planned_at is None:
        return ""
    seconds = (run.planned_at - run.submitted_at).total_seconds()
    starts = [step.start_seconds for step in run.steps if step.start_seconds is not None]
    is_late = min(starts, default=seconds) < seconds - _ON_TIME_SECONDS
    return f"first planned {duration(seconds)} after its submission" if is_late else ""


def _against_text(seconds: float, first_seconds: float | None) -> str:
    """Compare a makespan with the first plan's: `10s more than first planned`; "" = none."""
    if first_seconds is None:
        return ""
    if is_alike(seconds, first_seconds):
        return "as first planned"
    difference = seconds - first_seconds
    amount = format_duration(round(abs(difference)))
    return f"{amount} {'more' if difference > 0 else 'less'} than first planned"


def waiting_summary(run: RunView) -> str:
    """Return how many steps wait for what, and since when: `2 for quota (5m), 1 for node (10s)`."""
    age_seconds = run.age_seconds or 0.0
    since: dict[str, list[float]] = {}
    for waiting in filter(None, (step.waiting for step in run.steps)):
        since.setdefault(shown(waiting.what, 40), []).append(waiting.since_seconds)
    causes = [str(each) for each in WaitingFor]
    return ", ".join(
        f"{len(since[cause])} for {cause} ({age_text(max(0.0, age_seconds - min(since[cause])))})"
        for cause in sorted(since, key=lambda cause: (cause not in causes, cause))[:8]
    )


def alarm_text(condition: Condition) -> str:
    """Describe a condition that should hold: `not Schedulable (NoMatchingNode): ...`."""
    message = f": {condition.message}" if condition.message else ""
    return sentence(f"not {condition.type} ({condition.reason}){message}")


def run_ends(run: RunView, *, reasons: bool = True) -> str:
    """Format the promised end: `10:26 (10:22-10:31)`, or `unknown (no run seen)`; "" = none.

    For a run that is held back it counts from its start: `9m (8m-12m) after its start`.

    Args:
        run: run to describe.
        reasons: whether to say why nothing is promised.
    """
    if run.promise is None or (run.promise.ends is None and not reasons):
        return ""
    text = ends_text(run.promise, _begin(run))
    return f"{text} after its start" if run.is_after_start else text


def run_ends_sentence(run: RunView) -> str:
    """Describe the promised end: `ends 10:26 (10:22-10:31), by 10:31 (95%), CET`; "" = none."""
    if run.promise is None:
        return ""
    zone = (
        "" if run.is_after_start or run.promise.ends is None else f"{run.seen_at.astimezone():%Z}"
    )
    return facts(f"ends {run_ends(run)}", latest_end_text(run.promise, _begin(run)), zone)


def first_promise_sentence(run: RunView) -> str:
    """Describe the first promise and whether it was kept; "" if it is still the present one."""
    first = run.first_promise
    if first is None or (run.promise is not None and not run.promise.has_moved(first)):
        return ""
    actual, outcome = run.actual_makespan_seconds, ""
    if run.phase == Phase.SUCCEEDED and actual is not None and first.ends is not None:
        outcome = _OUTCOMES[first.ends.outcome(actual)]
    return facts(f"first promised {ends_text(first, run.submitted_at)}", outcome)


def _begin(run: RunView) -> datetime | None:
    """Return the time from which promised seconds count; None if they count from the start."""
    return None if run.is_after_start else run.submitted_at


def step_starts(run: RunView, step: StepView) -> str:
    """Format the promised start of a step: `10:08 (10:05-10:11)`; "" = started, or not known."""
    return _range_text(run, step.starts if step.start_seconds is None else None)


def step_ends(run: RunView, step: StepView) -> str:
    """Format the promised end of a step: `10:12 (10:09-10:15)`; "" = ended, or not known."""
    return _range_text(run, step.ends)


def _range_text(run: RunView, times: TimeRange | None) -> str:
    return "" if times is None else range_text(times, run.submitted_at, run.confidence)


def rests_on(step: StepView) -> str:
    """Return the basis of a step's run time: `9 runs`, `hint`; "" = not known."""
    return basis_text(shown(step.duration_source, 40), step.duration_basis)


def planned_text(step: StepView) -> str:
    """Format planned start and end since the submission: `47s to 20m49s`."""
    if step.planned_start_seconds is None and step.planned_finish_seconds is None:
        return NONE
    start = duration(step.planned_start_seconds)
    return f"{start} to {duration(step.planned_finish_seconds)}"


def actual_text(step: StepView) -> str:
    """Format actual start and end since the submission: `49s to 20m55s`, or `49s to now`."""
    if step.start_seconds is None:
        return NONE
    end = "now" if step.end_seconds is None else duration(step.end_seconds)
    return f"{duration(step.start_seconds)} to {end}"


def drift_text(step: StepView) -> str:
    """Compare a step with its plan: `started 2s late`, `ended 12s early`; "" = not started."""
    for did, actual, planned in (
        ("ended", step.end_seconds, step.planned_finish_seconds),
        ("started", step.start_seconds, step.planned_start_seconds),
    ):
        if actual is not None and planned is not None:
            late = actual - planned
            if abs(late) < _ON_TIME_SECONDS:
                return f"{did} on time"
            return f"{did} {format_duration(round(abs(late)))} {'late' if late > 0 else 'early'}"
    return ""


def state_text(run: RunView) -> str:
    """Describe the state of a run.

    `Succeeded, 3/3 steps ended, took 22m, 1m5s less than first planned`.
    """
    says = f"Argo says: {run.workflow_message}" if run.workflow_message else ""
    return sentence(
        word(run.phase),
        progress_text(run),
        makespans_text(run),
        first_promise_sentence(run) if run.ended else run_ends_sentence(run),
        says,
        between=", ",
    )


def summary(run: RunView) -> str:
    """Describe a run: `team-a/taxi-x7k2p: Running, 1/3 steps ended, planned to take 23m`."""
    return f"{run_title(run)}: {story(run)}"


def story(run: RunView) -> str:
    """Describe a run without its name: `Running, 1/3 steps ended, planned to take 23m`."""
    waits, queue = waiting_summary(run), run.queue
    return facts(
        state_text(run) if run.phase else "no plan yet",
        f"waiting: {waits}" if waits and not run.ended else "",
        queue_text(queue) if queue is not None and queue.is_waiting else "",
    )
