"""Values that have changed for good: what a step takes since its code or its data are others.

The last values alone say where the next one lies. But how far apart values are, and how they follow
sizes, many of them tell better. So those before a change count as if they had been like the last
ones, and a change makes a forecast neither wrong nor wide for longer than it has to.
"""

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

LAST = 3
"""This many values in a row that are unlike all before show a change; two may be outliers."""

_APART = 3.0
"""A change is this many times larger than values before and after it differ from each other."""

_SEVERAL = 5
"""From this many values on outliers among them do not count."""

_MAY_FOLLOW = 1.5
"""Where a change may have begun, two values lie apart from the others by this many spreads."""

_NORMAL_OVER_MEDIAN = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""


def robust_deviation(misses: Sequence[float]) -> float:
    """Standard deviation of normal values whose median absolute value is that of the misses."""
    return _NORMAL_OVER_MEDIAN * median(map(abs, misses)) if misses else 0.0


def levelled(values: Sequence[float], least: float) -> Sequence[float]:
    """The values as if all had been like the last ones; the very same if they have not changed.

    Args:
        values: in the order in which they were seen.
        least: standard deviation of such values at least.
    """
    changes = list(_changes(values, least))
    if not changes:
        return values
    parts = [values[begin:end] for begin, end in pairwise([0, *changes, len(values)])]
    now = median(parts[-1])
    return [each - centre + now for part in parts for centre in [median(part)] for each in part]


def _changes(values: Sequence[float], least: float) -> Iterator[int]:
    """Where in the values others begin that are unlike those before."""
    apart = _APART * least
    if len(values) < 2 * LAST or max(values) - min(values) <= apart:
        return
    # This is asked of each step that is learned from, and nearly always there is no change.
    lowest = list(map(min, values, values[1:], values[2:]))
    highest = list(map(max, values, values[1:], values[2:]))
    before = sorted(values[:LAST])
    for begin in range(LAST, len(values) - LAST + 1):
        count = len(before)
        if count >= LAST and (
            lowest[begin] - before[count // 2] > apart
            or before[(count - 1) // 2] - highest[begin] > apart
        ):
            last = values[begin : begin + LAST]
            if _are_unlike(before, last):
                yield begin
                before = []
        insort(before, values[begin])


def _are_unlike(before: Sequence[float], last: Sequence[float]) -> bool:
    """Whether all of the last are further from those before than either are from each other."""
    centre, middle = median(before), median(last)
    apart = max(min(last) - centre, centre - max(last))
    among_last = math.sqrt(sum([(each - middle) ** 2 for each in last]) / len(last))
    return apart > _APART * max(among_last, _among([each - centre for each in before]))


def _among(misses: Sequence[float]) -> float:
    """How far values lie from their centre. Of a few, two alike by chance say little of others."""
    return robust_deviation(misses) if len(misses) >= _SEVERAL else max(map(abs, misses))


def spread_if_changing(misses: Sequence[float], least: float) -> float:
    """How far the next value may lie off if a change has begun with the last two; else 0.

    Args:
        misses: by how much each value lies above the centre of all, the last one at the end.
        least: standard deviation of such values at least.
    """
    if len(misses) < LAST + 2:
        return 0.0
    one, two = misses[-2:]
    apart = max(min(one, two), -max(one, two))
    if apart <= _APART * least or apart <= _APART * _among(misses[:-2]):
        return 0.0
    return apart / _MAY_FOLLOW
