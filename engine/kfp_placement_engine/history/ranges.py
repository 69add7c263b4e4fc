"""Ranges around estimates that hold as often as they should, by how estimates have missed."""

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from kfp_placement_engine.history.series import Estimate
from kfp_placement_engine.model.promise import TimeRange

_ENOUGH = 15
"""Number of past values from which they alone say how far the next one may lie off."""

_MOST_SCORES = 2_000
"""Scores of estimates that miss alike; the oldest go."""

_FIRST = (-2.13, -1.53, -1.19, -0.94, -0.74, -0.57, -0.41, -0.27, -0.13)
"""Scores that are expected before any is seen: Student's t with four degrees of freedom, below 0.
"""

_ROUNDING = 1e-9
"""A range is wider by this: what has been just as long before lies within."""


class Ranges:
    """Scores of estimates: misses in spreads, those together that rest on about as many values."""

    def __init__(self, wider: Mapping[int, float]) -> None:
        """Begin with none seen.

        Args:
            wider: factor by which estimates are expected to miss more than they say, by the least
                number of values that they rest on; others miss as much as they say.
        """
        self._wider = wider
        self._scores: dict[tuple[object, int], _Scores] = {}

    def learn(self, estimate: Estimate, log_value: float) -> None:
        """Keep by how much an estimate has missed.

        Args:
            estimate: estimate of the value, made before it was known.
            log_value: logarithm of the value that was observed.
        """
        self._of_alike(estimate).add((log_value - estimate.log_value) / estimate.spread)

    def around(self, estimate: Estimate, confidence: float) -> TimeRange:
        """Return the range around an estimate: by its own misses if these are many, else by scores.

        Args:
            estimate: estimate of the value, made before it was known.
            confidence: share of cases in which the range is to hold.
        """
        misses: Sequence[float] = self._of_alike(estimate).ascending
        unit = estimate.spread
        if len(estimate.misses) >= _ENOUGH:
            misses, unit = sorted(estimate.misses), 1.0
        outside, typical = (1 - confidence) / 2, math.exp(estimate.log_value)
        low, high = (unit * _quantile(misses, share) for share in (outside, 1 - outside))
        return TimeRange(
            typical * math.exp(min(low, 0.0)) * (1 - _ROUNDING),
            typical,
            typical * math.exp(max(high, 0.0)) * (1 + _ROUNDING),
        )

    def _of_alike(self, estimate: Estimate) -> "_Scores":
        """Return the scores of estimates that miss alike."""
        values = max((each for each in self._wider if each <= len(estimate.misses)), default=0)
        kind = estimate.level, values
        if kind not in self._scores:
            self._scores[kind] = _Scores(self._wider.get(values, 1.0))
        return self._scores[kind]


class _Scores:
    """Scores of estimates that miss alike, the last ones.

    Attributes:
        ascending: the scores by size.
    """

    def __init__(self, wider: float) -> None:
        """Begin with those that are expected, times a factor."""
        below = [wider * each for each in _FIRST]
        self._in_order = array("f", (*below, 0.0, *(-each for each in reversed(below))))
        self.ascending = self._in_order[:]

    def add(self, score: float) -> None:
        """Keep a score; the oldest goes if they are too many."""
        self._in_order.append(score)
        # As the array keeps it: with fewer digits.
        insort(self.ascending, self._in_order[-1])
        if len(self._in_order) > _MOST_SCORES:
            del self.ascending[bisect_left(self.ascending, self._in_order.pop(0))]


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value that a share exceeds: of n values the i-th is the quantile i / (n + 1)."""
    place = share * (len(ascending) + 1) - 1
    below = min(max(int(place), 0), len(ascending) - 2)
    low, high = ascending[below], ascending[below + 1]
    return low + (high - low) * min(max(place - below, 0.0), 1.0)
