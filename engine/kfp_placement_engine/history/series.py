"""The last values of one thing, such as the run times of a step, and what the next one may be.

Everything is in logarithms: a step takes twice as long about as often as half as long.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kfp_placement_engine.model.forecast import Level

RECENT = 5
"""The median of this many last values is the next one: a change is followed within three runs."""

KEPT = 20
"""Largest number of values that a series keeps."""

SAME = math.log(1.1)
"""Amounts nearer to each other than this are one amount."""

_PRIOR_WEIGHT = 3.0
"""Weight of the expected spread, as a number of values."""

_LARGEST_MISSES = 5.0
"""Largest miss that counts, in spreads: one outlier does not decide everything that follows."""

NO_SIZE_BYTES = 1e6
"""Sizes below tell nothing of run times."""

Factors = tuple[float, ...]
"""Logarithms of what a value may follow: size of inputs, then numeric arguments; NaN = not
known, and () where nothing is."""

SIZE = 0
"""Place of the size of inputs among the factors."""

Value = tuple[float, Factors]
"""Logarithm of a past value, then its factors; others of its series may have more or fewer.

A plain tuple, since a history has millions: making named ones took a fifth of the time to learn.
"""


def factors_of(input_bytes: float | None, arguments: Iterable[float]) -> Factors:
    """Return the factors that a value may follow; arguments of 0 and less count as unknown."""
    size = math.nan if input_bytes is None else math.log(input_bytes + NO_SIZE_BYTES)
    factors = (size, *(math.log(each) if each > 0 else math.nan for each in arguments))
    return () if all(map(math.isnan, factors)) else factors


class Estimate(NamedTuple):
    """Estimate of the next value.

    Attributes:
        log_value: logarithm of the value.
        spread: standard deviation of that.
        misses: distances of past values above their predictions; () = they say nothing.
        factor: place among the factors of that which it follows; None = it follows none.
        level: similarity of the past steps that it rests on; None = it is not of a step.
        runs: number of runs with these values.
    """

    log_value: float
    spread: float
    misses: Sequence[float] = ()
    factor: int | None = None
    level: Level | None = None
    runs: int = 0


def packed_series(values: Sequence[Value]) -> bytes:
    """Return values in little memory, since a namespace has a million of them; fewer than 256."""
    numbers = array("d", [log_value for log_value, _ in values])
    for column in zip_longest(*[factors for _, factors in values], fillvalue=math.nan):
        numbers.extend(column)
    return bytes([len(values)]) + numbers.tobytes()


NO_VALUES = packed_series(())
"""Packed series without values."""


def unpacked_series(series: bytes) -> list[Value]:
    """Return the values again, with unknown amounts for factors that some do not have."""
    count, numbers = series[0], array("d", series[1:]).tolist()
    return [(numbers[at], tuple(numbers[at + count :: count])) for at in range(count)]


def typical_of(several: Iterable[Sequence[Value]]) -> list[Value]:
    """Return the median of the last values of each series, with its last factors."""
    return [
        (median([log_value for log_value, _ in each[-RECENT:]]), each[-1][1]) for each in several
    ]


def centred(
    logs: Sequence[float], prior: float, recent: int = RECENT, weight: float = _PRIOR_WEIGHT
) -> Estimate:
    """Estimate the next value by the median of the last ones.

    Args:
        logs: past values, the oldest first; at least one.
        prior: the spread that is expected before any value is seen.
        recent: number of last values that say where the next one lies.
        weight: weight of the prior, as a number of values.
    """
    centre = median(logs[-recent:])
    misses = [each - centre for each in logs]
    return Estimate(centre, spread_of(misses, prior, weight), misses)


def spread_of(misses: Sequence[float], prior: float, weight: float = _PRIOR_WEIGHT) -> float:
    """Return the spread of the next value: that of past ones, shrunk to the expected one.

    Args:
        misses: misses of past values; at least one.
        prior: the spread that is expected.
        weight: weight of the expected spread, as a number of values.
    """
    sizes = [abs(each) for each in misses]
    most = _LARGEST_MISSES * max(prior, 1.5 * median(sizes))
    squares = sum([min(each, most) ** 2 for each in sizes])
    variance = (weight * prior**2 + squares) / (weight + len(misses) - 1)
    # The middle of a few values is off that of many, too.
    return math.sqrt(variance * (1 + 1 / min(len(misses), RECENT)))


def mean_miss(misses: Sequence[float]) -> float:
    """Return the mean of their sizes."""
    return sum([abs(each) for each in misses]) / len(misses)


def median(numbers: Sequence[float]) -> float:
    """Return their median: that of `statistics` takes five times as long for a few numbers."""
    ascending, middle = sorted(numbers), len(numbers) // 2
    if len(numbers) % 2:
        return ascending[middle]
    return (ascending[middle - 1] + ascending[middle]) / 2
