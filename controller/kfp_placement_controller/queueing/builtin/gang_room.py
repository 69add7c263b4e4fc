"""Room on nodes for gangs: pods that work only when all of them run.

Their pods are never overcommitted, else two runs could each hold a part and wait for the rest
forever. They are packed node by node, since free GPUs on two nodes do not make a pod with two.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.units.resources import Resources, total_of, with_pod

_Amounts = tuple[int, ...]
_Pods = tuple[tuple[_Amounts, int], ...]


def scarcest_first(rooms: Iterable[Resources], groups: Iterable[PodGroup]) -> list[str]:
    """Return names of resources, first the one of which gangs request the largest share.

    Args:
        rooms: room of each node.
        groups: all gangs, those of waiting runs too.
    """
    there = total_of(rooms)
    requested: Counter[str] = Counter()
    for group in groups:
        for name, amount in with_pod(group.requests).items():
            requested[name] += amount * group.count
    return sorted(
        (name for name, amount in requested.items() if amount),
        key=lambda name: (-requested[name] / max(1, there.get(name, 0)), name),
    )


class GangRoom:
    """Room of each node that is left for gangs."""

    def __init__(self, names: Sequence[str], nodes: Sequence[_Amounts]) -> None:
        """Start with nothing taken; see `GangRoom.of` for the arguments."""
        self._names = names
        self._nodes = nodes
        self._left = list(nodes)
        self._missing = dict[_Pods, int]()
        self._refused = set[_Pods]()

    @classmethod
    def of(cls, rooms: Sequence[Resources], groups: Iterable[PodGroup]) -> Self:
        """Return the room of a cluster.

        Args:
            rooms: room of each node.
            groups: all gangs, those of waiting runs too.
        """
        names = scarcest_first(rooms, groups)
        # A pod goes to the first node that has room; those with least of what is scarce are first.
        return cls(names, sorted(tuple([room.get(name, 0) for name in names]) for room in rooms))

    def emptied(self) -> "GangRoom":
        """Return the same nodes with nothing taken."""
        return GangRoom(self._names, self._nodes)

    def lacks(self, groups: Sequence[PodGroup]) -> int:
        """Return the number of pods that find no node."""
        if not groups:
            return 0
        pods = self._pods(groups)
        if pods not in self._missing:
            least = 1 if pods in self._refused else 0
            self._missing[pods] = max(least, self._packed(pods)[1])
        return self._missing[pods]

    def take(self, groups: Sequence[PodGroup]) -> int:
        """Give pods room, and return the number of those that find no node."""
        self._left, missing = self._packed(self._pods(groups))
        # Packing is a heuristic: with less room it may fit pods that it refused before. They stay
        # refused, so that no later run overtakes; more of them may be missing now.
        self._refused |= {pods for pods, count in self._missing.items() if count}
        self._missing = {}
        return missing

    def _pods(self, groups: Iterable[PodGroup]) -> _Pods:
        """Return shapes of pods and their numbers, first the largest in the scarcest resource."""
        counts: Counter[_Amounts] = Counter()
        for group in groups:
            requests = with_pod(group.requests)
            counts[tuple(requests.get(name, 0) for name in self._names)] += group.count
        return tuple(sorted(counts.items(), reverse=True))

    def _packed(self, pods: _Pods) -> tuple[list[_Amounts], int]:
        left, missing = self._left.copy(), 0
        for shape, count in pods:
            missing += self._place(left, shape, count)
        return left, missing

    def _place(self, nodes: list[_Amounts], shape: _Amounts, count: int) -> int:
        """Pack pods of one shape, and return the number of those that find no node."""
        needs = [(index, amount) for index, amount in enumerate(shape) if amount]
        for node in range(bisect_left(self._nodes, shape[:1]), len(nodes)):
            if not count:
                break
            left = nodes[node]
            # A full node usually lacks the scarcest resource.
            if left[0] < shape[0]:
                continue
            each = min(count, *[left[index] // amount for index, amount in needs])
            if each > 0:
                nodes[node] = tuple(
                    has - each * amount for has, amount in zip(left, shape, strict=True)
                )
                count -= each
        return count
