"""Choices of a node for a ready step: round robin, fairest, random, most data.

The first three are those of the Common Workflow Scheduler (KubernetesScheduler f8d862e); each is
made for one run, since some remember what they did.
"""

import numpy as np

from benchmarks.peers.list_scheduling import Room
from kfp_placement_engine.problem.problem import Booleans, Floats


class RoundRobin:
    """The first node with room after the last one that was tried."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self, activity: int, fitting: Booleans, room: Room) -> int:
        """Return the next node; a step that fits no node changes nothing, as all were tried."""
        nodes = np.flatnonzero(fitting)
        node = int(nodes[np.searchsorted(nodes, self._next) % nodes.size])
        self._next = (node + 1) % fitting.size
        return node


class RandomNode:
    """The first node with room after all nodes were shuffled.

    Args:
        seed: seed of the shuffling.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, activity: int, fitting: Booleans, room: Room) -> int:
        """Return the first node in a new order."""
        shuffled = self._rng.permutation(fitting.size)
        return int(shuffled[fitting[shuffled]][0])


def fair(activity: int, fitting: Booleans, room: Room) -> int:
    """Return the node with the most CPU left, `(free - request) / CPU`; the first on ties."""
    return int(np.where(fitting, room.share_left(activity), -np.inf).argmax())


def fewest_missing_bytes(activity: int, fitting: Booleans, room: Room) -> int:
    """Return the node that lacks the fewest bytes of the step's inputs, as in WOW.

    Of several, the one that `fair` takes. Nothing is copied ahead of time, to whatever node.
    """
    missing = np.where(fitting, missing_bytes(activity, room), np.inf)
    return fair(activity, missing == missing.min(), room)


def missing_bytes(activity: int, room: Room) -> Floats:
    """[N] bytes of the activity's inputs that were not produced on the node."""
    arrays = room.problem.arrays
    first, last = arrays.predecessors_start[activity : activity + 2]
    sizes, nodes = arrays.transfer_bytes[first:last], room.node[arrays.predecessors[first:last]]
    held = np.zeros(room.problem.nodes)
    np.add.at(held, nodes[nodes >= 0], sizes[nodes >= 0])
    return np.asarray(sizes.sum() - held)
