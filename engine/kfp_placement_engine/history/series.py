"""The last values of one thing, such as the run times of a step, and what the next one may be.

Everything is in logarithms: a step takes twice as long about as often as half as long.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

RECENT = 5
"""The median of so many last values is the next one: a change is followed within three runs."""

KEPT = 20
"""Values of a series."""

SAME = math.log(1.1)
"""Amounts nearer to each other than this are one amount."""

_PRIOR_WEIGHT = 3.0
"""How many values the spread counts that is expected before any value is seen."""

_LARGEST_MISSES = 5.0
"""What missed by more spreads counts as this in a spread: one outlier is not all that follows."""

NO_SIZE_BYTES = 1e6
"""Sizes below tell nothing of run times."""

Factors = tuple[float, ...]
"""Logarithms of what a value may follow: the size of inputs, then numeric arguments; NaN = not
known, and () where nothing is."""

Values = Sequence[tuple[float, Factors]]
"""Logarithms of values, the oldest first, each with its factors."""


def factors_of(input_bytes: float | None = None, arguments: Iterable[float] = ()) -> Factors:
    """What a value may follow; arguments of 0 and less are no amounts, and count as unknown."""
    size = math.nan if input_bytes is None else math.log(input_bytes + NO_SIZE_BYTES)
    factors = (size, *(math.log(each) if each > 0 else math.nan for each in arguments))
    return () if all(map(math.isnan, factors)) else factors


def factors_by_name(
    input_bytes: float | None, arguments: Mapping[str, float]
) -> tuple[Factors, tuple[str, ...]]:
    """The same with the names of the arguments, that of the size being ""."""
    return factors_of(input_bytes, arguments.values()), ("", *arguments)


class Estimate(NamedTuple):
    """What the next value may be.

    Attributes:
        log_value: its logarithm.
        spread: standard deviation of that.
        misses: by how much past values lay above what was known of them.
        factor: position of the factor that it follows; None = none.
        beyond: how much of the spread comes of lying beyond what was seen of the factor.
    """

    log_value: float
    spread: float
    misses: Sequence[float] = ()
    factor: int | None = None
    beyond: float = 0.0


class Series:
    """The last values of one thing, in an array: a namespace has a million of them."""

    __slots__ = ("_numbers", "_width")

    def __init__(self) -> None:
        """Begin with none."""
        self._numbers = array("d")
        self._width = 1

    def __len__(self) -> int:
        """How many values there are."""
        return len(self._numbers) // self._width

    def add(self, log_value: float, factors: Factors = (), kept: int = KEPT) -> None:
        """Append a value; the oldest goes where there are more than `kept`.

        Where it has another number of factors than those before, their meaning has changed: the
        values stay, without factors.
        """
        if len(factors) + 1 != self._width:
            logs, width = self._numbers[:: self._width], len(factors) + 1
            unknown = [math.nan] * len(factors)
            self._numbers = array("d", (each for log in logs for each in (log, *unknown)))
            self._width = width
        self._numbers.append(log_value)
        self._numbers.extend(factors)
        del self._numbers[: -kept * self._width]

    @property
    def values(self) -> Values:
        """All values."""
        numbers, width = self._numbers.tolist(), self._width
        return [
            (numbers[at], tuple(numbers[at + 1 : at + width]))
            for at in range(0, len(numbers), width)
        ]

    def typical(self) -> tuple[float, Factors]:
        """The median of the last values, with the last factors."""
        values = self.values
        return median(log for log, _ in values[-RECENT:]), values[-1][1]


def centred(logs: Sequence[float], prior: float, recent: int = RECENT) -> Estimate:
    """Estimate the next value by the median of the last ones.

    Args:
        logs: past values, the oldest first; at least one.
        prior: the spread that is expected before any value is seen.
        recent: how many last values say where the next one lies.
    """
    centre = median(logs[-recent:])
    misses = [each - centre for each in logs]
    return Estimate(centre, spread_of(misses, prior), misses)


def spread_of(misses: Sequence[float], prior: float) -> float:
    """How far the next value may lie off: as past ones did, shrunk to what is expected.

    Args:
        misses: of past values; at least one.
        prior: the spread that is expected.
    """
    most = _LARGEST_MISSES * max(prior, 1.5 * median(map(abs, misses)))
    squares = math.fsum(min(abs(each), most) ** 2 for each in misses)
    variance = (_PRIOR_WEIGHT * prior**2 + squares) / (_PRIOR_WEIGHT + len(misses) - 1)
    # The middle of a few values is off that of many, too.
    return math.sqrt(variance * (1 + 1 / min(len(misses), RECENT)))


def mean_miss(misses: Sequence[float]) -> float:
    """The mean of their sizes."""
    return fmean(map(abs, misses))
