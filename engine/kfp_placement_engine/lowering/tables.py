"""Tables of pod classes by nodes: filters, scores and round trips before the run starts pods."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering.images import Images
from kfp_placement_engine.lowering.pods import MAX_AMOUNT, PodShape
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.constraints import (
    objections,
    preferred_weight,
    untolerated_preferred_taints,
)
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.node_rules.round_trips import latencies_to
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers
from kfp_placement_engine.units.resources import UNSTATED

UNKNOWN_EXCESS_MS = 1e6
"""Excess for a node of unknown latency; larger than any latency that a cluster can state."""


@dataclass(frozen=True)
class ClassTables:
    """The tables of pod classes by nodes, [K, N]; see `problem.ProblemArrays` for the other fields.

    Attributes:
        usable: whether the node is feasible and the pod fits beside the pods that run already.
        within_limit: whether the node keeps the hard latency limit, if there is one.
        latency_ms: round trip to the location; NaN = no rule, or unknown.
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
    """The arrays of the nodes, as in `problem.ProblemArrays`."""

    allocatable: Integers
    free: Integers
    scored_used: Integers
    speed: Floats
    store_rate: Floats
    pull_rate: Floats


def amounts(rows: Sequence[Mapping[str, int]], resources: Sequence[str]) -> Integers:
    """Return the amounts of each resource as [rows, R]; 0 where a row does not name it."""
    table = [[min(row.get(name, 0), MAX_AMOUNT) for name in resources] for row in rows]
    return np.array(table, np.int64).reshape(len(rows), len(resources))


def node_tables(
    cluster: Cluster, wholes: Mapping[str, int], resources: Sequence[str], assumptions: Assumptions
) -> NodeTables:
    """Return the arrays of the cluster's nodes.

    Args:
        cluster: cluster to plan on.
        wholes: amounts of made-up resources that every node has.
        resources: [R] names of the resources.
        assumptions: assumed rates.
    """
    sizes = [{**UNSTATED, **node.allocatable, **wholes} for node in cluster.nodes]
    allocatable = amounts(sizes, resources)
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
    """Return as [N] the rate that each node states, or else the assumed rate."""
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
    """Return the tables that depend on both a pod's shape and a node.

    Args:
        cluster: cluster to plan on.
        shapes: [K] shape of each class.
        requests: [K, R] requests of each class.
        nodes: arrays of the nodes.
        images: images of the classes, and the nodes that hold them.
        pinned: volume claim -> names of the nodes that it allows, if it restricts them.
        tolerance: band of round trips within which nodes count as nearest.
        weights: weights of the resources in the paper's Eq. (1).
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
    """Return as [K, N] how far each round trip is above what the latency rules allow.

    Hard limits count too: plans always keep them, but baselines may break them.
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
    """Return `feasible`, `preferred_taints` and `preferred_weight`, each as [K, N]."""
    count = (len(shapes), len(cluster.nodes))
    feasible = np.zeros(count, np.bool_)
    taints, weight = np.zeros(count, np.int64), np.zeros(count, np.int64)
    # Many shapes differ only in their requests, and requests are not part of these rules.
    filters: dict[object, tuple[Booleans, Integers, Integers]] = {}
    reachable = {
        claim: np.array([node.name in names for node in cluster.nodes], np.bool_)
        for claim, names in pinned.items()
    }
    for row, shape in enumerate(shapes):
        rules = (shape.node_selector, shape.affinity, shape.tolerations, shape.linux_only)
        if rules not in filters:
            filters[rules] = _static_rules(cluster, shape)
        feasible[row], taints[row], weight[row] = filters[rules]
        feasible[row] &= not shape.is_refused
        for claim in shape.claims:
            if claim in reachable:
                feasible[row] &= reachable[claim]
    return feasible, taints, weight


def _static_rules(cluster: Cluster, shape: PodShape) -> tuple[Booleans, Integers, Integers]:
    """Return the rows of `feasible`, `preferred_taints` and `preferred_weight` for one shape."""
    nodes, selector = cluster.nodes, dict(shape.node_selector)
    against = objections(
        selector, shape.affinity, shape.tolerations, nodes, linux_only=shape.linux_only
    )
    taints = [untolerated_preferred_taints(shape.tolerations, node) for node in nodes]
    weight = [preferred_weight(shape.affinity, node) for node in nodes]
    feasible = [each is None for each in against]
    return np.array(feasible, np.bool_), np.array(taints, np.int64), np.array(weight, np.int64)


def _has_room(requests: Integers, nodes: NodeTables) -> Booleans:
    """Return as [K, N] whether the pod fits beside the pods that run already."""
    room = np.ones((len(requests), len(nodes.free)), np.bool_)
    for amount, free in zip(requests.T, nodes.free.T, strict=True):
        room &= (amount[:, None] <= free) | (amount[:, None] == 0)
    return room


def _assignment_gain(
    requests: Integers, nodes: NodeTables, images: Images, weights: ResourceWeights
) -> Floats:
    """Return as [K, N] the gain of an assignment by the paper's Eq. (1), with image locality."""
    sizes = np.maximum(nodes.allocatable, 1)
    # The first two resources are CPU and memory.
    gain = weights.cpu * (requests[:, [0]] / sizes[:, 0])
    gain += weights.memory * (requests[:, [1]] / sizes[:, 1])
    gain += images.present_of_class
    return gain


def _round_trips(cluster: Cluster, shapes: Sequence[PodShape]) -> Floats:
    """Return as [K, N] round trips to each class's location, in ms; NaN = no rule, or unknown."""
    trips = np.full((len(shapes), len(cluster.nodes)), np.nan)
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, shape in enumerate(shapes):
        if shape.location:
            rows[shape.location].append(row)
    for location, of_location in rows.items():
        latencies = latencies_to(location, cluster.latencies)
        trips[of_location] = [latencies.get(node.name, np.nan) for node in cluster.nodes]
    return trips


def _band_excess_ms(trips: Floats, usable: Booleans, tolerance: LatencyTolerance) -> Floats:
    """Return as [N] how far each round trip is above the tolerance band; see `_beyond_ms`.

    The band begins at the best usable node. If no round trip is known, no node is above the band.
    """
    usable_trips = trips[usable & ~np.isnan(trips)]
    if usable_trips.size == 0:
        return np.zeros_like(trips)
    return _beyond_ms(trips, tolerance.limit_ms(float(usable_trips.min())))


def _beyond_ms(trips: Floats, limit: float) -> Floats:
    """Return as [N] how far each round trip is above a limit; UNKNOWN_EXCESS_MS if not known."""
    if math.isinf(limit):
        return np.zeros_like(trips)
    return np.where(np.isnan(trips), UNKNOWN_EXCESS_MS, np.maximum(0.0, trips - limit))
