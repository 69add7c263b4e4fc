"""The cluster of the day, and how a pod gets its node."""

from collections.abc import Sequence

from benchmarks.queue_day.runs import Amounts

NODES = (*(4 * [Amounts(16, 64)]), *(2 * [Amounts(32, 128, 4)]))
"""Allocatable resources of each node."""


class Cluster:
    """The nodes of the day, and the room that is taken on each."""

    def __init__(self, nodes: Sequence[Amounts] = NODES) -> None:
        """Start with nothing taken.

        Args:
            nodes: allocatable resources of each node.
        """
        self.nodes = nodes
        self.free = [list(node) for node in nodes]

    def place(self, requests: Amounts) -> int | None:
        """Take room for a pod on the least allocated node; those with GPUs are the last for others.

        Returns:
            The node; None if no node has room.
        """
        best = None
        for node, free in enumerate(self.free):
            if all(has >= needs for has, needs in zip(free, requests, strict=True)):
                rank = (self._is_spared(node, requests), -self._free_share(node))
                if best is None or rank < best[0]:
                    best = (rank, node)
        if best is None:
            return None
        self._change(best[1], requests, -1)
        return best[1]

    def leave(self, node: int, requests: Amounts) -> None:
        """Give back the room of a pod."""
        self._change(node, requests, 1)

    def _is_spared(self, node: int, requests: Amounts) -> bool:
        return bool(self.nodes[node].gpu) and not requests.gpu

    def _free_share(self, node: int) -> float:
        """Return the free share of a node in kube-scheduler's score: the mean of CPU and memory."""
        free, has = self.free[node], self.nodes[node]
        return free[0] / has.cpu + free[1] / has.memory_gib

    def _change(self, node: int, requests: Amounts, sign: int) -> None:
        for index, amount in enumerate(requests):
            self.free[node][index] += sign * amount
