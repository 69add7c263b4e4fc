"""Class tables: what each shape of pod finds on each node before anything of the run starts."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering.images import Images
from kfp_placement_engine.lowering.pods import MAX_AMOUNT, PodShape
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.constraints import (
    objection,
    preferred_weight,
    untolerated_preferred_taints,
)
from kfp_placement_engine.model.latency import LatencyTolerance
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.round_trips import latencies_to
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers

UNKNOWN_EXCESS_MS = 1e6
"""What a node of unknown latency is charged: more than any latency a cluster can state."""


@dataclass(frozen=True)
class ClassTables:
    """[K, N] tables; see `problem.ProblemArrays` for those of the same name.

    Attributes:
        usable: feasible, and the pod fits beside what runs already.
        within_limit: the hard latency limit applies.
        latency_ms: round trip to the location, NaN = no rule or unknown.
    """

    feasible: Booleans
    usable: Booleans
    within_limit: Booleans
    preferred_taints: Integers
    preferred_weight: Integers
    latency_ms: Floats
    latency_excess_ms: Floats
    assignment_gain: Floats


class NodeTables(NamedTuple):
    """Node arrays as in `problem.ProblemArrays`."""

    allocatable: Integers
    free: Integers
    scored_used: Integers
    speed: Floats
    store_rate: Floats
    pull_rate: Floats


def amounts(rows: Sequence[Mapping[str, int]], resources: Sequence[str]) -> Integers:
    """[rows, R] amounts of each resource, 0 where it is not named."""
    table = [[min(row.get(name, 0), MAX_AMOUNT) for name in resources] for row in rows]
    return np.array(table, np.int64).reshape(len(rows), len(resources))


def node_tables(cluster: Cluster, resources: Sequence[str], assumptions: Assumptions) -> NodeTables:
    """Lower the nodes."""
    allocatable = amounts([node.allocatable for node in cluster.nodes], resources)
    used = amounts([node.used for node in cluster.nodes], resources)
    scored = [{**node.used, **node.scored_used} for node in cluster.nodes]
    return NodeTables(
        allocatable=allocatable,
        free=allocatable - used,
        scored_used=amounts(scored, ("cpu", "memory")),
        speed=np.array([node.speed for node in cluster.nodes], np.float64),
        store_rate=_rates("store_bytes_per_second", cluster, assumptions),
        pull_rate=_rates("pull_bytes_per_second", cluster, assumptions),
    )


def _rates(name: str, cluster: Cluster, assumptions: Assumptions) -> Floats:
    """[N] what each node states of a rate, else what is assumed."""
    assumed = getattr(assumptions, name)
    return np.array([getattr(node, name) or assumed for node in cluster.nodes])


def class_tables(
    cluster: Cluster,
    shapes: Sequence[PodShape],
    requests: Integers,
    nodes: NodeTables,
    images: Images,
    pinned: Mapping[str, frozenset[str]],
    tolerance: LatencyTolerance,
    weights: ResourceWeights,
) -> ClassTables:
    """Lower what depends on both shape and node.

    Args:
        cluster: the cluster.
        shapes: one for each class.
        requests: [K, R] of the classes.
        nodes: the node arrays.
        images: the images of the classes, and who holds them.
        pinned: nodes that a volume claim allows, if it restricts them.
        tolerance: which nodes count as nearest.
        weights: of the resources in the paper's Eq. (1).
    """
    feasible, taints, weight = _static_tables(cluster, shapes, pinned)
    usable = feasible & _has_room(requests, nodes)
    trips = _round_trips(cluster, shapes)
    limits = np.array(
        [np.inf if shape.max_latency_ms is None else shape.max_latency_ms for shape in shapes]
    )
    return ClassTables(
        feasible=feasible,
        usable=usable,
        within_limit=np.isinf(limits)[:, None] | (trips <= limits[:, None]),
        preferred_taints=taints,
        preferred_weight=weight,
        latency_ms=trips,
        latency_excess_ms=_excess(shapes, trips, limits, usable, tolerance),
        assignment_gain=_assignment_gain(requests, nodes, images, weights),
    )


def _excess(
    shapes: Sequence[PodShape],
    trips: Floats,
    limits: Floats,
    usable: Booleans,
    tolerance: LatencyTolerance,
) -> Floats:
    """[K, N] what the latency rules count as too far.

    Plans keep to hard limits; what a baseline makes of them counts as a broken rule.
    """
    excess = np.zeros(trips.shape)
    for row, shape in enumerate(shapes):
        if shape.location:
            excess[row] = _beyond_ms(trips[row], limits[row])
        if shape.nearest:
            beyond = _band_excess_ms(trips[row], usable[row], tolerance)
            excess[row] = np.maximum(excess[row], beyond)
    return excess


def _static_tables(
    cluster: Cluster, shapes: Sequence[PodShape], pinned: Mapping[str, frozenset[str]]
) -> tuple[Booleans, Integers, Integers]:
    """[K, N] `feasible`, `preferred_taints` and `preferred_weight`."""
    count = (len(shapes), len(cluster.nodes))
    feasible = np.zeros(count, np.bool_)
    taints, weight = np.zeros(count, np.int64), np.zeros(count, np.int64)
    # Many shapes differ in their requests only.
    filters: dict[object, tuple[Booleans, Integers, Integers]] = {}
    reachable = {
        claim: np.array([node.name in names for node in cluster.nodes], np.bool_)
        for claim, names in pinned.items()
    }
    for row, shape in enumerate(shapes):
        rules = (shape.node_selector, shape.affinity, shape.tolerations)
        if rules not in filters:
            filters[rules] = _static_rules(cluster, shape)
        feasible[row], taints[row], weight[row] = filters[rules]
        for claim in shape.claims:
            if claim in reachable:
                feasible[row] &= reachable[claim]
    return feasible, taints, weight


def _static_rules(cluster: Cluster, shape: PodShape) -> tuple[Booleans, Integers, Integers]:
    """Rows of `feasible`, `preferred_taints` and `preferred_weight` for one shape."""
    selector = dict(shape.node_selector)
    rows = [
        (
            objection(selector, shape.affinity, shape.tolerations, node) is None,
            untolerated_preferred_taints(shape.tolerations, node),
            preferred_weight(shape.affinity, node),
        )
        for node in cluster.nodes
    ]
    feasible, taints, weight = zip(*rows, strict=True)
    return np.array(feasible, np.bool_), np.array(taints, np.int64), np.array(weight, np.int64)


def _has_room(requests: Integers, nodes: NodeTables) -> Booleans:
    """[K, N] whether the pod fits beside what runs already; what it requests none of is there."""
    room = np.ones((len(requests), len(nodes.free)), np.bool_)
    for amount, free in zip(requests.T, nodes.free.T, strict=True):
        room &= (amount[:, None] <= free) | (amount[:, None] == 0)
    return room


def _assignment_gain(
    requests: Integers, nodes: NodeTables, images: Images, weights: ResourceWeights
) -> Floats:
    """What the paper's Eq. (1) gains from an assignment: utilisation and image locality."""
    sizes = np.maximum(nodes.allocatable, 1)
    gain = weights.cpu * (requests[:, [0]] / sizes[:, 0])
    gain += weights.memory * (requests[:, [1]] / sizes[:, 1])
    gain += images.present_of_class
    return gain


def _round_trips(cluster: Cluster, shapes: Sequence[PodShape]) -> Floats:
    """[K, N] round trips to each class's location in milliseconds, NaN = no rule or unknown."""
    trips = np.full((len(shapes), len(cluster.nodes)), np.nan)
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, shape in enumerate(shapes):
        if shape.location:
            rows[shape.location].append(row)
    for location, of_location in rows.items():
        known = latencies_to(location, cluster.latencies)
        trips[of_location] = [known.get(node.name, np.nan) for node in cluster.nodes]
    return trips


def _band_excess_ms(trips: Floats, usable: Booleans, tolerance: LatencyTolerance) -> Floats:
    """[N] round trip beyond the tolerance band, UNKNOWN_EXCESS_MS where it is unknown.

    The band begins at the best usable node; where no round trip is known, nothing is beyond it.
    """
    known = trips[usable & ~np.isnan(trips)]
    if known.size == 0:
        return np.zeros_like(trips)
    return _beyond_ms(trips, tolerance.limit_ms(float(known.min())))


def _beyond_ms(trips: Floats, limit: float) -> Floats:
    """[N] round trip beyond a limit, UNKNOWN_EXCESS_MS where it is unknown; 0 without a limit."""
    if math.isinf(limit):
        return np.zeros_like(trips)
    return np.where(np.isnan(trips), UNKNOWN_EXCESS_MS, np.maximum(0.0, trips - limit))
