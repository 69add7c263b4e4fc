"""Steps by kind of node: the time and the share of the room that each step takes there."""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.bounds.critical_paths import Paths
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    occupied_seconds,
    shares_of,
)

MAX_KINDS = 8
"""Largest number of kinds; with more, nodes of one speed and rate are one kind for all steps."""


@dataclass(frozen=True)
class NodeKinds:
    """Steps by kind of node: J steps that are still to be placed, K kinds of nodes, R resources.

    Attributes:
        steps: [J] activities of the steps.
        seconds: [J, K] least time from bind to end on a node of the kind; infinite where no node
            of the kind takes the step.
        shares: [J, K, R] request of the step as a share of what all nodes of the kind have free.
    """

    steps: Integers
    seconds: Floats
    shares: Floats

    @property
    def is_single(self) -> bool:
        """True if all nodes are of one kind."""
        return len(self.seconds.T) == 1


def node_kinds(
    problem: PlacementProblem, usable: Booleans, paths: Paths, most: int
) -> NodeKinds | None:
    """Return the steps by kind of node; None if there are no steps, or too many steps or kinds.

    Nodes of a kind run every step equally fast. Their room is counted together, and a step may use
    all of it if it may use one of them, which only allows more.

    Args:
        problem: problem whose makespan is bounded.
        usable: [A, N] nodes that each activity may go to.
        paths: longest paths through the activities.
        most: largest number of steps x kinds.
    """
    arrays = problem.arrays
    placed = ~arrays.virtual & (arrays.fixed_node < 0) & usable.any(axis=1)
    steps = np.flatnonzero(placed & (paths.shortest > 0))
    if not 0 < steps.size <= most:
        return None
    takes = usable[steps]
    kinds = _kinds(problem, takes)
    if not 0 < len(kinds) <= MAX_KINDS or steps.size * len(kinds) > most:
        return None
    columns = [_of_kind(problem, steps, takes, paths, kind) for kind in kinds]
    seconds = np.stack([seconds for seconds, _ in columns], axis=1)
    return NodeKinds(steps, seconds, np.stack([shares for _, shares in columns], axis=1))


def _kinds(problem: PlacementProblem, takes: Booleans) -> list[Integers]:
    """Return the nodes of each kind: of one speed and rate, and if possible for the same steps."""
    arrays, open_nodes = problem.arrays, np.flatnonzero(takes.any(axis=0)).tolist()
    by_users: dict[tuple[float, float, bytes], list[int]] = {}
    by_speed: dict[tuple[float, float], list[int]] = {}
    for node in open_nodes:
        key = (float(arrays.speed[node]), float(arrays.store_rate[node]))
        by_speed.setdefault(key, []).append(node)
        by_users.setdefault((*key, np.packbits(takes[:, node]).tobytes()), []).append(node)
    kinds = by_users if len(by_users) <= MAX_KINDS else by_speed
    return [np.array(nodes, np.int64) for nodes in kinds.values()]


def _of_kind(
    problem: PlacementProblem, steps: Integers, takes: Booleans, paths: Paths, nodes: Integers
) -> tuple[Floats, Floats]:
    """Return [J] seconds and [J, R] shares of the steps on nodes of one kind."""
    arrays = problem.arrays
    seconds = occupied_seconds(arrays, steps, nodes[:1])[:, 0]
    # On any node it takes the least time over all of them, which may have a pull in it.
    seconds = np.maximum(seconds, paths.shortest[steps])
    room = np.maximum(arrays.free[nodes], 0).sum(axis=0).astype(np.float64)
    requests = arrays.requests[steps].astype(np.float64)
    return np.where(takes[:, nodes].any(axis=1), seconds, np.inf), shares_of(requests, room)
