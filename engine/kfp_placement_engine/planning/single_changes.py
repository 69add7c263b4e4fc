"""The single changes that may shorten a run: what to try, and what each of them costs.

They are: one empty node more of each shape there is; one node with twice the CPU, or the memory;
each limit of a loop one up, or off; one image held by every node; one volume ReadWriteMany.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering import lower
from kfp_placement_engine.lowering.volumes import volume_rules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.changes import (
    SHARED,
    AddNodes,
    Change,
    ClaimAccess,
    HoldImage,
    LoopLimit,
    ResizeNodes,
)
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.images import canonical, held_sizes
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.resources import Resources
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.planning.applied_changes import empty_copy, group_of
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.problem.problem import AXES

_DOUBLED = ("cpu", "memory")
_BYTES = 10**7
"""Amounts from here on are bytes."""


class SearchRound(NamedTuple):
    """One round of the search.

    Attributes:
        changes: how many take part, the most promising ones; None = all.
        work: spent on each search.
        leader_searches: of the most promising change, each with another seed.
    """

    changes: int | None
    work: int
    leader_searches: int = 1


@dataclass(frozen=True)
class SuggestionParams:
    """How single changes are chosen, tried and ranked.

    Work is counted as by `trial_work`; the times are those of two cores at a run of 100 steps on 50
    nodes.

    Attributes:
        every_node: in a cluster of at most this many nodes each is tried at twice its size.
        busiest, emptiest: in a larger one this many of each shape: those with most to do in the
            plan, and those with most room.
        most_images: images tried at most; those that take the plan longest to pull come first.
        rounds: in which fewer and fewer are searched, each for longer: 20 ms, 0.1 s and 0.4 s a
            search.
        near: a gain that is less than the best by at most this share of it counts as equal to it.
        nothing: a gain below this share of the run is not worth a change.
    """

    every_node: int = 8
    busiest: int = 3
    emptiest: int = 1
    most_images: int = 10
    rounds: tuple[SearchRound, ...] = (
        SearchRound(None, 1_500_000),
        # Four searches keep two cores busy to the end.
        SearchRound(4, 8_000_000),
        SearchRound(1, 34_000_000, leader_searches=4),
    )
    near: float = 0.05
    nothing: float = 0.01


_Kinds = Iterator[tuple[Change, Hashable]]
"""Changes to try, each with its kind."""


def single_changes(
    graph: RunGraph, cluster: Cluster, plan: Plan, params: SuggestionParams
) -> dict[Change, Hashable]:
    """The changes to try, each with its kind.

    The kind is equal for changes that come to the same, of which one is worth naming: the same for
    two nodes of one shape that are equally used.

    Args:
        graph: the run.
        cluster: the cluster.
        plan: the present plan of the run, which says where most is to gain.
        params: how many are tried.
    """
    shapes = _kinds_of_nodes(graph, _emptied(cluster))
    return dict(
        chain(
            _more_nodes(cluster, shapes),
            _larger_nodes(graph, cluster, plan, shapes, params),
            _higher_limits(graph),
            _held_images(graph, cluster, plan, params.most_images),
            _shared_volumes(graph, cluster),
        )
    )


def _kinds_of_nodes(graph: RunGraph, cluster: Cluster) -> dict[str, Hashable]:
    """What each node is to a run: nodes of one kind take the same pods, as fast."""
    nodes = tuple(replace(node, allocatable=_rounded(node.allocatable)) for node in cluster.nodes)
    cluster = replace(cluster, nodes=nodes)
    options = lowering_options_of((ActiveRun("", graph),), cluster, PlanOptions())
    problem = lower(graph, cluster, options).problem
    columns = [problem.latency_ms.T]
    for name, axes in AXES.items():
        if "N" in axes:
            columns.append(np.moveaxis(getattr(problem.arrays, name), axes.index("N"), 0))
    return {
        node.name: (frozenset(node.allocatable.items()), *(each[at].tobytes() for each in columns))
        for at, node in enumerate(nodes)
    }


def _rounded(allocatable: Resources) -> Resources:
    """Bytes to two figures: machines of one type differ by some MiB."""
    return {
        name: int(float(f"{amount:.2g}")) if amount >= _BYTES else amount
        for name, amount in allocatable.items()
    }


def _emptied(cluster: Cluster) -> Cluster:
    """The cluster of fresh machines like its nodes."""
    claims = tuple(replace(claim, used_on=()) for claim in cluster.claims)
    nodes = tuple(empty_copy(node, node.name) for node in cluster.nodes)
    return replace(cluster, nodes=nodes, claims=claims)


def _more_nodes(cluster: Cluster, shapes: Mapping[str, Hashable]) -> _Kinds:
    names = {node.name for node in cluster.nodes}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in shapes:
        groups[group_of(name)].append(name)
    seen: set[Hashable] = set()
    for name, shape in shapes.items():
        if shape in seen:
            continue
        seen.add(shape)
        group = group_of(name)
        alike = {shapes[each] for each in groups[group]}
        is_named = group and group not in names and len(groups[group]) > 1 and len(alike) == 1
        yield (AddNodes(group if is_named else name, 1), ("more", shape))


def _larger_nodes(
    graph: RunGraph,
    cluster: Cluster,
    plan: Plan,
    shapes: Mapping[str, Hashable],
    params: SuggestionParams,
) -> _Kinds:
    """Of few nodes each; of many, of each shape a few, of which no two are alike."""
    kinds, nodes = _kinds_of_nodes(graph, cluster), cluster.nodes
    if len(nodes) > params.every_node:
        busy: defaultdict[str | None, float] = defaultdict(float)
        for step in plan.steps:
            busy[step.node] += (step.finish_seconds or 0.0) - (step.start_seconds or 0.0)
        of_shape: defaultdict[Hashable, dict[Hashable, Node]] = defaultdict(dict)
        for node in sorted(nodes, key=lambda node: -busy[node.name]):
            of_shape[shapes[node.name]].setdefault(kinds[node.name], node)
        chosen: set[str] = set()
        for states in of_shape.values():
            alike = list(states.values())
            emptiest = sorted(alike, key=lambda node: sum(node.used.values()))
            telling = (*alike[: params.busiest], *emptiest[: params.emptiest])
            chosen.update(node.name for node in telling)
        nodes = tuple(node for node in nodes if node.name in chosen)
    for node in nodes:
        for resource in _DOUBLED:
            amount = node.allocatable.get(resource, 0)
            if amount:
                change = ResizeNodes(node.name, ((resource, 2 * amount),))
                yield (change, ("larger", resource, kinds[node.name]))


def _higher_limits(graph: RunGraph) -> _Kinds:
    """Of the same loop in several iterations of another the widest counts."""
    iterations = [group for group in graph.groups if group.kind is GroupKind.ITERATION]
    widths = Counter(group.parent for group in iterations)
    limits: dict[str, int] = {}
    widest: Counter[str] = Counter()
    for group in graph.groups:
        if group.kind is GroupKind.LOOP and 0 < group.parallelism < widths[group.name]:
            task = task_of(group.name)
            limits[task] = group.parallelism
            widest[task] = max(widest[task], widths[group.name])
    for task, limit in limits.items():
        for raised in (limit + 1, None):
            free = raised is None or raised >= widest[task]
            yield (LoopLimit(task, raised), ("limit", task, None if free else raised))


def _held_images(graph: RunGraph, cluster: Cluster, plan: Plan, most: int) -> _Kinds:
    pulling: defaultdict[str, float] = defaultdict(float)
    spelled: dict[str, str] = {}
    for step in graph.steps:
        if step.image and step.kind is StepKind.CONTAINER:
            spelled.setdefault(canonical(step.image), step.image)
    for planned in plan.steps:
        if planned.image:
            pulling[canonical(planned.image)] += planned.image_pull_seconds
    held = held_sizes(cluster.nodes, spelled)
    missing = [image for image in spelled if None in held[image]]
    missing.sort(key=lambda image: -pulling[image])
    for image in missing[:most]:
        yield (HoldImage(spelled[image]), ("image", image))


def _shared_volumes(graph: RunGraph, cluster: Cluster) -> _Kinds:
    mounted = {use.claim for step in graph.steps for use in step.claims}
    for name in sorted(volume_rules((ActiveRun("", graph),), cluster).binding & mounted):
        yield (ClaimAccess(name, SHARED), ("volume", name))
