"""The next value by what it follows: the size of the inputs, or one numeric argument.

A factor counts where leaving out each past value in turn shows that it tells more than the median.
"""

import math
from collections.abc import Sequence
from operator import itemgetter
from statistics import fmean

from kfp_placement_engine.history.series import (
    RECENT,
    SAME,
    Columns,
    Estimate,
    Factors,
    centred,
    mean_miss,
    spread_of,
)

_CLEARLY = 0.8
"""What a factor must bring the mean miss down to. One of several arguments, such as a seed, tells
more by chance: twice."""

_GUESSED_SLOPE, _GUESS_WEIGHT = 0.8, 0.05
"""How values follow a factor before that was seen, and how much that counts, as a sum of squares.
"""

_FARTHER = 0.3
"""By how much the spread is larger for each factor e beyond what was seen."""

_FARTHEST = math.log(10.0)
"""Where a line ends: nobody knows how far it goes on."""

_LEAST_ARGUMENTS, _LEAST_SIZES = 4, 3
"""Values from which on arguments and sizes count."""

_Known = Sequence[tuple[float, float]]
"""Values of a factor, each with the logarithm of the past value."""

_Found = tuple[Estimate, float]
"""An estimate, and by how much past values are missed in that way on average."""


def next_value(
    columns: Columns, prior: float, factors: Factors = (), recent: int = RECENT
) -> Estimate:
    """Estimate the next value of a series.

    Args:
        columns: past values with their factors, the oldest first; at least one.
        prior: the spread that is expected before any value is seen.
        factors: what the next value may follow.
        recent: how many last values say where the next one lies if it follows nothing.
    """
    best, least = centred(columns[0], prior, recent), math.inf
    for place, (wanted, column) in enumerate(zip(factors, columns[1:], strict=False)):
        known = [pair for pair in zip(column, columns[0], strict=True) if not math.isnan(pair[0])]
        if math.isnan(wanted) or _are_all_alike(known, wanted):
            continue
        least = min(least, _CLEARLY * mean_miss(best.misses))
        found = _by_factor(known, wanted, prior / 2, place, least)
        if found is not None:
            best, least = found[0]._replace(factor=place), found[1]
    return best


def _are_all_alike(known: _Known, wanted: float) -> bool:
    """Whether a factor is the same wherever it is known."""
    places = [wanted, *(each for each, _ in known)]
    return max(places) - min(places) <= SAME


def _by_factor(
    known: _Known, wanted: float, prior: float, place: int, least: float
) -> _Found | None:
    """What one factor tells; None = less than is known without it."""
    places = [each for each, _ in known]
    low, high = min(places), max(places)
    wanted = min(max(wanted, low - _FARTHEST), high + _FARTHEST)
    outside = max(low - wanted, wanted - high, 0.0)
    line = _by_line(known, wanted, prior)
    if outside > SAME:
        # Beyond what was seen the size counts, whatever it has told.
        estimate, miss = line
        beyond = _FARTHER * outside
        spread = math.hypot(estimate.spread, beyond)
        is_told = place == 0 or _tells(known, miss, least, place)
        return (estimate._replace(spread=spread, beyond=beyond), miss) if is_told else None
    if len(known) >= _LEAST_ARGUMENTS:
        line = min(line, _by_nearest(known, wanted, prior), key=lambda each: each[1])
    return line if _tells(known, line[1], least, place) else None


def _tells(known: _Known, miss: float, least: float, place: int) -> bool:
    """Whether a factor brings misses down by enough, on enough values."""
    if place == 0:
        return len(known) >= _LEAST_SIZES and miss <= least
    return len(known) >= _LEAST_ARGUMENTS and miss <= _CLEARLY * least


def _by_line(known: _Known, wanted: float, prior: float) -> _Found:
    """By a line through all values, each missed by that through the others."""
    middle, centre = fmean(each for each, _ in known), fmean(log for _, log in known)
    square = _GUESS_WEIGHT + math.fsum((each - middle) ** 2 for each, _ in known)
    product = _GUESS_WEIGHT * _GUESSED_SLOPE + math.fsum(
        (each - middle) * (log - centre) for each, log in known
    )
    slope = min(1.0, max(0.0, product / square))
    misses = [log - centre - slope * (each - middle) for each, log in known]
    if len(known) > 1:
        kept = (1 - 1 / len(known) - (each - middle) ** 2 / square for each, _ in known)
        misses = [miss / share for miss, share in zip(misses, kept, strict=True)]
    found = Estimate(centre + slope * (wanted - middle), spread_of(misses, prior), misses)
    return found, mean_miss(misses)


def _by_nearest(known: _Known, wanted: float, prior: float) -> _Found:
    """By the two nearest values, each missed by those of the others."""
    ordered = sorted(known, key=itemgetter(0))
    misses = [
        log - _of_nearest([*ordered[max(0, at - 2) : at], *ordered[at + 1 : at + 3]], each)
        for at, (each, log) in enumerate(ordered)
    ]
    found = Estimate(_of_nearest(ordered, wanted), spread_of(misses, prior), misses)
    return found, mean_miss(misses)


def _of_nearest(known: _Known, wanted: float) -> float:
    nearest = sorted(known, key=lambda each: abs(each[0] - wanted))[:2]
    return fmean(log for _, log in nearest)
