"""The run's pods as a graph of activities: drivers of groups and steps, and the steps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.branches import (
    Path,
    Waits,
    has_branches,
    path_of,
    paths_of_groups,
)
from kfp_placement_engine.model.active_runs import StepProgress
from kfp_placement_engine.model.run_graph import RunGraph, Step

Indexes = tuple[int, ...]
"""Indexes of activities or of claims."""

ROOT_NAME = "root"
"""Name of the root group's driver in plans."""


class Activity(NamedTuple):
    """One pod, or a join: a point in time at which many activities have ended.

    It is a tuple, since large runs have tens of thousands: a dataclass takes three times as long.

    Attributes:
        name: name of the step; for a driver, of its group or step; "" for a join, and for the
            beginning of a group without driver.
        step: step of the pod, or None for a driver or a join.
        group: index of the innermost group, -1 = none.
        predecessors: indexes of the activities that must have ended.
        entered_group: index of the group that begins with it, -1 = none.
        run: index of its run.
        running: progress of the pod, or None if it does not run yet.
        path: branches around the pod, outermost first.
    """

    name: str
    step: Step | None
    group: int
    predecessors: Indexes
    entered_group: int = -1
    run: int = 0
    running: StepProgress | None = None
    path: Path = ()

    @property
    def is_join(self) -> bool:
        """True for a join, False for a pod."""
        return not self.name


JOIN_FROM = 16
"""Smallest number of shared dependencies for which steps wait for a join instead.

Without joins two loops of 5,000 iterations, one after another, would have 25 million edges.
"""


def needs_pod(activity: Activity) -> bool:
    """Return whether an activity has a pod, unlike joins, pauses and steps assumed to be cached."""
    step = activity.step
    if activity.running is not None and (step is None or step.kind.has_pod):
        return True
    return not activity.is_join and (step is None or step.needs_pod)


def activities_of(graph: RunGraph) -> list[Activity]:
    """Return the activities of a run: group drivers, then each step after its driver, then joins.

    Raises:
        PlanningError: a step depends on one that does not exist.
    """
    of_group = {group.name: index for index, group in enumerate(graph.groups)}
    paths: dict[str, Path] = {}
    if has_branches(graph):
        paths = paths_of_groups(graph)
        graph = _with_waits(graph, paths)
    steps = _StepIndexes(graph)
    activities = []
    for index, group in enumerate(graph.groups):
        around = (of_group[group.parent],) if group.name else ()
        before = around + steps.ends_of(group.depends_on, f"group {group.name!r}")
        name = (group.name or ROOT_NAME) if group.has_driver else ""
        path = paths.get(group.name, ())
        activities.append(Activity(name, None, index, before, index, path=path))
    for step in graph.steps:
        inside = of_group.get(step.group, -1)
        before = steps.ends_of(step.depends_on, f"step {step.name!r}")
        if inside >= 0:
            before = (inside, *before)
        path = path_of(step)
        if step.has_driver:
            activities.append(Activity(step.name, None, inside, before, path=path))
            before = (len(activities) - 1,)
        activities.append(Activity(step.name, step, inside, before, path=path))
    return activities + [Activity("", None, -1, before) for before in steps.joined()]


def _with_waits(graph: RunGraph, paths: Mapping[str, Path]) -> RunGraph:
    """Return the run with what steps and groups wait for in spite of their branches."""
    waits = Waits(graph)
    return replace(
        graph,
        steps=tuple(replace(each, depends_on=waits.of_step(each.name)) for each in graph.steps),
        groups=tuple(
            replace(each, depends_on=waits.of_group(each.depends_on, paths[each.name]))
            for each in graph.groups
        ),
    )


class _StepIndexes:
    """The indexes of a run's steps among its activities, and those of the joins."""

    def __init__(self, graph: RunGraph) -> None:
        self._of_step: dict[str, int] = {}
        # The same order as in `activities_of`, which needs the indexes before it makes the
        # activities.
        count = len(graph.groups)
        for step in graph.steps:
            count += step.has_driver
            self._of_step[step.name] = count
            count += 1
        self._joins = {names: (count + index,) for index, names in enumerate(_joins(graph))}

    def ends_of(self, names: tuple[str, ...], dependent: str) -> Indexes:
        """Return the activities that end with these steps: their own, or their join.

        Args:
            names: names of the steps.
            dependent: step or group that waits for them, for a message.

        Raises:
            PlanningError: a step does not exist.
        """
        return self._joins.get(names) or self._indexes(names, dependent)

    def joined(self) -> list[Indexes]:
        """Return the activities that each join waits for."""
        return [self._indexes(names, "a step") for names in self._joins]

    def _indexes(self, names: tuple[str, ...], dependent: str) -> Indexes:
        try:
            return tuple([self._of_step[name] for name in names])
        except KeyError as missing:
            name = missing.args[0]
            raise PlanningError(f"{dependent} depends on {name!r}, which does not exist") from None


def _joins(graph: RunGraph) -> list[tuple[str, ...]]:
    """Return the long lists of dependencies that several steps or groups share."""
    if graph.direct_transfers:
        return []
    waiting = [step.depends_on for step in graph.steps]
    waiting += [group.depends_on for group in graph.groups]
    counts = Counter(names for names in waiting if len(names) >= JOIN_FROM)
    return [names for names, count in counts.items() if count > 1]
