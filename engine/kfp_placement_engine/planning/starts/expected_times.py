"""When the steps of a run are expected to start and end, as far as its plan goes now."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_engine.lowering.activities import activities_of
from kfp_placement_engine.lowering.edges import edges_between, topological_order
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.starts.node_queue import expected_end


class PlannedTimes(NamedTuple):
    """What the plan says of a step that has not ended; times in seconds on one clock.

    A tuple, as a gate decision makes one for every step of large runs.

    Attributes:
        start_seconds: planned start; of a running step the one that it had.
        end_seconds: planned end; infinite = unknown.
        runs: it has started.
    """

    start_seconds: float
    end_seconds: float
    runs: bool = False

    @property
    def seconds(self) -> float:
        """How long the step is planned to take."""
        return max(0.0, self.end_seconds - self.start_seconds)


@dataclass(frozen=True)
class ExpectedTimes:
    """What is expected of the steps that have not ended, by name; seconds on the same clock.

    Attributes:
        starts: of a waiting step, no earlier than planned and after all that it waits for.
        latest_starts: with which the run still ends when it is expected to.
    """

    starts: Mapping[str, float] = field(default_factory=dict)
    latest_starts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepOrder:
    """What waits for what in a run, so that nothing comes before what it waits for.

    Drivers and joins take no time here and have no name.

    Attributes:
        names: of the steps, "" for all else.
        predecessors: of each, as positions.
    """

    names: Sequence[str]
    predecessors: Sequence[Sequence[int]]

    @staticmethod
    def of(graph: RunGraph) -> "StepOrder":
        """The order of a run.

        Raises:
            PlanningError: a cycle, or a step depends on one that does not exist.
        """
        activities = activities_of(graph)
        names = [each.name for each in activities]
        order = topological_order(edges_between(activities), names).tolist()
        position = {index: at for at, index in enumerate(order)}
        return StepOrder(
            [activities[index].name if activities[index].step else "" for index in order],
            [[position[each] for each in activities[index].predecessors] for index in order],
        )


def expected_times(
    order: StepOrder, planned: Mapping[str, PlannedTimes], now_seconds: float
) -> ExpectedTimes:
    """Expected times of the steps that have not ended.

    Args:
        order: of the run's steps.
        planned: of the steps that have not ended; the others take no time any more.
        now_seconds: the time.
    """
    steps = [planned.get(name) for name in order.names]
    starts, ends = _earliest(order, steps, now_seconds)
    latest = _latest(order, steps, max(ends, default=now_seconds))
    if any(step is not None and step.end_seconds == math.inf for step in steps):
        # Nobody knows when the run ends: nothing of it may be delayed.
        latest = starts
    of_steps = [index for index, step in enumerate(steps) if step is not None]
    names = [order.names[index] for index in of_steps]
    return ExpectedTimes(
        dict(zip(names, [starts[index] for index in of_steps], strict=True)),
        dict(zip(names, [latest[index] for index in of_steps], strict=True)),
    )


def times_by_now(
    order: StepOrder,
    planned: Mapping[str, PlannedTimes],
    happened: Mapping[str, tuple[float, float]],
    planned_at_seconds: float,
    now_seconds: float,
) -> Mapping[str, PlannedTimes]:
    """Return when steps start and end that have not ended, as early or late as those before them.

    A waiting step starts as long after all that it waits for as planned: drivers take that time, or
    others have its node. It may so start earlier than planned, where `expected_times` keeps to the
    plan, as gates do.

    Args:
        order: of the run's steps.
        planned: steps that have not ended, as the plan has them.
        happened: steps that have started: when, and when they ended, or should end by how long they
            take.
        planned_at_seconds: time of the plan.
        now_seconds: the time.
    """
    # Ends by the plan, and as things are; all that ended before the plan ended with it.
    plan_ends = [planned_at_seconds] * len(order.names)
    ends = [min(planned_at_seconds, now_seconds)] * len(order.names)
    times: dict[str, PlannedTimes] = {}
    for index, name in enumerate(order.names):
        before = order.predecessors[index]
        plan_ready = max([plan_ends[each] for each in before], default=plan_ends[index])
        ready = max([ends[each] for each in before], default=ends[index])
        step, real = planned.get(name), happened.get(name)
        if step is None:
            # It has ended, or is not a step.
            plan_ends[index] = plan_ready if real is None else max(plan_ends[index], real[1])
            ends[index] = ready if real is None else max(ends[index], real[1])
            continue
        if real is None:
            start = max(now_seconds, ready + max(0.0, step.start_seconds - plan_ready))
            end = start + _known_end(step) - step.start_seconds
        else:
            start, end = real[0], expected_end(*real, now_seconds)
        plan_ends[index], ends[index] = _known_end(step), end
        times[name] = PlannedTimes(start, end, step.runs)
    return times


def _earliest(
    order: StepOrder, steps: Sequence[PlannedTimes | None], now_seconds: float
) -> tuple[list[float], list[float]]:
    """Expected starts and ends, each after those of all that comes before."""
    starts, ends = [-math.inf] * len(steps), [-math.inf] * len(steps)
    for index, step in enumerate(steps):
        ready = max([ends[each] for each in order.predecessors[index]], default=-math.inf)
        if step is None:
            ends[index] = ready
        elif step.runs:
            starts[index] = step.start_seconds
            ends[index] = expected_end(step.start_seconds, _known_end(step), now_seconds)
        else:
            starts[index] = max(step.start_seconds, now_seconds, ready)
            ends[index] = starts[index] + _known_end(step) - step.start_seconds
    return starts, ends


def _latest(order: StepOrder, steps: Sequence[PlannedTimes | None], run_end: float) -> list[float]:
    """The latest starts, each in time for all that comes after."""
    latest = [run_end] * len(steps)
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        if step is not None:
            latest[index] -= _known_end(step) - step.start_seconds
        for each in order.predecessors[index]:
            latest[each] = min(latest[each], latest[index])
    return latest


def _known_end(step: PlannedTimes) -> float:
    """Its planned end; of a step of unknown time its start."""
    return step.start_seconds + (step.seconds if step.seconds < math.inf else 0.0)
