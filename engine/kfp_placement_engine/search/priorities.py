"""Priority rules for list scheduling: the smaller a number, the more urgent the activity.

Simple rules are the fair part of every comparison: on many clusters the best of a dozen is within a
percent of the bound, and the search starts from them.
"""

import numpy as np

from kfp_placement_engine.problem.problem import Floats, PlacementProblem


def upward_ranks(problem: PlacementProblem) -> Floats:
    """[A] mean time of the longest path from the activity's start to the end of the run (HEFT)."""
    arrays = problem.arrays
    seconds = np.where(
        arrays.scales,
        arrays.duration_seconds * np.mean(1.0 / arrays.speed),
        arrays.duration_seconds,
    )
    seconds = seconds + (arrays.download_bytes + arrays.upload_bytes) * np.mean(
        1.0 / arrays.store_rate
    )
    # Plain lists: numpy takes longer for a few successors than Python does.
    rank, bounds = seconds.tolist(), arrays.successors_start.tolist()
    successors = arrays.successors.tolist()
    for activity in reversed(problem.topological.tolist()):
        after = successors[bounds[activity] : bounds[activity + 1]]
        rank[activity] += max((rank[each] for each in after), default=0.0)
    return np.array(rank, np.float64)


def cpu_share(problem: PlacementProblem) -> Floats:
    """[A] requested CPU against the largest node's."""
    arrays = problem.arrays
    return np.asarray(arrays.requests[:, 0] / max(1, int(arrays.allocatable[:, 0].max())))


def priority_rules(problem: PlacementProblem) -> dict[str, Floats]:
    """The rules by name, best first as a rule of thumb."""
    rank, cpu = upward_ranks(problem), cpu_share(problem)
    duration = problem.arrays.duration_seconds
    horizon = float(rank.max(initial=1.0))
    ruled = problem.ruled[problem.arrays.class_of]
    near_users_first = {"near-users-first": -rank - 2 * horizon * ruled} if ruled.any() else {}
    return {
        **near_users_first,
        "longest-path": -rank,
        "longest-path-then-cpu": -(np.round(rank / horizon, 2) + 1e-3 * cpu),
        "largest-area": -(cpu * duration),
        "largest-cpu": -(cpu + 1e-6 * rank / horizon),
        "longest-first": -duration,
        "smallest-cpu": cpu - 1e-6 * rank / horizon,
        "creation": np.arange(problem.activities, dtype=np.float64),
    }
