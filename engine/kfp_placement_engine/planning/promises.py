"""What a plan promises: when its run and its steps start and end, by what past runs tell.

The plan says when, and past runs how much later or earlier that is, and how surely.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.forecast import KNOWN_LEVELS
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.promise import FirstEnd, Promise, StepPromise, TimeRange
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.learned_times import RunForecast

_USUAL = math.log(1.1)
"""By up to this runs take longer or less in all of their parts; by more, in some of them."""

_POWER = 0.5
"""What is near is known better, as a sum of many steps is: with a quarter left, twice as well."""

_NAMED = 3
"""Steps that a sentence names."""


@dataclass(frozen=True)
class Outlook:
    """How a run goes on by its plan, from now on.

    Attributes:
        times: start and end of each step that has not ended, by its name.
        begun: names of the steps that have started or ended.
        is_placed: whether every step has a node.
    """

    times: Mapping[str, tuple[float, float]]
    begun: Collection[str] = ()
    is_placed: bool = True

    @property
    def end_seconds(self) -> float:
        """The end of the last step; 0 = all have ended."""
        return max((end for _, end in self.times.values()), default=0.0)


@dataclass(frozen=True)
class _Remainder:
    """What is left of a run, beside what was promised of it at the start.

    Attributes:
        from_seconds: now, or its begin if that is to come.
        left_seconds: from then to its end by the plan.
        passed_seconds: since its begin.
        first: what was promised at the start.
    """

    from_seconds: float
    left_seconds: float
    passed_seconds: float
    first: FirstEnd

    def range_of(self, seconds: float) -> TimeRange:
        """When something happens that the plan has at a time; what has happened is known.

        The end that was promised at the start holds as long as the plan of now allows it: waits may
        be over, or still to come. It is no earlier, though, than that plan says, nor later than
        runs take longer, twice. Where runs take far longer than planned, all of that may be still
        to come, and nothing is known better for being near.
        """
        ahead_seconds = seconds - self.from_seconds
        if ahead_seconds <= 0:
            return TimeRange(seconds, seconds, seconds)
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
        return TimeRange(max(0.0, low), typical, high).later(self.from_seconds)


def with_promise(plan: Plan, graph: RunGraph, forecast: RunForecast | None) -> Plan:
    """The plan of a run that is not submitted yet, with what it promises.

    Args:
        plan: the plan.
        graph: the run, as it was planned.
        forecast: what past runs tell of it; None = nobody asked.
    """
    if forecast is None:
        return plan
    promise = promise_of(outlook_of(plan), graph, forecast, plan.release_seconds)
    return replace(plan, promise=promise)


def outlook_of(plan: Plan) -> Outlook:
    """How a run goes on, as a plan that has just been made has it."""
    return Outlook(
        times={
            step.name: (step.start_seconds, step.finish_seconds)
            for step in plan.steps
            if step.progress is not ProgressState.DONE
            and step.start_seconds is not None
            and step.finish_seconds is not None
        },
        begun=frozenset(
            step.name for step in plan.steps if step.progress is not ProgressState.WAITING
        ),
        is_placed=not plan.figures.unplaced,
    )


def promise_of(
    outlook: Outlook,
    graph: RunGraph,
    forecast: RunForecast,
    begin_seconds: float = 0.0,
    first: FirstEnd | None = None,
) -> Promise:
    """What is promised of a run, on the clock of its outlook, whose time zero is now.

    Args:
        outlook: how it goes on by its plan.
        graph: the run, as it was planned.
        forecast: what past runs tell of it.
        begin_seconds: when the run began, or will begin.
        first: what was promised of its end at its start; None = nothing was.
    """
    unknown = _why_unknown(outlook, graph, forecast)
    planned_end, from_seconds = outlook.end_seconds, max(0.0, begin_seconds)
    if not unknown and planned_end <= from_seconds:
        unknown = "the run has ended"
    if unknown:
        return Promise(forecast.confidence, unknown=unknown)
    if first is None:
        planned = planned_end - begin_seconds
        first = FirstEnd(forecast.ends.predict(planned, forecast.confidence), planned)
    passed_seconds = max(0.0, -begin_seconds)
    rest = _Remainder(from_seconds, planned_end - from_seconds, passed_seconds, first)
    steps = {
        name: StepPromise(rest.range_of(start), rest.range_of(end))
        for name, (start, end) in outlook.times.items()
    }
    return Promise(forecast.confidence, rest.range_of(planned_end), planned_end, steps)


def _why_unknown(outlook: Outlook, graph: RunGraph, forecast: RunForecast) -> str:
    """Why nothing can be promised, or "": a step that surely runs was not seen, or fits no node."""
    if not outlook.is_placed:
        return "a step fits no node"
    steps = [step for step in graph.steps if _is_open(step, outlook)]
    if steps and not any(_is_known(step, forecast) for step in steps):
        # Of the pipeline there may be runs, whose steps came from the cache or had other names.
        return _not_seen(steps) if forecast.ends.runs else "no run seen"
    begun = {step.branch for step in graph.steps if step.name in outlook.begun}
    unseen = [
        step
        for step in steps
        if not _is_known(step, forecast) and (step.branch in begun or _must_run(step, forecast))
    ]
    if unseen:
        return _not_seen(unseen)
    is_learned = any(_is_learned(step, forecast) for step in steps)
    return "" if is_learned or not steps else "all run times are given"


def _not_seen(steps: Sequence[Step]) -> str:
    tasks = list(dict.fromkeys(step.task for step in steps))
    return f"no run seen of {listed(tasks, _NAMED)}"


def _is_open(step: Step, outlook: Outlook) -> bool:
    """Whether the end of the run may depend on how long the step takes."""
    if step.kind is not StepKind.CONTAINER or step.name not in outlook.times:
        return False
    return step.name in outlook.begun or not step.assumed_cached


def _must_run(step: Step, forecast: RunForecast) -> bool:
    """Whether a step is in no branch, and in no loop that had no iteration before."""
    empty = tuple(f"{loop}[*]" for loop in forecast.empty_loops)
    return not step.conditions and not step.task.startswith(empty)


def _is_known(step: Step, forecast: RunForecast) -> bool:
    return step.duration_source is DurationSource.GIVEN or _is_learned(step, forecast)


def _is_learned(step: Step, forecast: RunForecast) -> bool:
    known = forecast.steps.get(step.name)
    return known is not None and known.basis.level in KNOWN_LEVELS
