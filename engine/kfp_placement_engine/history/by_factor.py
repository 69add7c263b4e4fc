"""The next value by what it follows: the size of the inputs, or one numeric argument.

A factor counts where past values are missed clearly less by those with the nearest amounts of it
than by the median of the last ones.
"""

import math
from collections.abc import Sequence
from operator import itemgetter
from statistics import fmean

from kfp_placement_engine.history.series import (
    RECENT,
    SAME,
    SIZE,
    Estimate,
    Factors,
    Value,
    centred,
    mean_miss,
    spread_of,
)

_CLEARLY = 0.8
"""Share of the usual mean miss below which a factor counts; squared for an argument, since one of
several, such as a seed, fits by chance."""

_ENOUGH = 4
"""Values from which on a factor counts."""

_GUESSED_SLOPE, _GUESS_WEIGHT = 0.8, 0.05
"""Slope of values by a factor before any was seen, and its weight as a sum of squares."""

_FARTHER = 0.3
"""Additional spread for each factor e beyond the amounts that were seen."""

_FARTHEST = math.log(10.0)
"""Distance from the seen amounts beyond which values no longer follow a factor."""

_Points = Sequence[tuple[float, float]]
"""Amounts of a factor, each with the logarithm of the past value."""


def next_value(values: Sequence[Value], prior: float, factors: Factors, recent: int) -> Estimate:
    """Estimate the next value of a series.

    Args:
        values: past ones, the oldest first; at least one.
        prior: the spread that is expected before any value is seen.
        factors: factors that the next value may follow.
        recent: number of last values that say where the next one lies if it follows nothing.
    """
    best = usual = centred([log_value for log_value, _ in values], prior, recent)
    least = mean_miss(usual.misses)
    for place, wanted in enumerate(factors):
        points = [] if math.isnan(wanted) else _points(values, place)
        if not points:
            continue
        low, high = points[0][0], points[-1][0]
        if max(high, wanted) - min(low, wanted) <= SAME:
            continue
        wanted = min(max(wanted, low - _FARTHEST), high + _FARTHEST)
        beyond = max(low - wanted, wanted - high)
        is_known, is_size, is_beyond = len(points) >= _ENOUGH, place == SIZE, beyond > SAME
        slope = _slope(points)
        misses = _misses(points, slope) if is_known else usual.misses
        miss = mean_miss(misses)
        tells = is_known and miss <= least * (_CLEARLY if is_size else _CLEARLY**2)
        # Beyond what was seen the size counts, whatever it has told.
        if tells or (is_size and is_beyond):
            spread = spread_of(misses, prior / 2)
            best, least = Estimate(_of_nearest(points, wanted, slope), spread, misses, place), miss
            if is_beyond:
                # Of how far it lies off there the misses tell nothing but how many they are.
                spread = math.hypot(spread, _FARTHER * beyond)
                best = best._replace(spread=spread, misses=misses[:RECENT])
    return best


def _points(values: Sequence[Value], place: int) -> _Points:
    """Return the known amounts of one factor, ascending, each with the past value."""
    points = ((factors[place], log) for log, factors in values if place < len(factors))
    return sorted((point for point in points if not math.isnan(point[0])), key=itemgetter(0))


def _slope(points: _Points) -> float:
    """Return the slope of values by a factor: at most in proportion."""
    middle, centre = fmean([each for each, _ in points]), fmean([log for _, log in points])
    square = _GUESS_WEIGHT + math.fsum((each - middle) ** 2 for each, _ in points)
    product = _GUESS_WEIGHT * _GUESSED_SLOPE + math.fsum(
        (each - middle) * (log - centre) for each, log in points
    )
    return min(1.0, max(0.0, product / square))


def _misses(points: _Points, slope: float) -> Sequence[float]:
    """Return the distance of each value above the estimate from its neighbours, by amount."""
    return [
        log - _of_nearest([*points[max(0, at - 2) : at], *points[at + 1 : at + 3]], amount, slope)
        for at, (amount, log) in enumerate(points)
    ]


def _of_nearest(points: _Points, wanted: float, slope: float) -> float:
    """Return the estimate from the two nearest amounts; of equal amounts from the last ones."""
    nearest = sorted(points, key=lambda each: abs(each[0] - wanted), reverse=True)[-2:]
    return sum([log + slope * (wanted - amount) for amount, log in nearest]) / len(nearest)
