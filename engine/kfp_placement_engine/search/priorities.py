"""Priority rules for list scheduling: the smaller a number, the more urgent the activity.

Every fair comparison includes simple rules: on many clusters the best of a dozen is within a
percent of the bound. The search starts from them.
"""

import numpy as np

from kfp_placement_engine.problem.problem import Floats, PlacementProblem

_RUN_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def upward_ranks(problem: PlacementProblem) -> Floats:
    """Return [A] the mean time of the longest path from each activity's start to the run's end.

    These are the upward ranks of HEFT (Topcuoglu, Hariri, Wu 2002).
    """
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
        rank[activity] += max((rank[later] for later in after), default=0.0)
    return np.array(rank, np.float64)


def cpu_share(problem: PlacementProblem) -> Floats:
    """Return [A] the requested CPU as a share of the largest node's."""
    arrays = problem.arrays
    return np.asarray(arrays.requests[:, 0] / max(1, int(arrays.allocatable[:, 0].max())))


def priority_rules(problem: PlacementProblem) -> dict[str, Floats]:
    """Return [A] numbers by the name of each rule; rules that are usually better come first."""
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


def run_orders(problem: PlacementProblem, longest_path: Floats) -> list[Floats]:
    """Return rules for several runs, from nearly the longest path first to run after run.

    Runs with the least work for their weight come first, which completes them earliest on average
    (Smith 1956, for one machine); the longest path first ends the last one earliest. Each rule is
    a mean of the places that an activity has by the two, with another share of the first.

    Args:
        problem: problem to solve; a problem of one run has no such rules.
        longest_path: [A] rule `longest-path` of `priority_rules`.
    """
    arrays = problem.arrays
    runs = arrays.run_weight.size
    if runs < 2:
        return []
    room = np.maximum(1, arrays.allocatable.sum(axis=0))
    work = (arrays.requests / room).max(axis=1, initial=0.0) * arrays.duration_seconds
    weight = arrays.run_weight
    work_of_run = np.bincount(arrays.run, work, runs)
    by_weight = np.divide(work_of_run, weight, out=np.full(runs, np.inf), where=weight > 0)
    by_work = _places(by_weight)[arrays.run]
    by_path = _places(longest_path)
    return [share * by_work + (1 - share) * by_path for share in _RUN_SHARES]


def _places(numbers: Floats) -> Floats:
    """Return the place of each number among the different ones, from 0 to 1."""
    _, places = np.unique(numbers, return_inverse=True)
    return np.asarray(places / max(1, places.max(initial=0)))
