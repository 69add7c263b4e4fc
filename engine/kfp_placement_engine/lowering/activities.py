"""The run's pods as a graph of activities: drivers of groups and steps, and the steps."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.active_runs import StepProgress
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.problem.problem import Integers

ROOT_NAME = "root"
"""How the root group's driver is called in plans."""


@dataclass(frozen=True)
class Activity:
    """One pod, or a join: a point in time at which many have ended.

    Attributes:
        name: step name, or the group or step a driver belongs to; "" for a join.
        step: the step it runs, None for a driver or a join.
        group: index of the innermost group, -1 = none.
        predecessors: indexes of the activities that must have ended.
        entered_group: index of the group whose driver it is, -1 = none.
        run: index of its run.
        running: what is known of the pod, if it runs already.
    """

    name: str
    step: Step | None
    group: int
    predecessors: tuple[int, ...]
    entered_group: int = -1
    run: int = 0
    running: StepProgress | None = None

    @property
    def is_join(self) -> bool:
        """Whether it is not a pod but a join."""
        return not self.name


JOIN_FROM = 16
"""Steps that wait for the same others, this many or more, wait for one join: two loops
of 5,000 iterations, one after another, would have 25 million edges."""


def needs_pod(activity: Activity) -> bool:
    """Whether a pod is made for it: not for joins and steps taken to come from the cache."""
    if activity.running is not None:
        return True
    return not activity.is_join and not (activity.step and activity.step.assumed_cached)


@dataclass
class _Builder:
    graph: RunGraph
    activities: list[Activity] = field(default_factory=list)
    of_step: dict[str, int] = field(default_factory=dict)
    of_group: dict[str, int] = field(default_factory=dict)
    joins: dict[tuple[str, ...], int] = field(default_factory=dict)
    joined: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add(self, activity: Activity) -> int:
        self.activities.append(activity)
        return len(self.activities) - 1


def activities_of(graph: RunGraph) -> list[Activity]:
    """All pods of the run; group drivers come first, a step's driver right before it.

    Raises:
        PlanningError: a step depends on one that does not exist.
    """
    builder = _Builder(graph)
    group_index = {group.name: index for index, group in enumerate(graph.groups)}
    for index, group in enumerate(graph.groups):
        builder.of_group[group.name] = builder.add(
            Activity(group.name or ROOT_NAME, None, index, (), index)
        )
    for step in graph.steps:
        inside = group_index.get(step.group, -1)
        if step.has_driver:
            builder.add(Activity(step.name, None, inside, ()))
        builder.of_step[step.name] = builder.add(Activity(step.name, step, inside, ()))
    if not graph.direct_transfers:
        _add_joins(builder)
    return [_with_predecessors(builder, index) for index in range(len(builder.activities))]


def _add_joins(builder: _Builder) -> None:
    """One join for each long list of dependencies that several wait for."""
    waiting = Counter(
        [step.depends_on for step in builder.graph.steps]
        + [group.depends_on for group in builder.graph.groups]
    )
    for names, count in waiting.items():
        if count > 1 and len(names) >= JOIN_FROM:
            join = builder.add(Activity("", None, -1, ()))
            builder.joins[names], builder.joined[join] = join, names


def _with_predecessors(builder: _Builder, index: int) -> Activity:
    activity, graph = builder.activities[index], builder.graph
    if activity.is_join:
        before = _step_indexes(builder, builder.joined[index], "a step")
    elif activity.entered_group >= 0:
        group = graph.groups[activity.entered_group]
        before = [builder.of_group[group.parent]] if group.name else []
        before += _waits_for(builder, group.depends_on, f"group {group.name!r}")
    elif activity.step is not None and activity.step.has_driver:
        before = [index - 1]
    else:
        step = activity.step or builder.activities[index + 1].step
        assert step is not None  # a driver is followed by its step
        before = [builder.of_group[step.group]] if step.group in builder.of_group else []
        before += _waits_for(builder, step.depends_on, f"step {step.name!r}")
    return Activity(
        activity.name, activity.step, activity.group, tuple(before), activity.entered_group
    )


def _waits_for(builder: _Builder, names: tuple[str, ...], who: str) -> list[int]:
    if names in builder.joins:
        return [builder.joins[names]]
    return _step_indexes(builder, names, who)


def _step_indexes(builder: _Builder, names: tuple[str, ...], who: str) -> list[int]:
    for name in names:
        if name not in builder.of_step:
            raise PlanningError(f"{who} depends on {name!r}, which does not exist")
    return [builder.of_step[name] for name in names]


def edge_arrays(lists: list[tuple[int, ...]]) -> tuple[Integers, Integers]:
    """Lists of indexes as (starts, values): row i is values[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(row) for row in lists], out=starts[1:])
    return starts, np.array([value for row in lists for value in row], np.int64)


def reversed_edges(lists: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Successors from predecessors."""
    successors: list[list[int]] = [[] for _ in lists]
    for index, row in enumerate(lists):
        for before in row:
            successors[before].append(index)
    return [tuple(row) for row in successors]


def topological_order(predecessors: list[tuple[int, ...]], names: list[str]) -> list[int]:
    """Activities with all predecessors first, else by index.

    Raises:
        PlanningError: the dependencies form a cycle; the message names some of its members.
    """
    waiting = [len(row) for row in predecessors]
    successors = reversed_edges(predecessors)
    order = [index for index, count in enumerate(waiting) if count == 0]
    for index in order:
        for after in successors[index]:
            waiting[after] -= 1
            if waiting[after] == 0:
                order.append(after)
    if len(order) < len(predecessors):
        stuck = [names[index] for index, count in enumerate(waiting) if count > 0]
        raise PlanningError("the dependencies form a cycle through " + ", ".join(stuck[:5]))
    return order
