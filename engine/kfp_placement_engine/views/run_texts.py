"""What is said of a run and its steps, in words; everything comes out visible and bounded.

Times of a run are seconds since its submission, or UTC; only what is promised is in the local time
zone, since people compare that with their watch.
"""

from datetime import datetime

from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.contract.resources import Condition
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
    """`team-a/taxi-x7k2p (taxi, Tuesday)`."""
    title = f"{name_text(run.namespace)}/{name_text(run.name)}"
    return f"{title} ({shown(run.run_name, 80)})" if run.run_name else title


def progress_text(run: RunView) -> str:
    """`3/7 steps ended`; those that were skipped have not: `0/7 steps ended, 7 skipped`."""
    skipped = run.count(StepState.SKIPPED)
    ended, slash, total = run.progress.partition("/")
    if not skipped or not slash or not (ended.isascii() and ended.isdigit()):
        return f"{word(run.progress) or 'no'} steps ended"
    return f"{max(0, int(ended) - skipped)}/{word(total)} steps ended, {skipped} skipped"


def is_alike(seconds: float | None, first_seconds: float | None) -> bool:
    """Two makespans that people need not tell apart; False where one is not known."""
    if seconds is None or first_seconds is None:
        return False
    return abs(seconds - first_seconds) < _ON_TIME_SECONDS


def makespans_text(run: RunView) -> str:
    """How long the run was planned to take and took; one that failed is held against no plan."""
    actual, first = run.actual_makespan_seconds, run.first_makespan_seconds
    planned = run.makespan_seconds
    if run.failed:
        planned = planned if first is None else first
        took = "" if actual is None else f"took {duration(actual)}"
        was = "" if planned is None else f"was planned to take {duration(planned)}"
        return facts(took, was) or "never planned"
    if actual is not None:
        return facts(f"took {duration(actual)}", _against_text(actual, first))
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


def _against_text(seconds: float, first_seconds: float | None) -> str:
    """A makespan against the first plan's: `10s more than first planned`; "" = there is none."""
    if first_seconds is None:
        return ""
    if is_alike(seconds, first_seconds):
        return "as first planned"
    difference = seconds - first_seconds
    amount = format_duration(round(abs(difference)))
    return f"{amount} {'more' if difference > 0 else 'less'} than first planned"


def waiting_summary(run: RunView) -> str:
    """What a run's steps wait for: `2 for quota (5m), 1 for node (10s)`; the oldest of each."""
    age_seconds = run.age_seconds or 0.0
    since: dict[str, list[float]] = {}
    for waiting in filter(None, (step.waiting for step in run.steps)):
        since.setdefault(shown(waiting.what, 40), []).append(waiting.since_seconds)
    known = [str(each) for each in WaitingFor]
    return ", ".join(
        f"{len(since[what])} for {what} ({age_text(max(0.0, age_seconds - min(since[what])))})"
        for what in sorted(since, key=lambda what: (what not in known, what))[:8]
    )


def alarm_text(condition: Condition) -> str:
    """A condition that ought to hold: `not Schedulable (NoMatchingNode): ...`."""
    message = f": {condition.message}" if condition.message else ""
    return sentence(f"not {condition.type} ({condition.reason}){message}")


def run_ends(run: RunView, *, reasons: bool = True) -> str:
    """When a run ends: `10:26 (10:22-10:31)`, or `unknown (no run seen)`; "" = nobody says.

    Of a run that is held back, since its start: `9m (8m-12m) after its start`.

    Args:
        run: the run.
        reasons: also why nothing is promised.
    """
    if run.promise is None or (run.promise.ends is None and not reasons):
        return ""
    text = ends_text(run.promise, _begin(run))
    return f"{text} after its start" if run.is_after_start else text


def run_ends_sentence(run: RunView) -> str:
    """The same in a sentence: `ends 10:26 (10:22-10:31), by 10:31 (95%), CET`; "" = nobody says."""
    if run.promise is None:
        return ""
    zone = (
        "" if run.is_after_start or run.promise.ends is None else f"{run.seen_at.astimezone():%Z}"
    )
    return facts(f"ends {run_ends(run)}", latest_end_text(run.promise, _begin(run)), zone)


def first_promise_sentence(run: RunView) -> str:
    """What was promised first, where that is no longer what is promised; "" = nothing to say."""
    first = run.first_promise
    if first is None or (run.promise is not None and not run.promise.has_moved(first)):
        return ""
    actual, outcome = run.actual_makespan_seconds, ""
    if run.phase == Phase.SUCCEEDED and actual is not None and first.ends is not None:
        outcome = _OUTCOMES[first.ends.outcome(actual)]
    return facts(f"first promised {ends_text(first, run.submitted_at)}", outcome)


def _begin(run: RunView) -> datetime | None:
    """From when on times of day count; None = ranges count from the run's start."""
    return None if run.is_after_start else run.submitted_at


def step_starts(run: RunView, step: StepView) -> str:
    """When a step starts: `10:08 (10:05-10:11)`; "" = it has started, or nobody says."""
    return _range_text(run, step.starts if step.start_seconds is None else None)


def step_ends(run: RunView, step: StepView) -> str:
    """When a step ends, likewise; "" = it has ended, or nobody says."""
    return _range_text(run, step.ends)


def _range_text(run: RunView, times: TimeRange | None) -> str:
    return "" if times is None else range_text(times, run.submitted_at, run.confidence)


def rests_on(step: StepView) -> str:
    """What a step's run time rests on: `9 runs`, `hint`; "" = nobody says."""
    return basis_text(shown(step.duration_source, 40), step.duration_basis)


def planned_text(step: StepView) -> str:
    """From when to when, since the submission: `47s to 20m49s`."""
    if step.planned_start_seconds is None and step.planned_finish_seconds is None:
        return NONE
    start = duration(step.planned_start_seconds)
    return f"{start} to {duration(step.planned_finish_seconds)}"


def actual_text(step: StepView) -> str:
    """The same as it was: `49s to 20m55s`, or `49s to now`."""
    if step.start_seconds is None:
        return NONE
    end = "now" if step.end_seconds is None else duration(step.end_seconds)
    return f"{duration(step.start_seconds)} to {end}"


def drift_text(step: StepView) -> str:
    """How far a step is off its plan: `started 2s late`, `ended 12s early`, or ""."""
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
    """Where it is, and how it ends or has ended.

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
    """A run in a line: `team-a/taxi-x7k2p: Running, 1/3 steps ended, planned to take 23m`."""
    return f"{run_title(run)}: {story(run)}"


def story(run: RunView) -> str:
    """The same without its name."""
    waits, queue = waiting_summary(run), run.queue
    return facts(
        state_text(run) if run.phase else "no plan yet",
        f"waiting: {waits}" if waits and not run.ended else "",
        queue_text(queue) if queue is not None and queue.is_waiting else "",
    )
