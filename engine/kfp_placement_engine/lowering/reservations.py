"""Room that other plans have reserved: activities that go to one node at one time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering.tables import amounts
from kfp_placement_engine.model.active_runs import ReservedRun
from kfp_placement_engine.problem.problem import PlacementProblem, ProblemArrays


def with_reservations(
    problem: PlacementProblem, reserved: Sequence[ReservedRun]
) -> PlacementProblem:
    """The problem with the reserved rooms added behind its own activities.

    Rooms on unknown nodes and such that have ended are left out. Requests of resources that no step
    of the problem asks for do not matter.
    """
    index = {name: number for number, name in enumerate(problem.node_names)}
    rooms = [
        (number, room)
        for number, run in enumerate(reserved, problem.arrays.run_weight.size)
        for room in run.rooms
        if room.node in index and room.end_seconds > 0
    ]
    if not rooms:
        return problem
    arrays, count = problem.arrays, len(rooms)
    names = [reserved[number - arrays.run_weight.size].key for number, _ in rooms]
    start = np.maximum(0.0, [room.start_seconds for _, room in rooms])
    end = np.array([room.end_seconds for _, room in rooms])
    # Few kinds of requests: each is a class that every node lets on.
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    kind = [kinds.setdefault(tuple(sorted(room.requests.items())), len(kinds)) for _, room in rooms]
    requests = amounts([{**dict(each), "pods": 1} for each in kinds], problem.resource_names)
    offset, width = arrays.feasible.shape
    of_room = {
        "requests": requests[kind],
        "scored_requests": requests[kind][:, :2],
        "duration_seconds": np.maximum(0.0, end - start),
        "scales": np.zeros(count, np.bool_),
        "virtual": np.zeros(count, np.bool_),
        "gene": np.full(count, -1, np.int64),
        "class_of": np.array(kind, np.int64) + offset,
        "image": np.full(count, -1, np.int64),
        "download_bytes": np.zeros(count),
        "upload_bytes": np.zeros(count),
        "release_seconds": start,
        "run": np.array([run for run, _ in rooms], np.int64),
        "fixed_node": np.array([index[room.node] for _, room in rooms], np.int64),
        "is_running": np.array([room.start_seconds <= 0 for _, room in rooms], np.bool_),
        "predecessors_start": np.full(count, arrays.predecessors_start[-1], np.int64),
        "successors_start": np.full(count, arrays.successors_start[-1], np.int64),
        "claims_start": np.full(count, arrays.claims_start[-1], np.int64),
        "iteration": np.full(count, -1, np.int64),
        "entry_iteration": np.full(count, -1, np.int64),
        "run_weight": np.array([run.weight for run in reserved], np.float64),
    }
    of_kind = {name: _rows(arrays, name, len(kinds), width) for name in _CLASS_TABLES} | {
        "containers": np.ones(len(kinds), arrays.containers.dtype),
        "feasible": np.ones((len(kinds), width), np.bool_),
        "scores_balance": (requests[:, 0] > 0) | (requests[:, 1] > 0),
    }
    longer = {
        name: np.concatenate([getattr(arrays, name), rows])
        for name, rows in (of_kind | of_room).items()
    }
    first = problem.activities
    flags = np.zeros(count, np.bool_)
    return replace(
        problem,
        arrays=arrays._replace(**longer),
        activity_names=problem.activity_names + tuple(names),
        is_driver=np.concatenate([problem.is_driver, flags]),
        is_step=np.concatenate([problem.is_step, flags]),
        unplaceable=np.concatenate([problem.unplaceable, flags]),
        latency_ms=np.concatenate([problem.latency_ms, np.full((len(kinds), width), np.nan)]),
        ruled=np.concatenate([problem.ruled, np.zeros(len(kinds), np.bool_)]),
        topological=np.concatenate([problem.topological, np.arange(first, first + count)]),
    )


_CLASS_TABLES = (
    "preferred_taints",
    "preferred_weight",
    "scores_affinity",
    "latency_excess_ms",
    "assignment_gain",
    "image_scored",
)


def _rows(arrays: ProblemArrays, name: str, count: int, width: int) -> np.ndarray:
    """Zeros for so many classes in the shape of a class table."""
    table = getattr(arrays, name)
    return np.zeros((count, width)[: table.ndim], table.dtype)
