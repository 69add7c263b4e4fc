"""Room on a node over time, for schedulers that put steps into gaps of the past."""

from bisect import bisect_right
from collections.abc import Sequence


class RoomOverTime:
    """Room of one node: `_room[i]` holds from `_times[i]` to `_times[i + 1]`, the last forever.

    Args:
        room: [R] room of the empty node.
    """

    def __init__(self, room: Sequence[int]) -> None:
        self._times = [0.0]
        self._room = [list(room)]

    def earliest(self, request: Sequence[int], ready: float, seconds: float) -> float:
        """Return the first moment from `ready` on with room for the whole time; infinite = none.

        Args:
            request: [R] amounts that are asked for.
            ready: seconds.
            seconds: duration.
        """
        start = ready
        for segment in range(bisect_right(self._times, ready) - 1, len(self._times)):
            end = self._times[segment + 1] if segment + 1 < len(self._times) else float("inf")
            if any(
                0 < asked > left for asked, left in zip(request, self._room[segment], strict=True)
            ):
                start = end
            elif end >= start + seconds:
                break
        return start

    def take(self, request: Sequence[int], start: float, end: float) -> None:
        """Take room from a start to an end, in seconds."""
        for segment in range(self._split(start), self._split(end)):
            self._room[segment] = [
                left - asked for left, asked in zip(self._room[segment], request, strict=True)
            ]

    def _split(self, time: float) -> int:
        """Make a moment the beginning of a segment; returns which."""
        segment = bisect_right(self._times, time) - 1
        if self._times[segment] == time:
            return segment
        self._times.insert(segment + 1, time)
        self._room.insert(segment + 1, self._room[segment])
        return segment + 1
