"""The outlook of a run: its times by the plan, and the ranges that may be promised for them.

The plan says when steps start and end. Past runs say how much later or earlier this usually is, and
how certain it is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.promise import Promise, StepPromise, TimeRange
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.past_runs.learned_times import RunForecast
from kfp_placement_engine.plans.plan import Plan

_USUAL = math.log(1.1)
"""Logarithm of the largest usual factor between actual and planned time.

Up to this factor the whole run is assumed to deviate alike; beyond it, only some parts are.
"""

_POWER = 0.5
"""Exponent by which ranges shrink: with a quarter of the time left, a range is half as wide.

A sum of many steps behaves like this.
"""

_NAMED = 3
"""Number of steps that a sentence names."""


@dataclass(frozen=True)
class Outlook:
    """The rest of a run by its plan; all times are seconds of one clock.

    Attributes:
        times: start and end of each step that has not ended, by its name.
        is_placed: whether every step has a node.
        begin_seconds: time at which the run began, or will begin.
        now_seconds: present time.
    """

    times: Mapping[str, tuple[float, float]]
    is_placed: bool
    begin_seconds: float
    now_seconds: float = 0.0

    @cached_property
    def from_seconds(self) -> float:
        """Start of the remaining run: now, or the run's begin if that is later."""
        return max(self.begin_seconds, self.now_seconds)

    @cached_property
    def end_seconds(self) -> float:
        """End of the last step; 0 = all steps have ended."""
        return max((end for _, end in self.times.values()), default=0.0)

    def has_begun(self, step: Step) -> bool:
        """Return whether a step has started and not ended."""
        return step.name in self.times and self.times[step.name][0] < self.now_seconds


def outlook_of(plan: Plan) -> Outlook:
    """Return the outlook by a plan that has just been made."""
    times = {
        step.name: (step.start_seconds, step.finish_seconds)
        for step in plan.steps
        if step.progress is not ProgressState.DONE
        and step.start_seconds is not None
        and step.finish_seconds is not None
    }
    return Outlook(times, not plan.figures.unplaced, plan.run.release_seconds)


def promise_of(
    outlook: Outlook, graph: RunGraph, forecast: RunForecast, first: Promise | None = None
) -> Promise:
    """Return the promise for a run, on the clock of its outlook.

    Args:
        outlook: rest of the run by its plan.
        graph: run as it was planned.
        forecast: forecast of the run by past runs.
        first: promise of the run's end at its start; None = there was none.
    """
    unknown = _why_unknown(outlook, graph, forecast)
    if unknown:
        return Promise(forecast.confidence, unknown=unknown)
    range_of = _ranges(outlook, *_first_times(outlook, forecast, first))
    steps = {
        name: StepPromise(range_of(start), range_of(end))
        for name, (start, end) in outlook.times.items()
    }
    return Promise(forecast.confidence, range_of(outlook.end_seconds), outlook.end_seconds, steps)


def _first_times(
    outlook: Outlook, forecast: RunForecast, first: Promise | None
) -> tuple[float, TimeRange]:
    """Return the run's time from begin to end, as planned and as promised at its start.

    If no promise of the start counts, both are those of now.
    """
    begin_seconds = outlook.begin_seconds
    if first is not None and first.ends is not None and first.confidence == forecast.confidence:
        promised = first.ends.later(-begin_seconds)
        if promised.typical_seconds > 0:
            return (first.planned_seconds or 0.0) - begin_seconds, promised
    planned_seconds = outlook.end_seconds - begin_seconds
    return planned_seconds, forecast.ends.predict(planned_seconds, forecast.confidence)


def _ranges(
    outlook: Outlook, planned_seconds: float, end: TimeRange
) -> Callable[[float], TimeRange]:
    """Return a function from a time in the present plan to the range of its actual time.

    If runs usually take about as long as planned, the rest is stretched by the usual factor.
    Otherwise the end promised at the start is kept, within limits, since waits may be over or still
    to come: the rest takes at least the planned time (less if runs are usually quicker), at most
    that times the square of the factor. Between the two cases, the results are mixed. Where runs
    take far longer, the whole deviation may be still to come, so ranges do not shrink as the end
    comes near.

    Args:
        outlook: rest of the run by its plan.
        planned_seconds: time from begin to end, by the plan at the start.
        end: range of this time that was promised then.
    """
    from_seconds, first_seconds = outlook.from_seconds, end.typical_seconds
    ratio = first_seconds / max(planned_seconds, 1e-9)
    planned_left = outlook.end_seconds - from_seconds
    expected_left = first_seconds + outlook.begin_seconds - from_seconds
    least, most = min(1.0, ratio) * planned_left, max(1.0, ratio) ** 2 * planned_left
    held_left, usual_left = min(max(expected_left, least), most), ratio * planned_left
    unusual = abs(math.log(ratio)) / _USUAL
    left = usual_left + min(max(unusual - 1.0, 0.0), 1.0) * (held_left - usual_left)
    power = _POWER / max(1.0, unusual)

    def range_of(seconds: float) -> TimeRange:
        ahead_seconds = seconds - from_seconds
        if ahead_seconds <= 0:
            # The past is certain.
            return TimeRange(seconds, seconds, seconds)
        typical = ahead_seconds / planned_left * left
        share = min(1.0, typical / first_seconds) ** power
        low = typical + share * (end.low_seconds - first_seconds)
        high = typical + share * (end.high_seconds - first_seconds)
        return TimeRange(max(0.0, low), typical, high).later(from_seconds)

    return range_of


def _why_unknown(outlook: Outlook, graph: RunGraph, forecast: RunForecast) -> str:
    """Return the reason why nothing can be promised, or "" if something can."""
    if graph.is_outline:
        return "the run's requests are estimated"
    if not outlook.is_placed:
        return "a step fits no node"
    if outlook.end_seconds <= outlook.from_seconds:
        return "the run has ended"
    steps = [
        step
        for step in graph.steps
        if step.kind is StepKind.CONTAINER
        and step.name in outlook.times
        and not step.assumed_cached
    ]
    seen = {name for name, basis in forecast.steps.items() if not basis.is_guess}
    # Loops that had no iteration in past runs are planned with one.
    empty = tuple(
        f"{each.name}["
        for each in graph.groups
        if each.learned_width is not None and each.learned_width.width == 0
    )
    is_any_seen = any(step.name in seen for step in steps)
    unseen = [
        step
        for step in steps
        if step.name not in seen
        and step.duration_source is not DurationSource.GIVEN
        # What a run may skip is not promised before it begins.
        and not (
            is_any_seen
            and (step.conditions or step.name.startswith(empty))
            and not outlook.has_begun(step)
        )
    ]
    if unseen:
        # There may be runs of the pipeline whose steps came from the cache or had other names.
        is_new = not is_any_seen and not forecast.ends.runs
        names = listed(list(dict.fromkeys(step.task for step in unseen)), _NAMED)
        return "no run seen" if is_new else f"no run seen of {names}"
    return "all run times are given" if steps and not is_any_seen else ""
