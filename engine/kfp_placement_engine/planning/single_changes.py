"""The single changes that may shorten a run: what to try, and what each of them costs.

They are: one empty node more of each shape there is; one node with twice the CPU, or the memory;
each limit of a loop one up, or off; one image held by every node; one volume ReadWriteMany.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.pods import requests_of
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
from kfp_placement_engine.model.resources import free_room
from kfp_placement_engine.model.round_trips import latencies_to
from kfp_placement_engine.model.run_graph import GroupKind, NodeSelectorTerm, RunGraph, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.planning.applied_changes import group_of, lasting_taints

_DOUBLED = ("cpu", "memory")


def _check_amounts(params: "SearchRound | SuggestionParams") -> None:
    for each in fields(params):
        value = getattr(params, each.name)
        if isinstance(value, int | float) and not value >= 0:
            raise PlanningError(f"{each.name} = {value!r}; it must be 0 or more")


@dataclass(frozen=True)
class SearchRound:
    """One round of the search.

    Attributes:
        changes: how many take part, the most promising ones.
        work: spent on each search.
        leader_searches: of the most promising change, each with another seed.
    """

    changes: int
    work: int
    leader_searches: int = 1

    def __post_init__(self) -> None:
        """Refuse negative values."""
        _check_amounts(self)


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
        screening_work: spent on each change to see which are promising; 20 ms.
        rounds: in which fewer and fewer are searched, each for longer; 0.1 s and 0.4 s a search.
        near: a gain that is less than the best by at most this share of it counts as equal to it.
        nothing: a gain below this share of the run is not worth a change.
    """

    every_node: int = 8
    busiest: int = 3
    emptiest: int = 1
    most_images: int = 10
    screening_work: int = 1_500_000
    rounds: tuple[SearchRound, ...] = (
        # Four searches keep two cores busy to the end.
        SearchRound(4, 8_000_000),
        SearchRound(1, 34_000_000, leader_searches=4),
    )
    near: float = 0.05
    nothing: float = 0.01

    def __post_init__(self) -> None:
        """Refuse negative values."""
        _check_amounts(self)


@dataclass(frozen=True)
class SingleChange:
    """A change to try.

    Attributes:
        change: what changes.
        kind: equal for changes that come to the same, of which one is worth naming: the same for
            two nodes of one shape that are equally used.
    """

    change: Change
    kind: Hashable


def single_changes(
    graph: RunGraph, cluster: Cluster, plan: Plan, params: SuggestionParams
) -> list[SingleChange]:
    """The changes to try, each once.

    Args:
        graph: the run.
        cluster: the cluster.
        plan: the present plan of the run, which says where most is to gain.
        params: how many are tried.
    """
    shapes = _Shapes(graph, cluster)
    return [
        *_more_nodes(cluster, shapes),
        *_larger_nodes(graph, cluster, plan, shapes, params),
        *_higher_limits(graph),
        *_held_images(graph, cluster, plan, params.most_images),
        *_shared_volumes(graph, cluster),
    ]


class _Shapes:
    """What the nodes of a cluster are to a run: equal shapes take the same pods, as fast."""

    def __init__(self, graph: RunGraph, cluster: Cluster) -> None:
        self._labels = _named_labels(graph, cluster)
        self._images = {canonical(step.image) for step in graph.steps if step.image}
        places = {step.location for step in graph.steps if step.location}
        self._trips = [latencies_to(place, cluster.latencies) for place in sorted(places)]
        claims = {claim.name for claim in graph.claims}
        self._used_on = [set(each.used_on) for each in cluster.claims if each.name in claims]
        self.of = {node.name: self._shape(node) for node in cluster.nodes}

    def _shape(self, node: Node) -> Hashable:
        return (
            tuple(sorted((name, _rounded(name, n)) for name, n in node.allocatable.items())),
            node.speed,
            node.store_bytes_per_second,
            node.pull_bytes_per_second,
            lasting_taints(node),
            tuple((key, node.labels.get(key)) for key in self._labels),
            tuple(trips.get(node.name) for trips in self._trips),
        )

    def state(self, node: Node) -> Hashable:
        """The shape, and all else that tells the node from another: its load, images, volumes."""
        held = self._images.intersection(map(canonical, node.images))
        return (
            self.of[node.name],
            tuple(sorted(node.used.items())),
            tuple(sorted(node.scored_used.items())),
            node.taints,
            node.unschedulable,
            tuple(sorted(held)),
            tuple(node.name in names for names in self._used_on),
        )


def _rounded(resource: str, amount: int) -> float:
    """Bytes to two figures: machines of one type differ by some MiB."""
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return float(f"{amount:.2g}") if is_bytes else amount


def _named_labels(graph: RunGraph, cluster: Cluster) -> list[str]:
    """Keys of the node labels that the run, or a volume of it, asks for."""
    terms: list[NodeSelectorTerm] = []
    keys: set[str] = set()
    for step in graph.steps:
        keys.update(step.node_selector)
        terms += step.affinity.required or ()
        terms += (preferred.term for preferred in step.affinity.preferred)
    mounted = {claim.name for claim in graph.claims}
    for claim in cluster.claims:
        if claim.name in mounted:
            terms += claim.required_terms or ()
    keys.update(each.key for term in terms for each in term.requirements if not each.is_field)
    return sorted(keys)


def _more_nodes(cluster: Cluster, shapes: _Shapes) -> Iterator[SingleChange]:
    seen: set[Hashable] = set()
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for node in cluster.nodes:
        groups[group_of(node.name)].append(node.name)
    names = {node.name for node in cluster.nodes}
    for node in cluster.nodes:
        shape, group = shapes.of[node.name], group_of(node.name)
        if shape in seen:
            continue
        seen.add(shape)
        members = groups[group] if group and group not in names else []
        is_one_shape = len(members) > 1 and len({shapes.of[each] for each in members}) == 1
        change = AddNodes(group if is_one_shape else node.name, 1)
        yield SingleChange(change, ("more", shape))


def _larger_nodes(
    graph: RunGraph, cluster: Cluster, plan: Plan, shapes: _Shapes, params: SuggestionParams
) -> Iterator[SingleChange]:
    is_every = len(cluster.nodes) <= params.every_node
    nodes = cluster.nodes if is_every else tuple(_telling_nodes(cluster, plan, shapes, params))
    for node in nodes:
        for resource in _DOUBLED:
            amount = node.allocatable.get(resource, 0)
            if amount and (is_every or _may_run_out(graph, node, resource)):
                change = ResizeNodes(node.name, ((resource, 2 * amount),))
                yield SingleChange(change, ("larger", resource, shapes.state(node)))


def _telling_nodes(
    cluster: Cluster, plan: Plan, shapes: _Shapes, params: SuggestionParams
) -> Iterable[Node]:
    """Of each shape a few nodes, of which no two are alike."""
    busy: defaultdict[str, float] = defaultdict(float)
    for step in plan.steps:
        if step.node and step.start_seconds is not None and step.finish_seconds is not None:
            busy[step.node] += step.finish_seconds - step.start_seconds
    of_shape: defaultdict[Hashable, dict[Hashable, Node]] = defaultdict(dict)
    for node in sorted(cluster.nodes, key=lambda node: -busy[node.name]):
        of_shape[shapes.of[node.name]].setdefault(shapes.state(node), node)
    chosen: set[str] = set()
    for states in of_shape.values():
        alike = list(states.values())
        emptiest = sorted(alike, key=lambda node: sum(node.used.values()))
        telling = (*alike[: params.busiest], *emptiest[: params.emptiest])
        chosen.update(node.name for node in telling)
    return (node for node in cluster.nodes if node.name in chosen)


def _may_run_out(graph: RunGraph, node: Node, resource: str) -> bool:
    """Whether the node may be full of a resource while it has room of the other of the two."""
    free = free_room(node.allocatable, node.used)
    (other,) = (name for name in _DOUBLED if name != resource)
    requests = [requests_of(graph, step) for step in graph.steps]
    if sum(each.get(resource, 0) for each in requests) <= free[resource]:
        return False
    return any(
        each.get(resource, 0) * free.get(other, 0) > each.get(other, 0) * free[resource]
        for each in requests
    )


def _higher_limits(graph: RunGraph) -> Iterator[SingleChange]:
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
            yield SingleChange(LoopLimit(task, raised), ("limit", task, None if free else raised))


def _held_images(
    graph: RunGraph, cluster: Cluster, plan: Plan, most: int
) -> Iterator[SingleChange]:
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
        yield SingleChange(HoldImage(spelled[image]), ("image", image))


def _shared_volumes(graph: RunGraph, cluster: Cluster) -> Iterator[SingleChange]:
    mounted = {use.claim for step in graph.steps for use in step.claims}
    for name in sorted(volume_rules((ActiveRun("", graph),), cluster).binding & mounted):
        yield SingleChange(ClaimAccess(name, SHARED), ("volume", name))
