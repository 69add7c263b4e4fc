"""A makespan no schedule can beat, and how it was found.

The larger of three bounds, each by name:

- `critical-path`: the longest chain of activities, each at its quickest on a node where it fits,
  with the driver, transfer and pull time that cannot be avoided;
- `area`: requested resources x time against the room of all nodes;
- `pattern-lp`: the linear program over all sets of pods that fit on a node together, weighted by
  the node's speed; where the extra `bounds` is installed and the sets are few enough.
"""

import numpy as np

from kfp_placement_engine.pattern_bound import pattern_bound_seconds
from kfp_placement_engine.plan import Bound
from kfp_placement_engine.problem import Booleans, Floats, Integers, PlacementProblem

BLOCK_CELLS = 1_000_000
"""Activities x nodes looked at together: 10,000 steps on 1,000 nodes would fill memory."""


def lower_bound(problem: PlacementProblem) -> Bound:
    """The largest of the bounds; on a tie the one named first in the module's docstring wins."""
    usable = usable_nodes(problem)
    shortest = shortest_seconds(problem, usable)
    bounds = [
        Bound(critical_path_seconds(problem, shortest), "critical-path"),
        Bound(area_seconds(problem, usable, shortest), "area"),
    ]
    pattern = pattern_bound_seconds(problem, usable)
    if pattern is not None:
        bounds.append(Bound(pattern, "pattern-lp"))
    # The bounds are compared with simulated times, which add up the same numbers in another order.
    best = max(bounds, key=lambda bound: bound.seconds)
    return Bound(best.seconds * (1 - 1e-12), best.kind)


def usable_nodes(problem: PlacementProblem) -> Booleans:
    """[A, N] nodes that Kubernetes lets each activity onto and on which it fits at all."""
    arrays = problem.arrays
    room = np.ones((problem.activities, problem.nodes), np.bool_)
    for resource in range(arrays.requests.shape[1]):
        request = arrays.requests[:, resource][:, None]
        room &= (request == 0) | (request <= arrays.free[:, resource][None, :])
    return np.asarray(arrays.feasible[arrays.class_of] & room)


def shortest_seconds(problem: PlacementProblem, usable: Booleans) -> Floats:
    """[A] least time from bind to end; for an activity without a node its reference run time."""
    arrays = problem.arrays
    least = np.full(problem.activities, np.inf)
    step = max(1, BLOCK_CELLS // max(1, problem.nodes))
    for first in range(0, problem.activities, step):
        block = slice(first, first + step)
        seconds = arrays.duration_seconds[block, None] / np.where(
            arrays.scales[block, None], arrays.speed[None, :], 1.0
        )
        moved = arrays.download_bytes[block] + arrays.upload_bytes[block]
        seconds += moved[:, None] / arrays.store_rate[None, :]
        least[block] = np.where(usable[block], seconds, np.inf).min(axis=1)
    for activity in _lone_pullers(problem):
        least[activity] = _least_with_pull(problem, int(activity), usable[activity])
    return np.where(arrays.virtual | np.isinf(least), arrays.duration_seconds, least)


def _lone_pullers(problem: PlacementProblem) -> Integers:
    """Activities whose image nobody else in the run could have brought to the node."""
    images = problem.arrays.image
    pulled = images >= 0
    users = np.bincount(images[pulled], minlength=1)
    return np.flatnonzero(pulled & (users[np.maximum(images, 0)] == 1))


def _least_with_pull(problem: PlacementProblem, activity: int, usable: Booleans) -> float:
    """As `shortest_seconds`, with the time to pull the image where it is missing."""
    arrays = problem.arrays
    image = arrays.image[activity]
    speed = arrays.speed if arrays.scales[activity] else np.ones(problem.nodes)
    moved = arrays.download_bytes[activity] + arrays.upload_bytes[activity]
    pull = np.where(arrays.image_present[image], 0.0, arrays.image_bytes[image] / arrays.pull_rate)
    seconds = arrays.duration_seconds[activity] / speed + moved / arrays.store_rate + pull
    return float(np.where(usable, seconds, np.inf).min())


def critical_path_seconds(problem: PlacementProblem, shortest: Floats) -> float:
    """The longest chain with every activity at its quickest."""
    arrays = problem.arrays
    end = arrays.release_seconds + shortest
    for activity in problem.topological:
        before = arrays.predecessors[
            arrays.predecessors_start[activity] : arrays.predecessors_start[activity + 1]
        ]
        if before.size:
            end[activity] += max(
                0.0, float(end[before].max()) - float(arrays.release_seconds[activity])
            )
    return float(end.max(initial=0.0))


def area_seconds(problem: PlacementProblem, usable: Booleans, shortest: Floats) -> float:
    """Requested amount x time of all activities against the room of the nodes they may use."""
    arrays = problem.arrays
    placed = ~arrays.virtual & usable.any(axis=1)
    if not placed.any():
        return 0.0
    open_nodes = usable[placed].any(axis=0)
    requests = arrays.requests[placed].astype(np.float64)
    room = np.maximum(arrays.free[open_nodes], 0).astype(np.float64)
    run = np.where(arrays.scales, arrays.duration_seconds, 0.0)[placed]
    by_time = _ratio(requests.T @ shortest[placed], room.sum(axis=0))
    by_speed = _ratio(requests.T @ run, (room * arrays.speed[open_nodes, None]).sum(axis=0))
    return max(by_time, by_speed)


def _ratio(work: Floats, room: Floats) -> float:
    return float(np.divide(work, room, out=np.zeros_like(work), where=room > 0).max(initial=0.0))
