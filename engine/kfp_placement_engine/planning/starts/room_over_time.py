"""The free room of a node from now on, as steps end and others start."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from kfp_placement_engine.units.resources import Resources, fits, plus, subtract_from, with_pod


class RoomOverTime:
    """Free room by pieces of time; a step takes its requests, and one of `pods`.

    Times are in seconds on any one clock. The last piece does not end. Room that is taken twice
    becomes negative, and then nothing fits.
    """

    def __init__(
        self, free: Resources, now_seconds: float, ends: Iterable[tuple[float, Resources]]
    ) -> None:
        """Create the room as it grows while running pods end.

        Args:
            free: present room.
            now_seconds: present time.
            ends: end and requests of each running pod; an infinite end = never.
        """
        self._starts = [now_seconds]
        self._free = [dict(free)]
        for end, requests in sorted(ends, key=lambda each: each[0]):
            if end == math.inf:
                break
            self._free.append(plus(self._free[-1], with_pod(requests)))
            self._starts.append(max(now_seconds, end))

    def fits(self, requests: Resources, start: float, end: float) -> bool:
        """Return whether a step has room all the time from its start to its end.

        Requests of several steps together name `pods`, too.
        """
        return all(
            fits(requests, free) and requests.get("pods", 1) <= free["pods"]
            for free in self._free[slice(*self._pieces(start, end))]
        )

    def earliest(self, requests: Resources, after: float, seconds: float) -> float | None:
        """Return the earliest start at which a step has room for this long, or None without one."""
        start = max(after, self._starts[0])
        piece = bisect_right(self._starts, start) - 1
        while piece < len(self._starts):
            begin = self._starts[piece]
            if begin > start and begin >= start + seconds:
                break
            if not fits(requests, self._free[piece]):
                if piece + 1 == len(self._starts):
                    return None
                start = max(start, self._starts[piece + 1])
            piece += 1
        return start

    def take(self, requests: Resources, start: float, end: float) -> None:
        """Take room for a step and its pod, even if there is not enough.

        A step without a length takes it for a moment: two of them need room for both.
        """
        end = max(end, math.nextafter(start, math.inf))
        self._cut(start)
        if end < math.inf:
            self._cut(end)
        first, last = self._pieces(start, end)
        for piece in range(first, last):
            subtract_from(self._free[piece], with_pod(requests))

    def _pieces(self, start: float, end: float) -> tuple[int, int]:
        """Return the first piece of a stretch of time, and the one behind its last."""
        first = max(0, bisect_right(self._starts, start) - 1)
        return first, max(first + 1, bisect_left(self._starts, end))

    def _cut(self, at: float) -> None:
        """Split a piece so that one begins at this time."""
        piece = bisect_right(self._starts, at) - 1
        if piece >= 0 and self._starts[piece] < at:
            self._starts.insert(piece + 1, at)
            self._free.insert(piece + 1, dict(self._free[piece]))
