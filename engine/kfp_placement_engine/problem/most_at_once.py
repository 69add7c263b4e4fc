"""The most that pods may take at once, however long each of them takes.

What a pod has taken, a pod that waits for it may take again. So amounts are handed on along what
waits for what, and only the rest is new. Pods that run at the same time have nothing from each
other, so together they take no more than all that is new; it may be somewhat more than they take.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import NamedTuple

_MOST_NODES = 8_000
_MOST_MEMBERS = 20_000
"""Numbers of nodes, and of members of all limits, beyond which limits do not count."""

_LOOKS_PER_ITEM = 50
"""Number of looks for each item, on average, after which nothing is handed on any more.

Such limits of the time that it takes make the result larger.
"""


@dataclass(frozen=True, eq=False)
class Block:
    """Nodes of which only some holders are under way at once.

    Attributes:
        most: largest number of these.
        holders: nodes of each holder.
        whole: nodes of all holders.
    """

    most: int
    holders: tuple["Scope", ...]
    whole: "Scope"

    def most_at_once(self, taken: Sequence[int], blocks: dict["Block", int]) -> int:
        """Return the most that its nodes may take at once, as `Scope.most_at_once`."""
        if self not in blocks:
            largest = sorted(each.most_at_once(taken, blocks) for each in self.holders)[
                -self.most :
            ]
            blocks[self] = min(sum(largest), self.whole.most_at_once(taken, blocks))
        return blocks[self]


@dataclass(frozen=True, eq=False)
class Scope:
    """Nodes and blocks in an order in which each comes after all that it waits for.

    Attributes:
        items: numbers of nodes, and blocks.
        before: places of the items that each waits for.
    """

    items: Sequence[int | Block]
    before: Sequence[Sequence[int]]

    def most_at_once(self, taken: Sequence[int], blocks: dict[Block, int]) -> int:
        """Return the most that its nodes may take at once.

        Args:
            taken: amount that each node takes.
            blocks: results for blocks with these amounts, which are kept here.
        """
        left, new = [0] * len(self.items), 0
        unseen = [len(each) for each in self.before]
        looks = _LOOKS_PER_ITEM * len(unseen) + sum(unseen)
        for place, item in enumerate(self.items):
            own = taken[item] if isinstance(item, int) else item.most_at_once(taken, blocks)
            lacking, way = own, [place]
            # Back along the way from which amounts may come, until there is enough. What has once
            # been passed has nothing left, and is not looked at again.
            while lacking and way and looks:
                looks -= 1
                here = way[-1]
                if not unseen[here]:
                    way.pop()
                    if way:
                        unseen[way[-1]] -= 1
                    continue
                earlier = self.before[here][unseen[here] - 1]
                handed_on = min(left[earlier], lacking)
                left[earlier] -= handed_on
                lacking -= handed_on
                if lacking:
                    way.append(earlier)
            new += lacking
            left[place] = own
        return new


@dataclass(frozen=True)
class HeldNodes:
    """Nodes that hold places of a limit.

    Attributes:
        most: number of places.
        holders: numbers of the nodes of each holder; no node is of two.
    """

    most: int
    holders: Sequence[Sequence[int]]


def scope_of(before: Sequence[Sequence[int]], limits: Sequence[HeldNodes]) -> Scope:
    """Return nodes with what limits how many of them are under way.

    A limit counts if its nodes are all in one holder of each larger limit, or in none of it.

    Args:
        before: numbers of the nodes that each node waits for.
        limits: the limits.
    """
    order = [*TopologicalSorter(dict(enumerate(before))).static_order()]
    if not limits or len(order) > _MOST_NODES:
        place = {node: place for place, node in enumerate(order)}
        return Scope(order, [[place[each] for each in before[node]] for node in order])
    return _Scopes(before, limits, order).scope(order, -1, None)


class _Limit(NamedTuple):
    """A limit that counts.

    Attributes:
        held: nodes and places as given.
        holder_of: number of the holder of each of its nodes.
        members: numbers of its nodes, as bits of one number.
        within: holder of the limit around it that has all of its nodes; None = several have them.
    """

    held: HeldNodes
    holder_of: dict[int, int]
    members: int
    within: int | None


class _Scopes:
    def __init__(
        self, before: Sequence[Sequence[int]], limits: Sequence[HeldNodes], order: list[int]
    ) -> None:
        self._before = before
        self._rank = {node: rank for rank, node in enumerate(order)}
        self._behind: dict[int, int] = {}
        for node in order:
            bits = 0
            for each in before[node]:
                bits |= self._behind[each] | 1 << each
            self._behind[node] = bits
        self._limits: list[_Limit] = []
        # The innermost limit around each node, by each limit from outside to inside.
        self._around: dict[int, list[int]] = {node: [-1] for node in order}
        self._blocks: dict[int, Block] = {}
        count = 0
        for limit in sorted(limits, key=lambda each: -sum(map(len, each.holders))):
            holder = {node: at for at, nodes in enumerate(limit.holders) for node in nodes}
            count += len(holder)
            around = {self._around[node][-1] for node in holder}
            if count <= _MOST_MEMBERS and len(around) == 1:
                for node in holder:
                    self._around[node].append(len(self._limits))
                members = sum(1 << node for node in holder)
                within = self._holder_of(holder, *around)
                self._limits.append(_Limit(limit, holder, members, within))

    def scope(self, nodes: Sequence[int], limit: int, holder: int | None) -> Scope:
        """Return the scope of nodes in a limit; -1 = in none.

        Args:
            nodes: the nodes, in order.
            limit: number of the limit.
            holder: the holder that they are of; None = they are of all of them.
        """
        inner = {node: self._inner(node, limit, holder) for node in nodes}
        places: dict[int, int] = {}
        items: list[int | Block] = []
        members: list[int] = []
        before: list[list[int]] = []
        for node in nodes:
            block = inner[node]
            key = node if block < 0 else -1 - block
            if key in places:
                continue
            places[key] = len(items)
            own = [node] if block < 0 else self._limits[block].holder_of
            items.append(node if block < 0 else self._block(block))
            members.append(1 << node if block < 0 else self._limits[block].members)
            behind = -1
            for each in own:
                behind &= self._behind[each]
            earlier = {each for node in own for each in self._before[node] if each in inner}
            keys = {each if inner[each] < 0 else -1 - inner[each] for each in earlier} - {key}
            at = (places[each] for each in keys if each in places)
            # A block as a whole is over only for what waits for all of it.
            before.append(sorted(each for each in at if not members[each] & ~behind))
        return Scope(items, before)

    def _inner(self, node: int, limit: int, holder: int | None) -> int:
        """Return the outermost limit around a node that is inside another one; -1 = none."""
        around = self._around[node]
        at = around.index(limit) + 1
        if at == len(around):
            return -1
        inner = around[at]
        return inner if holder in (None, self._limits[inner].within) else -1

    def _holder_of(self, nodes: Iterable[int], limit: int) -> int | None:
        """Return the one holder of a limit that nodes are of; None = they are of several."""
        holders = {-1} if limit < 0 else {self._limits[limit].holder_of[node] for node in nodes}
        return holders.pop() if len(holders) == 1 else None

    def _block(self, number: int) -> Block:
        if number not in self._blocks:
            limit = self._limits[number]
            ordered = [sorted(each, key=self._rank.__getitem__) for each in limit.held.holders]
            every = sorted(limit.holder_of, key=self._rank.__getitem__)
            self._blocks[number] = Block(
                limit.held.most,
                tuple(self.scope(nodes, number, at) for at, nodes in enumerate(ordered)),
                self.scope(every, number, None),
            )
        return self._blocks[number]
