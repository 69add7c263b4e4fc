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

_ABOUT_THE_SIZE = math.log(1.25)
"""Between sizes that differ by less no time that grows with the square of the size looks like a
change, where a line was found."""

_MAY_FOLLOW = 1.5
"""Where a change may have begun, two values lie apart from the others by this many spreads."""

_NORMAL_OVER_MEDIAN = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""


def robust_deviation(misses: Sequence[float]) -> float:
    """Standard deviation of normal values whose median absolute value is that of the misses."""
    return _NORMAL_OVER_MEDIAN * median(map(abs, misses)) if misses else 0.0


def levelled(
    values: Sequence[float], least: float, log_sizes: Sequence[float] | None = None
) -> Sequence[float]:
    """The values as if all had been like the last ones; the very same if they have not changed.

    Values that have come back to where they were before have not changed for good: they may go on
    to change places, and those since then stay as they are.

    Args:
        values: in the order in which they were seen.
        least: standard deviation of such values at least.
        log_sizes: logarithms of sizes, where the values are what a line over these leaves; None =
            of none. If the line does not fit, each block of such sizes looks like a change. So one
            only counts as far as values of about the same size are unlike before and after it.
    """
    changes = list(_changes(values, least))
    if not changes:
        return values
    parts = list(pairwise([0, *changes, len(values)]))
    apart = _APART * least
    levels = _levels_of(values, parts, log_sizes or [0.0] * len(values), apart)
    now, since = levels[-1], _first_of_now(levels, apart)
    moves = [now - level if number < since else 0.0 for number, level in enumerate(levels)]
    if not any(moves):
        return values
    return [
        each + move
        for (begin, end), move in zip(parts, moves, strict=True)
        for each in values[begin:end]
    ]


def _levels_of(
    values: Sequence[float],
    parts: Sequence[tuple[int, int]],
    log_sizes: Sequence[float],
    apart: float,
) -> list[float]:
    """How much higher than those of the first part the values of each lie."""
    levels, flat = [0.0], list(values[: parts[0][1]])
    for begin, end in parts[1:]:
        above = [
            values[number] - median(alike)
            for number in range(begin, end)
            if (alike := _of_about_the_size(flat, log_sizes, log_sizes[number]))
        ]
        is_seen = 2 * len(above) >= end - begin
        level = median(above) if is_seen else levels[-1]
        levels.append(level if abs(level - levels[-1]) > apart else levels[-1])
        flat += [each - levels[-1] for each in values[begin:end]]
    return levels


def _of_about_the_size(
    values: Sequence[float], log_sizes: Sequence[float], log_size: float
) -> list[float]:
    """The first of the sizes are those of the values; the rest are of later ones."""
    pairs = zip(values, log_sizes, strict=False)
    return [each for each, other in pairs if abs(other - log_size) <= _ABOUT_THE_SIZE]


def _first_of_now(levels: Sequence[float], apart: float) -> int:
    """The first part to whose level, or to that of one since then, values have come back."""
    since = len(levels) - 1
    for number in reversed(range(since)):
        if any(abs(levels[number] - each) <= apart for each in levels[since:]):
            since = number
    return since


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
