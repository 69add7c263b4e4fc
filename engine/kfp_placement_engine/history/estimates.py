"""What several values tell of the next one: where it lies, and how far it may be from that.

Everything is in logarithms: a step takes twice as long about as often as half as long.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from kfp_placement_engine.history.sizes import SizedValue, by_size

RESOLUTION_SECONDS = 1 / math.sqrt(12)
"""Standard deviation of a time that is cut to a whole second, as Kubernetes writes them."""

_NORMAL_OVER_MEDIAN = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""

_OUTLYING = 5.0
"""Misses count up to this many standard deviations, as their median tells these."""

_MOST_SIZES = 40
"""This many last values are compared by size; older ones are of older code."""


@dataclass(frozen=True)
class Value:
    """A past run time.

    Attributes:
        log_seconds: its logarithm, as on a node of factor 1.
        input_bytes: size of the inputs; None = unknown.
    """

    log_seconds: float
    input_bytes: float | None = None


@dataclass(frozen=True)
class Prior:
    """What is expected of values before any is seen.

    Attributes:
        spread: standard deviation of their logarithms.
        by_size: the same of what is left where the size of the inputs counts.
        weight: how many values that is worth.
        resolution: standard deviation of a value that comes from how it is measured.
    """

    spread: float
    by_size: float = 0.0
    weight: float = 3.0
    resolution: float = RESOLUTION_SECONDS


@dataclass(frozen=True)
class Estimate:
    """The next value.

    Attributes:
        log_seconds: its logarithm.
        spread: standard deviation of that.
        by_size: whether the size of the inputs counts.
    """

    log_seconds: float
    spread: float
    by_size: bool = False


def estimate(
    values: Sequence[Value], input_bytes: float | None, prior: Prior, recent: int | None = None
) -> Estimate:
    """The next value of a row.

    Args:
        values: in the order in which they were seen, at least one.
        input_bytes: size of the next one's inputs; None = unknown.
        prior: what is expected of such values.
        recent: how many of the last values decide where the next one lies, if sizes do not help;
            None = all.
    """
    if input_bytes is not None:
        found = by_size(_sized(values), input_bytes)
        if found is not None:
            expected = replace(prior, spread=prior.by_size + found.extrapolation)
            spread = _spread(found.misses, found.log_seconds, expected)
            return Estimate(found.log_seconds, spread, by_size=True)
    logs = [each.log_seconds for each in values]
    centre = median(logs if recent is None else logs[-recent:])
    misses = [each - centre for each in logs]
    return Estimate(centre, _spread(misses, centre, prior))


def _sized(values: Sequence[Value]) -> list[SizedValue]:
    return [
        SizedValue(each.log_seconds, each.input_bytes)
        for each in values[-_MOST_SIZES:]
        if each.input_bytes is not None
    ]


def _spread(misses: Sequence[float], centre: float, prior: Prior) -> float:
    """Shrunk to what is expected; small values vary by how they are measured too.

    Outliers count as less: that there may be more of them is part of how forecasts missed.
    """
    freedom = prior.weight + max(len(misses) - 1, 0)
    most = _OUTLYING * max(prior.spread, robust_deviation(misses))
    squares = sum(min(abs(each), most) ** 2 for each in misses)
    variance = (prior.weight * prior.spread**2 + squares) / freedom
    return math.sqrt(variance + (prior.resolution / math.exp(centre)) ** 2)


def robust_deviation(misses: Sequence[float]) -> float:
    """Standard deviation of normal values whose median absolute value is that of the misses."""
    return _NORMAL_OVER_MEDIAN * median(map(abs, misses)) if misses else 0.0
