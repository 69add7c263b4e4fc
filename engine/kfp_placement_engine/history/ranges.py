"""Ranges around estimates that hold as often as they should, by how estimates have missed."""

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kfp_placement_engine.history.series import Estimate
from kfp_placement_engine.model.promise import TimeRange

_ENOUGH = 15
"""From this many past values on these alone say how far the next one may lie off."""

_MOST_SCORES = 2_000
"""Scores of each kind; the oldest go."""

_FIRST = (-2.13, -1.53, -1.19, -0.94, -0.74, -0.57, -0.41, -0.27, -0.13)
"""Scores that are expected before any is seen: Student's t with four degrees of freedom, below 0.
"""

_ROUNDING = 1e-9
"""A range is wider by this: what has been just as long before lies within."""


class Kind(NamedTuple):
    """Estimates that miss alike.

    Attributes:
        level: what they rest on.
        least_values: on how many values at least.
        wider: how many times as far off they are than expected, before that was seen.
    """

    level: str
    least_values: int = 0
    wider: float = 1.0


def kind_of(level: str, values: int, wider: Mapping[int, float]) -> Kind:
    """The kind of an estimate.

    Args:
        level: what it rests on.
        values: on how many values.
        wider: how many times as far off estimates are, by on how many values they rest at least.
    """
    least = max((each for each in wider if each <= values), default=0)
    return Kind(level, least, wider.get(least, 1.0))


class Scores:
    """By how many spreads estimates of one kind have missed, the last ones.

    Attributes:
        ascending: all of them.
    """

    def __init__(self, wider: float = 1.0) -> None:
        """Begin with what is expected.

        Args:
            wider: how many times as far off estimates of this kind are.
        """
        below = [wider * each for each in _FIRST]
        self.ascending = array("f", (*below, 0.0, *(-each for each in reversed(below))))
        self._order = self.ascending[:]

    def add(self, score: float) -> None:
        """Keep one more."""
        self._order.append(score)
        insort(self.ascending, score)
        if len(self._order) > _MOST_SCORES:
            del self.ascending[bisect_left(self.ascending, self._order.pop(0))]


class Ranges:
    """Scores by kind of estimate, such as how many values it rests on."""

    def __init__(self) -> None:
        """Begin with none seen."""
        self._scores: dict[Kind, Scores] = {}

    def learn(self, kind: Kind, found: Estimate, log_value: float) -> None:
        """Keep by how much an estimate has missed.

        Args:
            kind: of the estimate.
            found: the estimate.
            log_value: what came of it.
        """
        if kind not in self._scores:
            self._scores[kind] = Scores(kind.wider)
        self._scores[kind].add((log_value - found.log_value) / found.spread)

    def scores(self, kind: Kind) -> Sequence[float]:
        """Those of a kind, ascending."""
        return (self._scores.get(kind) or Scores(kind.wider)).ascending


def range_around(found: Estimate, scores: Sequence[float], confidence: float) -> TimeRange:
    """The range around an estimate: by its own misses where these are many, else by scores.

    Args:
        found: the estimate.
        scores: of its kind, ascending.
        confidence: how often the range is to hold.
    """
    has_own = len(found.misses) >= _ENOUGH and not found.beyond
    misses, unit = (sorted(found.misses), 1.0) if has_own else (scores, found.spread)
    outside, typical = (1 - confidence) / 2, math.exp(found.log_value)
    low, high = (unit * _quantile(misses, share) for share in (outside, 1 - outside))
    return TimeRange(
        typical * math.exp(min(low, 0.0)) * (1 - _ROUNDING),
        typical,
        typical * math.exp(max(high, 0.0)) * (1 + _ROUNDING),
    )


def _quantile(ascending: Sequence[float], share: float) -> float:
    """What is exceeded with that share: of n values the i-th is the quantile i / (n + 1)."""
    place = share * (len(ascending) + 1) - 1
    below = min(max(int(place), 0), len(ascending) - 2)
    low, high = ascending[below], ascending[below + 1]
    return low + (high - low) * min(max(place - below, 0.0), 1.0)
