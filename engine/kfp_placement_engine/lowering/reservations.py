"""Room that other runs have reserved, as activities with a fixed node and a fixed time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering.tables import amounts
from kfp_placement_engine.model.active_runs import ReservedRun
from kfp_placement_engine.problem.problem import AXES, ELEMENTS, PlacementProblem, ProblemArrays
from kfp_placement_engine.units.resources import with_pod


def with_reservations(
    problem: PlacementProblem, reserved: Sequence[ReservedRun]
) -> PlacementProblem:
    """Return the problem with the reserved rooms behind its own activities.

    Rooms on unknown nodes and rooms that have ended are left out. Resources that no step of the
    problem requests do not matter.
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
    # There are few kinds of requests. Each is a class of pods that every node lets on.
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    kind = [kinds.setdefault(tuple(sorted(room.requests.items())), len(kinds)) for _, room in rooms]
    requests = amounts([with_pod(dict(each)) for each in kinds], problem.resource_names)
    offset, width = arrays.feasible.shape
    none = np.full(count, -1, np.int64)
    starts = {
        name: np.full(count, getattr(arrays, name)[-1])
        for name in ("predecessors_start", "successors_start", "claims_start", "holders_start")
    }
    counts = {"A": count, "A + 1": count, "K": len(kinds), "runs": len(reserved)}
    added = _no_rows_but(arrays, counts)._replace(
        requests=requests[kind],
        scored_requests=requests[kind][:, :2],
        duration_seconds=np.maximum(0.0, end - start),
        gene=none,
        class_of=np.array(kind, np.int64) + offset,
        image=none,
        release_seconds=start,
        run=np.array([run for run, _ in rooms], np.int64),
        fixed_node=np.array([index[room.node] for _, room in rooms], np.int64),
        is_running=np.array([room.start_seconds <= 0 for _, room in rooms], np.bool_),
        branch=none,
        run_weight=np.array([run.weight for run in reserved], np.float64),
        containers=np.ones(len(kinds), np.int64),
        feasible=np.ones((len(kinds), width), np.bool_),
        scores_balance=(requests[:, 0] > 0) | (requests[:, 1] > 0),
        **starts,
    )
    first = problem.activities
    flags = np.zeros(count, np.bool_)
    return replace(
        problem,
        arrays=ProblemArrays._make(
            np.concatenate([own, rows]) if rows.shape[0] else own
            for own, rows in zip(arrays, added, strict=True)
        ),
        activity_names=problem.activity_names + tuple(names),
        is_driver=np.concatenate([problem.is_driver, flags]),
        is_step=np.concatenate([problem.is_step, flags]),
        unplaceable=np.concatenate([problem.unplaceable, flags]),
        latency_ms=np.concatenate([problem.latency_ms, np.full((len(kinds), width), np.nan)]),
        ruled=np.concatenate([problem.ruled, np.zeros(len(kinds), np.bool_)]),
        topological=np.concatenate([problem.topological, np.arange(first, first + count)]),
    )


def _no_rows_but(arrays: ProblemArrays, counts: Mapping[str, int]) -> ProblemArrays:
    """Return arrays of the same shapes without rows, but with rows of zeros along named axes."""
    blank = {
        name: np.zeros((counts.get(axes[0], 0), *getattr(arrays, name).shape[1:]), ELEMENTS[name])
        for name, axes in AXES.items()
    }
    return ProblemArrays(**blank)
