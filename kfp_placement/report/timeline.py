"""Geometry of the time line: ticks of the axis, lanes for what runs at the same time."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

_NICE_SECONDS = (
    *(base * 10.0**power for power in range(-6, 1) for base in (1, 2, 5)),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(hours * 3600.0 for hours in (1, 2, 3, 6, 12)),
    *(days * 86400.0 * 10**power for power in range(5) for days in (1, 2, 5)),
)


@dataclass(frozen=True)
class Interval:
    """What takes a lane from `start` to `end`, in any unit."""

    start: float
    end: float


def ticks(end: float, count: int = 8) -> list[float]:
    """About `count` round times from 0 to `end`."""
    if end <= 0:
        return [0.0]
    step = next((size for size in _NICE_SECONDS if end / size <= count), end)
    return [index * step for index in range(int(end / step + 1e-9) + 1)]


def lanes(intervals: Sequence[Interval]) -> list[int]:
    """The lowest free lane for each interval, so that none overlap in a lane."""
    result = [0] * len(intervals)
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    for index in sorted(range(len(intervals)), key=lambda i: (intervals[i].start, i)):
        interval = intervals[index]
        while busy and busy[0][0] <= interval.start + 1e-9:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        result[index] = lane
        heapq.heappush(busy, (max(interval.end, interval.start), lane))
    return result


def load(intervals: Sequence[Interval], end: float, buckets: int) -> list[int]:
    """How many intervals touch each of `buckets` equal parts of 0 to `end`."""
    change = [0] * (buckets + 1)
    scale = buckets / end if end > 0 else 0.0
    for interval in intervals:
        first = min(int(interval.start * scale), buckets - 1)
        last = min(int(interval.end * scale), buckets - 1)
        change[first] += 1
        change[last + 1] -= 1
    levels, level = [], 0
    for step in change[:-1]:
        level += step
        levels.append(level)
    return levels
