"""The single changes that may shorten a run, to be tried one by one.

Each change is one of these: one more empty node of a shape; one node with twice the CPU or twice
the memory; the limit of one loop raised by one, or removed; one image held by every node; one
volume made ReadWriteMany. Nodes of one class can take the same pods, equally fast; nodes of one
shape could if all were empty.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering import lower
from kfp_placement_engine.lowering.volumes import volume_rules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.node_rules.images import canonical, held_sizes
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.planning.what_if.applied_changes import empty_copy
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if_changes import (
    OFF,
    SHARED,
    AddNodes,
    Change,
    HoldImage,
    SetProperties,
)
from kfp_placement_engine.problem.problem import AXES
from kfp_placement_engine.units.quantities import format_resource
from kfp_placement_engine.units.resources import Resources

_DOUBLED = ("cpu", "memory")
_BYTES = 10**7
"""Smallest amount that is taken for bytes."""


def single_changes(
    graph: RunGraph, cluster: Cluster, plan: Plan, options: PlanOptions, busiest: int
) -> tuple[Change, ...]:
    """Return the changes to try, without equivalent ones.

    Args:
        graph: run before the changes.
        cluster: cluster before the changes.
        plan: present plan of the run, which shows the busiest nodes.
        options: options of the planner.
        busiest: number of nodes of each shape that are tried at twice their size, the node that the
            plan uses most first.
    """
    shapes = _node_classes(graph, _emptied(cluster), options)
    changes = (
        *_more_nodes(shapes),
        *_larger_nodes(cluster, plan, shapes, _node_classes(graph, cluster, options), busiest),
        *_higher_limits(graph),
        *_held_images(graph, cluster),
        *_shared_volumes(graph, cluster),
    )
    return tuple(dict.fromkeys(changes))


def _node_classes(graph: RunGraph, cluster: Cluster, options: PlanOptions) -> dict[str, Hashable]:
    """Return the class of each node: nodes of one class can take the same pods, equally fast."""
    nodes = tuple(replace(node, allocatable=_rounded(node.allocatable)) for node in cluster.nodes)
    cluster = replace(cluster, nodes=nodes)
    lowering = lowering_options_of((ActiveRun("", graph),), cluster, options)
    problem = lower(graph, cluster, lowering).problem
    columns = [problem.latency_ms.T]
    for name, axes in AXES.items():
        if "N" in axes:
            columns.append(np.moveaxis(getattr(problem.arrays, name), axes.index("N"), 0))
    return {
        node.name: (frozenset(node.allocatable.items()), *(each[at].tobytes() for each in columns))
        for at, node in enumerate(nodes)
    }


def _rounded(allocatable: Resources) -> Resources:
    """Round bytes to two digits, since machines of one type differ by some MiB."""
    return {
        name: int(float(f"{amount:.2g}")) if amount >= _BYTES else amount
        for name, amount in allocatable.items()
    }


def _emptied(cluster: Cluster) -> Cluster:
    """Return the cluster with an empty copy of each node, and with volumes that no node uses."""
    claims = tuple(replace(claim, used_on=()) for claim in cluster.claims)
    nodes = tuple(empty_copy(node, node.name) for node in cluster.nodes)
    return replace(cluster, nodes=nodes, claims=claims)


def _more_nodes(shapes: Mapping[str, Hashable]) -> Iterator[Change]:
    """Yield changes that add a node like the first of each shape."""
    first: dict[Hashable, str] = {}
    for name, shape in shapes.items():
        first.setdefault(shape, name)
    for name in first.values():
        yield AddNodes(name, 1)


def _larger_nodes(
    cluster: Cluster,
    plan: Plan,
    shapes: Mapping[str, Hashable],
    classes: Mapping[str, Hashable],
    busiest: int,
) -> Iterator[Change]:
    """Yield changes that double the busiest nodes of each shape, one node of each class."""
    busy: defaultdict[str | None, float] = defaultdict(float)
    for step in plan.steps:
        busy[step.node] += step.phases.duration_seconds
    of_shape: defaultdict[Hashable, dict[Hashable, Node]] = defaultdict(dict)
    for node in sorted(cluster.nodes, key=lambda node: -busy[node.name]):
        of_shape[shapes[node.name]].setdefault(classes[node.name], node)
    for nodes in of_shape.values():
        for node in list(nodes.values())[:busiest]:
            for resource in _DOUBLED:
                if amount := node.allocatable.get(resource):
                    twice = format_resource(resource, 2 * amount)
                    yield SetProperties(("node",), node.name, ((resource, twice),))


def _higher_limits(graph: RunGraph) -> Iterator[Change]:
    """Yield changes that raise the limit of a loop by one, or remove it.

    A loop within another is a group in each iteration of that, and the same changes are yielded for
    each of these groups.
    """
    widths = Counter(group.parent for group in graph.groups if group.kind is GroupKind.ITERATION)
    for group in graph.groups:
        limit, width = group.parallelism, widths[group.name]
        if group.kind is GroupKind.LOOP and 0 < limit < width:
            task = task_of(group.name)
            # If only one iteration waits, OFF would let the same one begin.
            for each in (str(limit + 1), OFF)[: width - limit]:
                yield SetProperties(("loop",), task, (("limit", each),))


def _held_images(graph: RunGraph, cluster: Cluster) -> Iterator[Change]:
    """Yield changes that put an image on all nodes, for images that some node does not hold."""
    used = {
        canonical(step.image): step.image
        for step in reversed(graph.steps)
        if step.image and step.kind is StepKind.CONTAINER
    }
    held = held_sizes(cluster.nodes, used)
    for image, spelled in used.items():
        if None in held[image]:
            yield HoldImage(spelled)


def _shared_volumes(graph: RunGraph, cluster: Cluster) -> Iterator[Change]:
    """Yield changes that make a volume ReadWriteMany, if it ties its users to one node."""
    mounted = {claim for step in graph.steps for claim in step.claims}
    binding = volume_rules((ActiveRun("", graph),), cluster).binding
    for name in binding:
        if name in mounted:
            yield SetProperties(("volume",), name, (("access", SHARED),))
