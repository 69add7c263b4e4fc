"""Tables for the kernel that follow from a problem, computed once for all its simulations.

Every field of `ProblemTables` has its twin, in the same order, in `tables.h`. In the axes below S =
shapes of pods: pods of one shape need the same room, on the same nodes, and get the same scores for
it. Nodes of one kind run, pull and store equally fast.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kfp_placement_engine.problem.outcomes import branch_paths, branches_of_holders, one_outcome
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    ProblemArrays,
    occupied_seconds,
)

Array = np.ndarray[Any, Any]

ACTIVITY = np.dtype(
    [
        *(
            (name, np.int32)
            for name in (
                "class",
                "shape",
                "gene",
                "image",
                "run",
                "fixed_node",
                "holders_start",
                "holders_end",
            )
        ),
        *((name, np.uint8) for name in ("is_virtual", "is_running", "mounts_volumes")),
        *((name, np.float64) for name in ("release_seconds", "least_seconds", "least_after")),
    ],
    align=True,
)
"""Record of an activity: the fields that the kernel reads together."""

_CACHE_LINE = 64
_MOST_KINDS = 16
"""Largest number of kinds; with more, the table of times on them would cost more than it saves."""
_NOTHING = np.iinfo(np.int64).min


class ProblemTables(NamedTuple):
    """Tables of a problem.

    Attributes:
        of: [A] record `ACTIVITY`, with the class, the shape (-1 = virtual) and the least seconds
            from start to end; the kernel adds the least seconds from there to the end of the run.
        requests: [S, R] requests of a pod.
        needed: [S, R] requests of a pod, but the smallest integer where it requests nothing, as it
            fits there whatever is left.
        scored_requests: [S, 2] CPU and memory as kube-scheduler's resource scores count them.
        class_of_shape: [S] a class of the shape.
        branch_of_shape: [S] innermost branch around its pods, -1 = none.
        branch_of_holder: [L] innermost branch around all its activities, -1 = none.
        tells_apart: [K] whether preferred taints or affinity differ between nodes.
        kind_of: [N] kind of the node.
        predecessors_start, predecessors, successors_start, successors: [A + 1], [E] edges of the
            problem in half the memory; the kernel reads one more number behind the successors.
        place: [A] place in the topological order.
        occupied: [A, kinds] seconds of download, run and upload; empty with many kinds.
        transfer_seconds: [E] seconds of a transfer between two nodes.
        preorder: [N] place of each slot in a walk of a heap (node, left, right).
        slot_at: slots in this order, for a heap of all nodes that are scored for a pod.
        least_completion: [runs] earliest end of the run, which the kernel computes.
        room: free amount of the resource `scarcest`.
        least_work: lower bound of the amount x seconds that activities take of this resource.
        scarcest: the scarcest resource; -1 = unknown, since running pods may exceed the room.
        shapes: number of shapes.
        kinds: number of kinds; 0 = many.
        nodes_scored: number of feasible nodes that kube-scheduler scores.
        words: number of 64-bit words of a set of nodes.
        uses: size of the kernel's table of what branches use, a power of two; 0 = no branches.
    """

    of: Array
    requests: Integers
    needed: Integers
    scored_requests: Integers
    class_of_shape: Integers
    branch_of_shape: Integers
    branch_of_holder: Integers
    tells_apart: Booleans
    kind_of: Integers
    predecessors_start: Array
    predecessors: Array
    successors_start: Array
    successors: Array
    place: Array
    occupied: Floats
    transfer_seconds: Floats
    preorder: Array
    slot_at: Array
    least_completion: Floats
    room: float
    least_work: float
    scarcest: int
    shapes: int
    kinds: int
    nodes_scored: int
    words: int
    uses: int


def tables_of(problem: PlacementProblem) -> ProblemTables:
    """Compute the tables of a problem."""
    arrays, nodes = problem.arrays, problem.nodes
    shape_of, pods = _shapes(arrays)
    requests = arrays.requests[pods]
    kind_of, node_of_kind = _kinds(arrays)
    # The same as `seconds_on` of `tables.h` computes.
    seconds = occupied_seconds(arrays, slice(None), node_of_kind)
    least = seconds.min(axis=1) if node_of_kind.size else 0.0
    least_seconds = np.where(arrays.virtual, arrays.duration_seconds, least)
    scarcest, room, least_work = _scarcest(arrays, least_seconds)
    preorder = np.empty(nodes, np.int32)
    preorder[_heap_walk(nodes)] = np.arange(nodes)
    return ProblemTables(
        of=_activities(arrays, shape_of, least_seconds),
        requests=requests,
        needed=np.where(requests > 0, requests, _NOTHING),
        scored_requests=arrays.scored_requests[pods],
        class_of_shape=arrays.class_of[pods],
        branch_of_shape=arrays.branch[pods],
        branch_of_holder=branches_of_holders(arrays),
        tells_apart=np.asarray(
            arrays.preferred_taints.any(axis=1) | arrays.preferred_weight.any(axis=1)
        ),
        kind_of=kind_of,
        predecessors_start=arrays.predecessors_start.astype(np.int32),
        predecessors=arrays.predecessors.astype(np.int32),
        successors_start=arrays.successors_start.astype(np.int32),
        successors=np.append(arrays.successors, 0).astype(np.int32),
        place=problem.places.astype(np.int32),
        occupied=np.ascontiguousarray(seconds),
        transfer_seconds=arrays.transfer_bytes / problem.link_bytes_per_second,
        preorder=preorder,
        slot_at=_heap_walk(nodes_scored(nodes)),
        least_completion=np.zeros(arrays.run_weight.size),
        room=room,
        least_work=least_work,
        scarcest=scarcest,
        shapes=pods.size,
        kinds=node_of_kind.size,
        nodes_scored=nodes_scored(nodes),
        words=-(-nodes // 64),
        uses=_uses(arrays),
    )


def _shapes(arrays: ProblemArrays) -> tuple[Integers, Integers]:
    """Return [A] the shape of each activity, -1 = virtual, and [S] a pod of each shape.

    Pods of a shape request the same, on the same nodes, in the same branch, and their balance
    counts or does not.
    """
    shape_of_class, pods = _shapes_of_classes(arrays)
    shape_of = np.where(arrays.virtual, -1, shape_of_class[arrays.class_of])
    if not arrays.branch_choice.size:
        return shape_of, pods
    real = np.flatnonzero(~arrays.virtual)
    rows = shape_of[real] * (arrays.branch_choice.size + 1) + arrays.branch[real] + 1
    _, first, shape_of[real] = np.unique(rows, return_index=True, return_inverse=True)
    return shape_of, real[first]


def _shapes_of_classes(arrays: ProblemArrays) -> tuple[Integers, Integers]:
    """Return [K] the shape of each class, branches apart, and a pod of each of these shapes."""
    pods = np.flatnonzero(~arrays.virtual)
    classes, first = np.unique(arrays.class_of[pods], return_index=True)
    requests = np.hstack([arrays.requests, arrays.scored_requests])[pods[first]]
    others = np.column_stack([arrays.feasible, arrays.scores_balance])[classes]
    rows = np.hstack([requests.view(np.uint8), others])
    shape_of = np.zeros(len(arrays.feasible), np.int64)
    if not classes.size:
        return shape_of, pods
    whole_rows = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
    _, pod_of_shape, shape_of[classes] = np.unique(
        whole_rows, return_index=True, return_inverse=True
    )
    return shape_of, pods[first[pod_of_shape]]


def _kinds(arrays: ProblemArrays) -> tuple[Integers, Integers]:
    """Return [N] the kind of each node, and a node of each kind, or no node with many kinds."""
    rates = np.column_stack([arrays.speed, arrays.store_rate, arrays.pull_rate])
    kinds = [*map(tuple, rates.tolist())]
    node_of_kind: dict[tuple[float, ...], int] = {}
    for node, kind in enumerate(kinds):
        node_of_kind.setdefault(kind, node)
    if len(node_of_kind) > _MOST_KINDS:
        return np.zeros(arrays.speed.size, np.int64), np.empty(0, np.int64)
    different = [*node_of_kind]
    kind_of = [different.index(kind) for kind in kinds]
    return np.array(kind_of, np.int64), np.array([*node_of_kind.values()], np.int64)


def _activities(arrays: ProblemArrays, shape_of: Integers, least_seconds: Floats) -> Array:
    """Return [A] the records `ACTIVITY`, each on one line of the cache."""
    count = arrays.class_of.size
    memory = np.zeros(count * ACTIVITY.itemsize + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    of = memory[start : start + count * ACTIVITY.itemsize].view(ACTIVITY)
    for name in ("gene", "image", "run", "fixed_node"):
        of[name] = getattr(arrays, name)
    of["holders_start"], of["holders_end"] = arrays.holders_start[:-1], arrays.holders_start[1:]
    of["class"] = arrays.class_of
    of["shape"] = shape_of
    of["is_virtual"], of["is_running"] = arrays.virtual, arrays.is_running
    of["mounts_volumes"] = np.diff(arrays.claims_start) > 0
    of["release_seconds"], of["least_seconds"] = arrays.release_seconds, least_seconds
    return of


def _scarcest(arrays: ProblemArrays, least_seconds: Floats) -> tuple[int, float, float]:
    """Return the resource whose work takes longest on all nodes, its free amount, and its work."""
    scarcest, most_room, most_work = -1, 0.0, 0.0
    if arrays.is_running.any():
        return scarcest, most_room, most_work
    seconds = np.where(arrays.virtual, 0.0, least_seconds)
    amounts = np.asarray(arrays.requests * seconds[:, None], np.float64)
    pods = ~arrays.virtual & one_outcome(arrays, amounts)
    for resource in range(arrays.requests.shape[1]):
        room = _sum(np.maximum(0.0, arrays.free[:, resource]))
        work = _sum(amounts[pods, resource])
        if room > 0.0 and (scarcest < 0 or work * most_room > most_work * room):
            scarcest, most_room, most_work = resource, room, work
    return scarcest, most_room, most_work


def _uses(arrays: ProblemArrays) -> int:
    """Return the size of a hash table for what branches and choices use: at most half is full."""
    if not arrays.branch_choice.size:
        return 0
    paths = branch_paths(arrays)
    depths = np.array([len(paths[branch]) for branch in range(arrays.branch_choice.size)])
    inside = np.flatnonzero((arrays.branch >= 0) & ~arrays.virtual)
    places = 1 + np.diff(arrays.claims_start)[inside] + (arrays.image[inside] >= 0)
    of_holders = branches_of_holders(arrays)
    most = int((depths[arrays.branch[inside]] * places).sum())
    most = 2 * (most + int(depths[of_holders[of_holders >= 0]].sum()))
    return 1 << (2 * most).bit_length()


def _sum(numbers: Floats) -> float:
    """Return the sum, added in order: numpy's own order of adding depends on the machine."""
    return float(np.cumsum(numbers)[-1]) if numbers.size else 0.0


def nodes_scored(nodes: int) -> int:
    """Return the number of feasible nodes that kube-scheduler scores.

    It scores all of fewer than 100 nodes, else a share that shrinks with the cluster
    (numFeasibleNodesToFind with percentageOfNodesToScore unset, `schedule_one.go`).
    """
    if nodes < 100:
        return nodes
    return max(100, nodes * max(5, 50 - nodes // 125) // 100)


@cache
def _heap_walk(size: int) -> Array:
    """Return the slots of a heap in preorder; in a smaller heap they have the same order."""
    slots: list[int] = []
    ahead = [0]
    while ahead:
        slot = ahead.pop()
        if slot < size:
            slots.append(slot)
            ahead += (2 * slot + 2, 2 * slot + 1)
    return np.array(slots, np.int32)
