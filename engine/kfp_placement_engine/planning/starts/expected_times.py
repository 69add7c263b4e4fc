"""The expected starts and ends of a run's steps, by its plan and by what has happened since."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_engine.lowering.activities import activities_of
from kfp_placement_engine.lowering.branches import AFTER_FAILURE
from kfp_placement_engine.lowering.edges import edges_between, topological_order
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.starts.node_queue import expected_end


class StepSpan(NamedTuple):
    """Start and end of a step that has not ended, planned or expected, in seconds on one clock.

    It is a tuple, since a gate decision makes one for every step of large runs.

    Attributes:
        start_seconds: planned or expected start; of a running step its actual start.
        end_seconds: planned or expected end; infinite = unknown.
        runs: whether it has started.
    """

    start_seconds: float
    end_seconds: float
    runs: bool = False

    @property
    def seconds(self) -> float:
        """Duration of the step."""
        return max(0.0, self.end_seconds - self.start_seconds)


@dataclass(frozen=True)
class ExpectedTimes:
    """The expected times of the steps that have not ended, by name, in seconds on one clock.

    Attributes:
        starts: expected starts; a waiting step does not start earlier than planned, nor before its
            predecessors have ended.
        latest_starts: latest starts with which the run still ends at its expected end.
    """

    starts: Mapping[str, float] = field(default_factory=dict)
    latest_starts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepOrder:
    """The steps of a run in an order in which predecessors come first.

    Drivers and joins are part of the order, but do not take time and do not have names.

    Attributes:
        names: names of the steps; "" for drivers and joins.
        predecessors: positions of the predecessors of each.
        after_failure: positions of what runs only after a failure: no end of a run waits for it.
    """

    names: Sequence[str]
    predecessors: Sequence[Sequence[int]]
    after_failure: frozenset[int] = frozenset()

    @staticmethod
    def of(graph: RunGraph) -> "StepOrder":
        """Return the order of a run.

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
            frozenset(
                position[at] for at, each in enumerate(activities) if AFTER_FAILURE in each.path
            ),
        )


def expected_times(
    order: StepOrder, planned: Mapping[str, StepSpan], now_seconds: float
) -> ExpectedTimes:
    """Return the expected times of the steps that have not ended.

    Args:
        order: order of the run's steps.
        planned: planned times of the steps that have not ended.
        now_seconds: present time.
    """
    steps = [planned.get(name) for name in order.names]
    starts, ends = _earliest(order, steps, now_seconds)
    if any(step is not None and step.end_seconds == math.inf for step in steps):
        # The end of the run is unknown, so none of its steps may be delayed.
        latest = starts
    else:
        awaited = [end for index, end in enumerate(ends) if index not in order.after_failure]
        latest = _latest(order, steps, max(awaited, default=now_seconds))
    of_steps = [index for index, step in enumerate(steps) if step is not None]
    return ExpectedTimes(
        {order.names[index]: starts[index] for index in of_steps},
        {order.names[index]: latest[index] for index in of_steps},
    )


def times_by_now(
    order: StepOrder,
    planned: Mapping[str, StepSpan],
    happened: Mapping[str, tuple[float, float]],
    planned_at_seconds: float,
    now_seconds: float,
) -> Mapping[str, StepSpan]:
    """Return the times of steps that have not ended, as early or late as the steps before them.

    After predecessors that have all ended, a waiting step starts when it is planned to, or now if
    that is past. After others it starts as long after them as planned: drivers take that time, or
    other steps have its node. So it may start earlier than planned, while `expected_times` keeps to
    the plan, as gates do.

    Args:
        order: order of the run's steps.
        planned: planned times of the steps that have not ended.
        happened: start and end of the steps that have started; the end of a step that still runs is
            the one that follows from its duration.
        planned_at_seconds: time of the plan.
        now_seconds: present time.
    """
    # Ends by the plan, and actual ends; steps that ended before the plan count as ended with it.
    plan_ends = [planned_at_seconds] * len(order.names)
    ends = [min(planned_at_seconds, now_seconds)] * len(order.names)
    times: dict[str, StepSpan] = {}
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
            end = start + _finite_end(step) - step.start_seconds
        else:
            start, end = real[0], expected_end(*real, now_seconds)
        plan_ends[index], ends[index] = _finite_end(step), end
        times[name] = StepSpan(start, end, step.runs)
    return times


def _earliest(
    order: StepOrder, steps: Sequence[StepSpan | None], now_seconds: float
) -> tuple[list[float], list[float]]:
    """Return expected starts and ends, each after those of its predecessors."""
    starts, ends = [-math.inf] * len(steps), [-math.inf] * len(steps)
    for index, step in enumerate(steps):
        ready = max([ends[each] for each in order.predecessors[index]], default=-math.inf)
        if step is None:
            ends[index] = ready
        elif step.runs:
            starts[index] = step.start_seconds
            ends[index] = expected_end(step.start_seconds, _finite_end(step), now_seconds)
        else:
            starts[index] = max(step.start_seconds, now_seconds, ready)
            ends[index] = starts[index] + _finite_end(step) - step.start_seconds
    return starts, ends


def _latest(order: StepOrder, steps: Sequence[StepSpan | None], run_end: float) -> list[float]:
    """Return the latest starts, each in time for all later steps."""
    latest = [run_end] * len(steps)
    for index, step in reversed([*enumerate(steps)]):
        if step is not None:
            latest[index] -= _finite_end(step) - step.start_seconds
        if index in order.after_failure:
            continue
        for each in order.predecessors[index]:
            latest[each] = min(latest[each], latest[index])
    return latest


def _finite_end(step: StepSpan) -> float:
    """Return the end of a step, or its start if its duration is unknown."""
    return step.start_seconds + (step.seconds if step.seconds < math.inf else 0.0)
