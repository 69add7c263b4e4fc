"""When a run and its steps start and end, as promised: on the clock of whoever looks.

All other times of a run are seconds since its submission, or UTC; these are in the local time zone,
since people compare them with their watch.
"""

from dataclasses import replace
from datetime import datetime

from kfp_placement.live.runs import RunView, StepView
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.forecast_texts import (
    Clock,
    basis_text,
    ends_text,
    latest_end_text,
    range_text,
)
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.model.promise import Promise, PromiseOutcome, TimeRange

_MAX_WHY = 120

_OUTCOMES = {
    PromiseOutcome.EARLY: "ended earlier",
    PromiseOutcome.KEPT: "kept",
    PromiseOutcome.LATE: "ended later",
}


def promise_of(run: RunView) -> Promise | None:
    """When a run ends, or why that is not known; None = nothing is said of it, or it has ended."""
    promise = None if run.placement is None or run.ended else run.placement.promise
    return None if promise is None else replace(promise, unknown=shown(promise.unknown, _MAX_WHY))


def promise_after_start_of(run: RunView) -> Promise | None:
    """When a run that is held back ends, since its start; None = that is not said."""
    return None if run.placement is None or run.ended else run.placement.promise_after_start


def first_promise_of(run: RunView) -> Promise | None:
    """What was promised first of a run's end; None = nothing was known then."""
    return None if run.placement is None else run.placement.first_promise


def without_promise(run: RunView) -> RunView:
    """The run, with no times of day promised of it and its steps."""
    steps = tuple(replace(step, promise=None) for step in run.steps)
    placement = run.placement
    if placement is not None and placement.status is not None:
        status = placement.status.model_copy(update={"ends": None})
        placement = placement.model_copy(update={"status": status})
    return replace(run, placement=placement, steps=steps)


def run_ends(run: RunView, *, reasons: bool = True) -> str:
    """When a run ends: `10:26 (10:22-10:31)`, or `unknown (no run seen)`; "" = nobody says.

    Of a run that is held back, since its start: `9m (8m-12m) after its start`.

    Args:
        run: the run.
        reasons: also why nothing is promised.
    """
    after_start = promise_after_start_of(run)
    if after_start is not None:
        return f"{ends_text(after_start)} after its start"
    promise = promise_of(run)
    if promise is None or (promise.ends is None and not reasons):
        return ""
    return ends_text(promise, _clock(run))


def run_ends_sentence(run: RunView, now: datetime) -> str:
    """The same in a sentence: `ends 10:26 (10:22-10:31), by 10:31 (95%), CET`; "" = nobody says."""
    after_start = promise_after_start_of(run)
    if after_start is not None:
        return f"ends {ends_text(after_start)} after its start, {latest_end_text(after_start)}"
    promise = promise_of(run)
    if promise is None:
        return ""
    if promise.ends is None:
        return f"ends {ends_text(promise)}"
    clock = _clock(run)
    ends, latest = ends_text(promise, clock), latest_end_text(promise, clock)
    return f"ends {ends}, {latest}, {now.astimezone():%Z}"


def first_promise_sentence(run: RunView) -> str:
    """What was promised first, where that is no longer what is promised; "" = nothing to say."""
    first, promise = first_promise_of(run), promise_of(run)
    if first is None or (promise is not None and not promise.ends_differ_from(first)):
        return ""
    text = f"first promised {ends_text(first, _clock(run))}"
    return f"{text}, {outcome}" if (outcome := _outcome(run, first)) else text


def _outcome(run: RunView, first: Promise) -> str:
    """Whether the first promise was kept, once a run has ended well."""
    actual = run.actual_makespan_seconds
    if run.phase != Phase.SUCCEEDED or actual is None or first.ends is None:
        return ""
    return _OUTCOMES[first.ends.outcome(actual)]


def step_starts(run: RunView, step: StepView) -> str:
    """When a step starts: `10:08 (10:05-10:11)`; "" = it has started, or nobody says."""
    if step.promise is None or step.start_seconds is not None:
        return ""
    return _range_text(run, step.promise.starts)


def step_ends(run: RunView, step: StepView) -> str:
    """When a step ends, likewise; "" = it has ended, or nobody says."""
    if step.promise is None:
        return ""
    return _range_text(run, step.promise.ends)


def rests_on(step: StepView) -> str:
    """What a step's run time rests on: `9 runs`, `hint`; "" = nobody says."""
    return basis_text(shown(step.source, 40), step.basis)


def _range_text(run: RunView, times: TimeRange) -> str:
    assert run.placement is not None  # it says what is promised
    return range_text(times, _clock(run), run.placement.confidence)


def _clock(run: RunView) -> Clock:
    """Writes seconds since the submission as a time of day."""
    assert run.placement is not None  # it says what is promised
    return Clock(run.placement.spec.submitted_at)
