"""The last values of one thing, such as the run times of a step, and what the next one may be.

Everything is in logarithms: a step takes twice as long about as often as half as long.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

RECENT = 5
"""The median of this many last values is the next one: a change is followed within three runs."""

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

Columns = Sequence[Sequence[float]]
"""Logarithms of values, the oldest first; then, for each factor, what it was of each value."""


def factors_of(input_bytes: float | None = None, arguments: Iterable[float] = ()) -> Factors:
    """What a value may follow; arguments of 0 and less count as unknown."""
    size = math.nan if input_bytes is None else math.log(input_bytes + NO_SIZE_BYTES)
    factors = (size, *(math.log(each) if each > 0 else math.nan for each in arguments))
    return () if all(map(math.isnan, factors)) else factors


class Estimate(NamedTuple):
    """What the next value may be.

    Attributes:
        log_value: its logarithm.
        spread: standard deviation of that.
        misses: by how much past values lay above what was known of them; () = that tells nothing.
        factor: position of the factor that it follows; None = none.
    """

    log_value: float
    spread: float
    misses: Sequence[float] = ()
    factor: int | None = None


Series = bytes
"""The last values of one thing with their factors, packed: a namespace has a million of them.

The first byte is the number of factors; all columns follow.
"""


def columns_in(series: Series) -> Columns:
    """Return all values with their factors; no value and no factor where it is empty."""
    if not series:
        return [[]]
    numbers = array("d", series[1:]).tolist()
    length = len(numbers) // (1 + series[0])
    return [numbers[at : at + length] for at in range(0, len(numbers), length)]


def extended(series: Series, log_value: float, factors: Factors, kept: int) -> Series:
    """Return the series with one more value; the oldest goes where there are more than `kept`.

    Where that has more or fewer factors than those before, their meaning has changed: the
    values stay, without factors.
    """
    logs, *of_factors = columns_in(series)
    if len(of_factors) != len(factors):
        of_factors = [[math.nan] * len(logs) for _ in factors]
    new = zip([logs, *of_factors], (log_value, *factors), strict=True)
    columns = ([*column, number][-kept:] for column, number in new)
    return bytes([len(factors)]) + array("d", chain(*columns)).tobytes()


def typical_of(several: Iterable[Series]) -> Columns:
    """Of each series the median of its last values, with its last factors; some may have fewer."""
    columns = [columns_in(each) for each in several]
    width = max(map(len, columns), default=1)
    of_factors = (
        [each[at][-1] if at < len(each) else math.nan for each in columns] for at in range(1, width)
    )
    return [[median(each[0][-RECENT:]) for each in columns], *of_factors]


def centred(
    logs: Sequence[float], prior: float, recent: int = RECENT, weight: float = _PRIOR_WEIGHT
) -> Estimate:
    """Estimate the next value by the median of the last ones.

    Args:
        logs: past values, the oldest first; at least one.
        prior: the spread that is expected before any value is seen.
        recent: how many last values say where the next one lies.
        weight: how many values the prior counts.
    """
    centre = median(logs[-recent:])
    misses = [each - centre for each in logs]
    return Estimate(centre, spread_of(misses, prior, weight), misses)


def spread_of(misses: Sequence[float], prior: float, weight: float = _PRIOR_WEIGHT) -> float:
    """How far the next value may lie off: as past ones did, shrunk to what is expected.

    Args:
        misses: of past values; at least one.
        prior: the spread that is expected.
        weight: how many values that counts.
    """
    sizes = [abs(each) for each in misses]
    most = _LARGEST_MISSES * max(prior, 1.5 * median(sizes))
    squares = sum([min(each, most) ** 2 for each in sizes])
    variance = (weight * prior**2 + squares) / (weight + len(misses) - 1)
    # The middle of a few values is off that of many, too.
    return math.sqrt(variance * (1 + 1 / min(len(misses), RECENT)))


def mean_miss(misses: Sequence[float]) -> float:
    """The mean of their sizes."""
    return sum([abs(each) for each in misses]) / len(misses)


def median(numbers: Sequence[float]) -> float:
    """Their median: that of `statistics` takes five times as long for a few numbers."""
    ascending, middle = sorted(numbers), len(numbers) // 2
    if len(numbers) % 2:
        return ascending[middle]
    return (ascending[middle - 1] + ascending[middle]) / 2
