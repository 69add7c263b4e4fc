"""Ranges around estimates that hold as often as they should, by how estimates have missed."""

import math
from array import array
from collections.abc import Mapping, Sequence

from kfp_placement_engine.history.series import Estimate
from kfp_placement_engine.model.promise import TimeRange

_ENOUGH = 15
"""From this many past values on these alone say how far the next one may lie off."""

_MOST_SCORES = 2_000
"""Scores of estimates that miss alike; the oldest go."""

_FIRST = (-2.13, -1.53, -1.19, -0.94, -0.74, -0.57, -0.41, -0.27, -0.13)
"""Scores that are expected before any is seen: Student's t with four degrees of freedom, below 0.
"""

_ROUNDING = 1e-9
"""A range is wider by this: what has been just as long before lies within."""


class Ranges:
    """By how many spreads estimates have missed: those alike that rest on about as many values."""

    def __init__(self, wider: Mapping[int, float]) -> None:
        """Begin with none seen.

        Args:
            wider: how many times as far off estimates are expected to be, by on how many values
                they rest at least; others as far as they say.
        """
        self._wider = wider
        self._scores: dict[tuple[str, int], array[float]] = {}
        self._ascending: dict[tuple[str, int], array[float]] = {}

    def learn(self, level: str, found: Estimate, log_value: float) -> None:
        """Keep by how much an estimate has missed.

        Args:
            level: what it rests on.
            found: the estimate.
            log_value: what came of it.
        """
        kind = self._kind(level, found)
        scores = self._scores.setdefault(kind, self._expected(kind))
        scores.append((log_value - found.log_value) / found.spread)
        del scores[:-_MOST_SCORES]
        self._ascending.pop(kind, None)

    def around(self, level: str, found: Estimate, confidence: float) -> TimeRange:
        """The range around an estimate: by its own misses where these are many, else by scores.

        Args:
            level: what it rests on.
            found: the estimate.
            confidence: how often the range is to hold.
        """
        misses, unit = self._in_order(self._kind(level, found)), found.spread
        if len(found.misses) >= _ENOUGH:
            misses, unit = sorted(found.misses), 1.0
        outside, typical = (1 - confidence) / 2, math.exp(found.log_value)
        low, high = (unit * _quantile(misses, share) for share in (outside, 1 - outside))
        return TimeRange(
            typical * math.exp(min(low, 0.0)) * (1 - _ROUNDING),
            typical,
            typical * math.exp(max(high, 0.0)) * (1 + _ROUNDING),
        )

    def _in_order(self, kind: tuple[str, int]) -> Sequence[float]:
        if kind not in self._ascending:
            scores = self._scores.get(kind) or self._expected(kind)
            self._ascending[kind] = array("f", sorted(scores))
        return self._ascending[kind]

    def _kind(self, level: str, found: Estimate) -> tuple[str, int]:
        """Level, and how many values an estimate rests on at least: those of a kind miss alike."""
        return level, max((each for each in self._wider if each <= len(found.misses)), default=0)

    def _expected(self, kind: tuple[str, int]) -> "array[float]":
        """Scores of a kind before any is seen."""
        below = [self._wider.get(kind[1], 1.0) * each for each in _FIRST]
        return array("f", (*below, 0.0, *(-each for each in reversed(below))))


def _quantile(ascending: Sequence[float], share: float) -> float:
    """What is exceeded with that share: of n values the i-th is the quantile i / (n + 1)."""
    place = share * (len(ascending) + 1) - 1
    below = min(max(int(place), 0), len(ascending) - 2)
    low, high = ascending[below], ascending[below + 1]
    return low + (high - low) * min(max(place - below, 0.0), 1.0)
