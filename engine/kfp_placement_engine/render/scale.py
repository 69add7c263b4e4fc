"""Geometry of a time line: a scale with round times, and lanes for what overlaps in time."""

from collections.abc import Sequence
from dataclasses import dataclass

_ROUND_SECONDS = (
    *(base * 10.0**power for power in range(-6, 1) for base in (1, 2, 5)),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(hours * 3600.0 for hours in (1, 2, 3, 6, 12)),
    *(days * 86400.0 * 10**power for power in range(5) for days in (1, 2, 5)),
)


@dataclass(frozen=True)
class Scale:
    """Seconds to pixels, or to columns of a terminal.

    Attributes:
        end_seconds: time at the right edge; time zero is at the left edge.
        left, right: the edges.
    """

    end_seconds: float
    left: float
    right: float

    def x(self, seconds: float) -> float:
        """Return the coordinate of a time."""
        share = seconds / self.end_seconds if self.end_seconds > 0 else 0.0
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self, least_distance: float) -> list[float]:
        """Round times from 0 to the end, no closer to each other than this distance."""
        if self.end_seconds <= 0:
            return [0.0]
        most = max((self.right - self.left) // least_distance, 1)
        sizes = (size for size in _ROUND_SECONDS if self.end_seconds / size <= most)
        step = next(sizes, self.end_seconds)
        return [index * step for index in range(int(self.end_seconds / step + 1e-9) + 1)]


def lanes(spans: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Pack spans of time into as few lanes as possible, without overlaps in a lane.

    Returns:
        The indexes of the spans of each lane, in order of time.
    """
    result: list[list[int]] = []
    for index in sorted(range(len(spans)), key=lambda at: (spans[at][0], at)):
        begin = spans[index][0] + 1e-9
        lane = next((lane for lane in result if max(spans[lane[-1]]) <= begin), None)
        if lane is None:
            result.append([index])
        else:
            lane.append(index)
    return result
