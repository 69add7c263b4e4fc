"""How run times follow the size of the inputs, if they do.

Three ways are compared on the past values themselves, each predicted from the others: the median, a
line over the size, and the values of the nearest sizes. Among the sizes that were seen the size
counts only where it has helped. Beyond them the line counts: where sizes were much alike past times
do not say that they help, and to leave the size out would be as bold a guess. Numeric arguments are
compared in the same way (`arguments`).
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from operator import add, sub
from typing import NamedTuple

from kfp_placement_engine.history.changes import levelled

MOST_SIZES = 40
"""This many last values are compared by size; older ones are of older code."""

_SAME_SIZE = math.log(1.1)
"""Sizes that differ by less do not explain different times."""

_HELPS = 0.95
"""What the size must bring the mean error down to."""

_START_SECONDS = 1.0
"""This part of a single value does not depend on the size: a container has to start."""

_FAR = 0.3
"""How much wider the spread is for each factor e between the size and those that were seen."""

LEAST_SECONDS = 0.5
"""What is shorter counts as this long: times are cut to whole seconds."""

_LOST = 1e-9
"""Where less than this is left of a sum, subtracting from it has lost all digits."""

_SMALLER_THAN_ALL, _LARGER_THAN_ALL = (-math.inf, 0.0), (math.inf, 0.0)
"""Neighbours of the first and last values, where values are ordered by size."""


class BySize(NamedTuple):
    """What the size tells of the next value.

    Attributes:
        log_seconds: where it lies.
        misses: by how much past values were missed, in the order in which these were seen.
        extrapolation: how much further off it may be, where it lies far from what was seen.
        error: mean miss of past values, each predicted from the others; infinite if there are too
            few of them.
    """

    log_seconds: float
    misses: Sequence[float] = ()
    extrapolation: float = 0.0
    error: float = math.inf


def _log_size(size: float) -> float:
    """Logarithm of the size and one byte: of 0 there is none."""
    return math.log(size + 1.0)


class SizedValues:
    """Past run times with the sizes of their inputs; how they are related is found out once.

    Attributes:
        sizes: of the inputs, bytes, in the order in which they were seen.
    """

    def __init__(
        self,
        log_seconds: Sequence[float],
        sizes: Sequence[float],
        log_of: Callable[[float], float] = _log_size,
    ) -> None:
        """Take them in the order in which they were seen.

        Args:
            log_seconds: logarithms of the run times.
            sizes: of the inputs, bytes; as many.
            log_of: their logarithms, by which sizes are near to each other or not.
        """
        self._log_seconds = log_seconds
        self.sizes = sizes
        self._log_of = log_of
        self._log_sizes = [log_of(each) for each in sizes]

    @property
    def are_all_alike(self) -> bool:
        """Whether the sizes are so near to each other that they explain nothing."""
        return max(self._log_sizes) - min(self._log_sizes) <= _SAME_SIZE

    def next(self, size: float) -> BySize | None:
        """The next value by the size of its inputs, bytes; None if that does not help."""
        wanted = self._log_of(size)
        if len(self.sizes) < 3:
            is_known = any(abs(each - wanted) <= _SAME_SIZE for each in self._log_sizes)
            return None if is_known or not self.sizes else self._scaled_last(wanted)
        least, most = min(self._log_sizes), max(self._log_sizes)
        if max(most, wanted) - min(least, wanted) <= _SAME_SIZE:
            return None
        is_among = least - _SAME_SIZE <= wanted <= most + _SAME_SIZE
        if is_among and self._are_nearest_best:
            nearest = self._mean_of_nearest(wanted)
            return BySize(nearest, self.misses_of_nearest, error=self._error_of_nearest)
        if is_among and self._error_of_lines >= self._error_to_beat:
            return None
        log_seconds, extrapolation = self._line.log_seconds(size), 0.0
        if not is_among:
            outside = max(least - wanted, wanted - most)
            # Times that do not follow the size at all, or in proportion, are off by `outside` at
            # most: two standard deviations.
            of_line = min(outside / 2, self._deviation_of_line(size))
            extrapolation = math.hypot(_FAR * outside, of_line)
        return BySize(log_seconds, self._misses_of_line, extrapolation, self._error_of_lines)

    def next_of_now(self, size: float, least: float | None) -> BySize | None:
        """The same, as if all values had been like the last ones with inputs of their size.

        Args:
            size: of the next one's inputs, bytes.
            least: standard deviation at least of what is left; None = the values are not one a run,
                and do not show a change.
        """
        found = self.next(size)
        if found is None or least is None:
            return found
        # By the line, whichever way is better: the nearest values may be of before and after.
        left = [-each for each in self._misses_of_line] if found.misses else []
        now = levelled(left, least, self._log_sizes)
        if now is left:
            return found
        moved = map(add, self._log_seconds, map(sub, now, left))
        return SizedValues(list(moved), self.sizes, self._log_of).next(size)

    def _scaled_last(self, log_size: float) -> BySize:
        """The last value in proportion to the size, except for the start of the container."""
        seconds = math.exp(self._log_seconds[-1])
        start = min(seconds, _START_SECONDS)
        apart = log_size - self._log_sizes[-1]
        scaled = start + (seconds - start) * math.exp(apart)
        return BySize(math.log(max(LEAST_SECONDS, scaled)), extrapolation=_FAR * abs(apart))

    def _mean_of_nearest(self, log_size: float) -> float:
        """The mean of the values of the two nearest sizes; of equally near ones the first count."""
        apart = [abs(each - log_size) for each in self._log_sizes]
        one, two, *_ = sorted(range(len(apart)), key=apart.__getitem__)
        return (self._log_seconds[one] + self._log_seconds[two]) / 2

    @cached_property
    def _are_nearest_best(self) -> bool:
        if len(self.sizes) <= 3:
            return False
        to_beat = min(self._error_to_beat, _HELPS * self._error_of_lines)
        return self._error_of_nearest < to_beat

    @property
    def _error_to_beat(self) -> float:
        return _HELPS * self.error_of_median

    @cached_property
    def error_of_median(self) -> float:
        """Mean miss of the values, each predicted as the median of the others."""
        return _error(self.misses_of_median())

    @cached_property
    def _error_of_nearest(self) -> float:
        return _error(self.misses_of_nearest)

    @cached_property
    def _error_of_lines(self) -> float:
        return _error(self.misses_of_lines())

    def misses_of_median(self) -> list[float]:
        """How each value is missed by the median of the others; the shortest first."""
        ordered = sorted(self._log_seconds)
        last = len(ordered) - 1
        low, high = (last - 1) // 2, last // 2
        # Of the others, the one at a place at or after its own is one further.
        return [
            (ordered[low + (low >= number)] + ordered[high + (high >= number)]) / 2 - value
            for number, value in enumerate(ordered)
        ]

    def misses_of_lines(self) -> list[float]:
        """How each value is missed by the line through the others; there are at least three."""
        weight, size, seconds, square, product = self._total
        least_weight, any_square = _LOST * weight, max(square, 1e-300)
        misses = []
        for number, (w, wx, wt, wxx, wxt) in enumerate(self._sums):
            others: _Sums = (weight - w, size - wx, seconds - wt, square - wxx, product - wxt)
            if min(others[0], others[3] / any_square) <= least_weight:
                others = _total([*self._sums[:number], *self._sums[number + 1 :]])
            log_seconds = _line_of(*others).log_seconds(self.sizes[number])
            misses.append(log_seconds - self._log_seconds[number])
        return misses

    @cached_property
    def misses_of_nearest(self) -> list[float]:
        """How each value is missed by the mean of two others, those of the nearest sizes.

        There are at least three. Of two smaller and two larger ones those count that are nearest,
        and of equally near ones the smaller.
        """
        order = sorted(range(len(self._log_sizes)), key=self._log_sizes.__getitem__)
        ordered = [(self._log_sizes[each], self._log_seconds[each]) for each in order]
        row = [*[_SMALLER_THAN_ALL] * 2, *ordered, *[_LARGER_THAN_ALL] * 2]
        misses = [0.0] * len(order)
        around = zip(row, row[1:], row[2:], row[3:], row[4:], strict=False)
        for number, (lower, low, (size, value), high, higher) in zip(order, around, strict=True):
            if size - lower[0] <= high[0] - size:
                one, two = lower, low
            elif higher[0] - size < size - low[0]:
                one, two = high, higher
            else:
                one, two = lower if size - lower[0] == size - low[0] else low, high
            misses[number] = (one[1] + two[1]) / 2 - value
        return misses

    @cached_property
    def _sums(self) -> list["_Sums"]:
        return list(map(_sums_of, self._log_seconds, self.sizes))

    @cached_property
    def _total(self) -> "_Sums":
        return _total(self._sums)

    @cached_property
    def _line(self) -> "_Line":
        return _line_of(*self._total)

    def _deviation_of_line(self, size: float) -> float:
        """Standard deviation of the logarithm of the line at a size, by how values lie off it.

        Below the sizes that were seen it is mostly that of the start of the line. Infinite where
        all sizes are equal.
        """
        weight, sized, _, square, _ = self._total
        determinant = weight * square - sized**2
        if determinant <= 1e-12 * weight * square:
            return math.inf
        squares = math.fsum(each**2 for each in self._misses_of_line)
        variance = squares / max(1, len(self.sizes) - 2)
        of_line = max(0.0, square - 2 * size * sized + size**2 * weight) / determinant
        return math.sqrt(variance * of_line) / math.exp(self._line.log_seconds(size))

    @cached_property
    def _misses_of_line(self) -> list[float]:
        line, values = self._line, zip(self._log_seconds, self.sizes, strict=True)
        return [line.log_seconds(size) - log_seconds for log_seconds, size in values]


def _error(misses: Sequence[float]) -> float:
    return math.fsum(map(abs, misses)) / len(misses)


_Sums = tuple[float, ...]
"""Of w, w x, w t, w x^2 and w x t, where w is 1 / t^2: relative errors count."""


def _sums_of(log_seconds: float, size: float) -> _Sums:
    seconds = math.exp(log_seconds)
    weight = 1 / seconds**2
    weighted = weight * size
    return weight, weighted, weight * seconds, weight * size**2, weighted * seconds


def _total(sums: Sequence[_Sums]) -> _Sums:
    return tuple(reduce(add, column) for column in zip(*sums, strict=True))


class _Line(NamedTuple):
    """Seconds as `start` + `slope` * size, neither of them negative."""

    start: float
    slope: float

    def log_seconds(self, size: float) -> float:
        return math.log(max(LEAST_SECONDS, self.start + self.slope * size))


def _line_of(weight: float, size: float, seconds: float, square: float, product: float) -> _Line:
    """The line of least squares, of sums."""
    determinant = weight * square - size**2
    if determinant <= 1e-12 * weight * square:
        return _Line(seconds / weight, 0.0)
    slope = (weight * product - size * seconds) / determinant
    if slope < 0:
        return _Line(seconds / weight, 0.0)
    start = (seconds - slope * size) / weight
    return _Line(start, slope) if start >= 0 else _Line(0.0, product / square)
