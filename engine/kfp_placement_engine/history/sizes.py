"""How run times follow the size of the inputs, if they do.

Three ways are compared on the past values themselves, each predicted from the others: the median, a
line over the size, and the values of the nearest sizes. The size counts only where it has helped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

_SAME_SIZE = math.log(1.1)
"""Sizes that differ by less do not explain different times."""

_HELPS = 0.95
"""What the size must bring the mean error down to."""

_NEAREST = 2
"""The values of this many nearest sizes count."""

_START_SECONDS = 1.0
"""This part of a single value does not depend on the size: a container has to start."""

_FAR = 0.3
"""How much wider the spread is for each factor e between the size and those that were seen."""

LEAST_SECONDS = 0.5
"""What is shorter counts as this long: times are cut to whole seconds."""

_LOST = 1e-9
"""Where less than this is left of a sum, subtracting from it has lost all digits."""


@dataclass(frozen=True)
class SizedValue:
    """A past run time with the size of its inputs.

    Attributes:
        log_seconds: logarithm of the run time.
        size: bytes.
    """

    log_seconds: float
    size: float

    @cached_property
    def log_size(self) -> float:
        """Logarithm of the size and one byte: of 0 there is none."""
        return math.log(self.size + 1.0)


@dataclass(frozen=True)
class BySize:
    """What the size tells of the next value.

    Attributes:
        log_seconds: where it lies.
        misses: by how much past values were missed.
        extrapolation: how much further off it may be, where it lies far from what was seen.
    """

    log_seconds: float
    misses: Sequence[float] = ()
    extrapolation: float = 0.0


@dataclass(frozen=True)
class _Line:
    """Seconds as `start` + `slope` * size, neither of them negative."""

    start: float
    slope: float

    def log_seconds(self, size: float) -> float:
        return math.log(max(LEAST_SECONDS, self.start + self.slope * size))


def by_size(values: Sequence[SizedValue], size: float) -> BySize | None:
    """By the size of the inputs; None if it does not help.

    Args:
        values: in the order in which they were seen.
        size: of the next value's inputs, bytes.
    """
    wanted = SizedValue(0.0, size)
    sizes = [each.log_size for each in values]
    if len(values) < 3:
        is_known = any(abs(each - wanted.log_size) <= _SAME_SIZE for each in sizes)
        return None if is_known or not values else _scaled(values[-1], wanted)
    if max(*sizes, wanted.log_size) - min(*sizes, wanted.log_size) <= _SAME_SIZE:
        return None
    to_beat = _HELPS * _error(_misses_of_median(values))
    of_lines = _misses_of_lines(values)
    if len(values) > 3 and _is_among(wanted, sizes):
        of_nearest = _misses_of_nearest(values)
        if _error(of_nearest) < min(to_beat, _HELPS * _error(of_lines)):
            return BySize(_nearest(wanted, values), of_nearest)
    if _error(of_lines) >= to_beat:
        return None
    line = _total(list(map(_Sums.of, values))).line()
    misses = [line.log_seconds(each.size) - each.log_seconds for each in values]
    outside = max(min(sizes) - wanted.log_size, wanted.log_size - max(sizes), 0.0)
    return BySize(line.log_seconds(size), misses, _FAR * outside)


def _scaled(known: SizedValue, wanted: SizedValue) -> BySize:
    """One value in proportion to the size, except for the start of the container."""
    seconds = math.exp(known.log_seconds)
    start = min(seconds, _START_SECONDS)
    apart = wanted.log_size - known.log_size
    scaled = start + (seconds - start) * math.exp(apart)
    return BySize(math.log(max(LEAST_SECONDS, scaled)), extrapolation=_FAR * abs(apart))


def _error(misses: Sequence[float]) -> float:
    return fmean(abs(each) for each in misses)


def _is_among(wanted: SizedValue, log_sizes: Sequence[float]) -> bool:
    return min(log_sizes) - _SAME_SIZE <= wanted.log_size <= max(log_sizes) + _SAME_SIZE


def _nearest(wanted: SizedValue, values: Sequence[SizedValue]) -> float:
    """The mean of the values of the nearest sizes."""
    ordered = sorted(values, key=lambda each: abs(each.log_size - wanted.log_size))
    return fmean(each.log_seconds for each in ordered[:_NEAREST])


def _misses_of_nearest(values: Sequence[SizedValue]) -> list[float]:
    """How each value is missed by those of the nearest sizes among the others."""
    ordered = sorted(values, key=lambda each: each.log_size)
    misses = []
    for place, each in enumerate(ordered):
        before = ordered[max(0, place - _NEAREST) : place]
        after = ordered[place + 1 : place + 1 + _NEAREST]
        misses.append(_nearest(each, [*before, *after]) - each.log_seconds)
    return misses


def _misses_of_median(values: Sequence[SizedValue]) -> list[float]:
    """How each value is missed by the median of the others."""
    ordered = sorted(each.log_seconds for each in values)
    last = len(ordered) - 1
    misses = []
    for number, value in enumerate(ordered):
        # Of the others, the one at a place at or after its own is one further.
        low, high = ((last - 1) // 2, last // 2)
        others = [ordered[place + (place >= number)] for place in (low, high)]
        misses.append(fmean(others) - value)
    return misses


@dataclass(frozen=True)
class _Sums:
    """Of w, w x, w t, w x^2 and w x t, where w is 1 / t^2: relative errors count."""

    weight: float
    size: float
    seconds: float
    square: float
    product: float

    @classmethod
    def of(cls, each: SizedValue) -> "_Sums":
        seconds = math.exp(each.log_seconds)
        weight = 1 / seconds**2
        return cls(weight, weight * each.size, weight * seconds, weight * each.size**2,
                   weight * each.size * seconds)  # fmt: skip

    def plus(self, other: "_Sums", sign: int = 1) -> "_Sums":
        return _Sums(
            self.weight + sign * other.weight,
            self.size + sign * other.size,
            self.seconds + sign * other.seconds,
            self.square + sign * other.square,
            self.product + sign * other.product,
        )

    def line(self) -> _Line:
        """The line of least squares."""
        determinant = self.weight * self.square - self.size**2
        constant = _Line(self.seconds / self.weight, 0.0)
        if determinant <= 1e-12 * self.weight * self.square:
            return constant
        slope = (self.weight * self.product - self.size * self.seconds) / determinant
        start = (self.seconds - slope * self.size) / self.weight
        if slope < 0:
            return constant
        return _Line(start, slope) if start >= 0 else _Line(0.0, self.product / self.square)


def _total(sums: Sequence[_Sums]) -> _Sums:
    total = sums[0]
    for each in sums[1:]:
        total = total.plus(each)
    return total


def _misses_of_lines(values: Sequence[SizedValue]) -> list[float]:
    """How each value is missed by the line through the others."""
    sums = list(map(_Sums.of, values))
    total = _total(sums)
    misses = []
    for number, (own, each) in enumerate(zip(sums, values, strict=True)):
        others = total.plus(own, -1)
        if min(others.weight, others.square / max(total.square, 1e-300)) <= _LOST * total.weight:
            others = _total([*sums[:number], *sums[number + 1 :]])
        misses.append(others.line().log_seconds(each.size) - each.log_seconds)
    return misses
