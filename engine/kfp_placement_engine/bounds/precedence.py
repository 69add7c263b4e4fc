"""The order of the pods of a run, and the limits of how many of them exist at once.

Only what Argo or KFP's drivers hold to counts, whatever the run's author says and its steps answer.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from kfp_placement_engine.lowering.activities import Activity, activities_of
from kfp_placement_engine.lowering.branches import AFTER_FAILURE, Path
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph
from kfp_placement_engine.problem.most_at_once import HeldNodes, Scope, scope_of


class PodName(NamedTuple):
    """The pod of a step, or of a driver.

    Attributes:
        name: name of the step; of a driver, of its step or group.
        is_driver: whether it is a driver.
    """

    name: str
    is_driver: bool


class Precedence(NamedTuple):
    """The order of the pods of a run.

    Attributes:
        nodes: number of nodes.
        node_of: numbers of the nodes of pods.
        scope: the nodes.
    """

    nodes: int
    node_of: dict[PodName, int]
    scope: Scope


def precedence_of(graph: RunGraph) -> Precedence:
    """Return the order of the pods of a run, with their limits."""
    activities = activities_of(graph)
    node_of = {
        PodName(each.name, each.step is None): number for number, each in enumerate(activities)
    }
    limits = [
        HeldNodes(
            limit.most,
            [
                [node_of[PodName(name, is_driver=False)] for name in names]
                for names in limit.holders
            ],
        )
        for limit in graph.limits
    ]
    if graph.groups:
        limits += (*_iterations(graph, activities), *_choices(activities))
    before = [each.predecessors for each in activities]
    return Precedence(len(activities), node_of, scope_of(before, limits))


def _iterations(graph: RunGraph, activities: list[Activity]) -> Iterator[HeldNodes]:
    """Yield the limits of loops of KFP: of each, some iterations are under way at once."""
    around: dict[int, list[int]] = {}
    number = {group.name: each for each, group in enumerate(graph.groups)}
    limited = {group.name: group for group in graph.groups if group.parallelism}
    # Parents come first.
    for each, group in enumerate(graph.groups):
        outer = around[number[group.parent]] if group.name else []
        is_held = group.kind is GroupKind.ITERATION and group.parent in limited
        around[each] = [*outer, each] if is_held else outer
    held: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, activity in enumerate(activities):
        for iteration in around.get(activity.group, ()):
            held[graph.groups[iteration].parent][iteration].append(node)
    for loop, iterations in held.items():
        yield HeldNodes(limited[loop].parallelism, [*iterations.values()])


def _choices(activities: list[Activity]) -> Iterator[HeldNodes]:
    """Yield the choices of a run of KFP, whose drivers decide them: one branch runs of each."""
    held: dict[Path, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, activity in enumerate(activities):
        for depth, branch in enumerate(activity.path):
            if branch != AFTER_FAILURE:
                held[(*activity.path[:depth], branch._replace(name=""))][branch.name].append(node)
    for branches in held.values():
        yield HeldNodes(1, [*branches.values()])
