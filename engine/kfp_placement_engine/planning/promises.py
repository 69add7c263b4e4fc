"""What a plan promises: when its run and its steps start and end, by what past runs tell.

The plan says when, and past runs how much later or earlier that is, and how surely.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.promise import FirstEnd, Promise, StepPromise, TimeRange
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.learned_times import RunForecast
from kfp_placement_engine.planning.unknown_ends import why_unknown

_USUAL = math.log(1.1)
"""By up to this runs take longer or less in all of their parts; by more, in some of them."""

_POWER = 0.5
"""What is near is known better, as a sum of many steps is: with a quarter left, twice as well."""


@dataclass(frozen=True)
class _Remainder:
    """What is left of a run, beside what was promised of it at the start.

    Attributes:
        left_seconds: from now, or from its begin if that is to come, to its end by the plan.
        passed_seconds: since its begin.
        first: what was promised at the start.
    """

    left_seconds: float
    passed_seconds: float
    first: FirstEnd

    def after(self, ahead_seconds: float) -> TimeRange:
        """When something happens that the plan has that far ahead.

        The end that was promised at the start holds as long as the plan of now allows it: waits may
        be over, or still to come. It is no earlier, though, than that plan says, nor later than
        runs take longer, twice. Where runs take far longer than planned, all of that may be still
        to come, and nothing is known better for being near.
        """
        end = self.first.ends
        ratio = end.typical_seconds / max(self.first.planned_seconds, 1e-9)
        least = min(1.0, ratio) * self.left_seconds
        most = max(1.0, ratio) ** 2 * self.left_seconds
        left = min(max(end.typical_seconds - self.passed_seconds, least), most)
        typical = ahead_seconds / self.left_seconds * left
        power = _POWER * min(1.0, _USUAL / max(_USUAL, abs(math.log(ratio))))
        share = min(1.0, typical / end.typical_seconds) ** power
        low = typical + share * (end.low_seconds - end.typical_seconds)
        high = typical + share * (end.high_seconds - end.typical_seconds)
        return TimeRange(max(0.0, low), typical, high)


def with_promise(plan: Plan, graph: RunGraph, forecast: RunForecast | None) -> Plan:
    """The plan of a run that is not submitted yet, with what it promises.

    Args:
        plan: the plan.
        graph: the run, as it was planned.
        forecast: what past runs tell of it; None = nobody asked.
    """
    return plan if forecast is None else replace(plan, promise=promise_of(plan, graph, forecast))


def promise_of(
    plan: Plan,
    graph: RunGraph,
    forecast: RunForecast,
    begin_seconds: float | None = None,
    first: FirstEnd | None = None,
) -> Promise:
    """What a plan promises, on the plan's clock.

    Args:
        plan: the plan.
        graph: the run, as it was planned.
        forecast: what past runs tell of it.
        begin_seconds: when the run began, or will begin, on the plan's clock; None = when it is
            submitted.
        first: what was promised of its end at its start; None = nothing was.
    """
    unknown = why_unknown(plan, graph, forecast)
    begin = plan.release_seconds if begin_seconds is None else begin_seconds
    planned_end, from_seconds = plan.figures.makespan_seconds, max(0.0, begin)
    if not unknown and planned_end <= from_seconds:
        unknown = "the run has ended"
    if unknown:
        return Promise(forecast.confidence, unknown=unknown)
    if first is None:
        planned = planned_end - begin
        first = FirstEnd(forecast.ends.predict(planned, forecast.confidence), planned)
    rest = _Remainder(planned_end - from_seconds, max(0.0, -begin), first)
    steps = dict(_of_steps(plan, rest, from_seconds))
    ends = rest.after(rest.left_seconds).later(from_seconds)
    return Promise(forecast.confidence, ends, planned_end, steps)


def _of_steps(
    plan: Plan, rest: _Remainder, from_seconds: float
) -> Iterator[tuple[str, StepPromise]]:
    """What is promised of each step that has not ended, by name."""
    for step in plan.steps:
        start, finish = step.start_seconds, step.finish_seconds
        if start is None or finish is None or step.progress is ProgressState.DONE:
            continue
        yield (
            step.name,
            StepPromise(_moment(start, rest, from_seconds), _moment(finish, rest, from_seconds)),
        )


def _moment(seconds: float, rest: _Remainder, from_seconds: float) -> TimeRange:
    """When something happens that the plan has at a time; what has happened is known."""
    if seconds <= from_seconds:
        return TimeRange(seconds, seconds, seconds)
    return rest.after(seconds - from_seconds).later(from_seconds)
