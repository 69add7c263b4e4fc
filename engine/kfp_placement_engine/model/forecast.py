"""What is forecast of a step or a run: distributions of run times, and what they rest on."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from random import Random

from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS

_MEAN_POINTS = 200
"""Quantiles of which a mean is made."""

MOST_DEVIATIONS = 6.0
"""By this many spreads a forecast misses at most: one outlier must not mean that all may follow."""


class Level(StrEnum):
    """Which past runs a forecast rests on, the most similar first."""

    ITERATION = "iteration"
    STEP = "step"
    COMPONENT = "component"
    IMAGE = "image"
    PIPELINE = "pipeline"
    NAMESPACE = "namespace"


OWN_LEVELS = (Level.ITERATION, Level.STEP)
"""The very step. Where it misses what other steps tell of it, that says nothing of the run."""

KNOWN_LEVELS = (*OWN_LEVELS, Level.COMPONENT)
"""Steps that have only an image in common differ tenfold: a range of that promises nothing."""


@dataclass(frozen=True)
class Basis:
    """What a forecast rests on.

    Attributes:
        level: which past runs.
        runs: how many runs of it were seen; for the wider levels those of the step that was seen
            most often.
        by_size: whether the size of the inputs counts.
        by_argument: name of the numeric argument that counts in place of it; "" = none does.
    """

    level: Level
    runs: int
    by_size: bool = False
    by_argument: str = ""

    @property
    def is_guess(self) -> bool:
        """Whether it tells little: of steps that have only an image in common, or nothing."""
        return self.level not in KNOWN_LEVELS


@dataclass(frozen=True)
class Shape:
    """How past forecasts missed: the distribution of log(true / forecast) over its spread.

    Between the misses it is linear (the i-th of n misses is the quantile i / (n + 1)); beyond them
    it falls off exponentially, so that whatever has not ended yet has a time left.

    Attributes:
        misses: ascending, at least two.
    """

    misses: tuple[float, ...]

    def at(self, survival: float) -> float:
        """The miss that is exceeded with this probability, above 0 and below 1."""
        count = len(self.misses)
        place = (1 - survival) * (count + 1)
        if place <= 1:
            return self.misses[0] + self._lower_scale * math.log(max(place, 1e-300))
        from_above = survival * (count + 1)
        if from_above <= 1:
            return self.misses[-1] - self._upper_scale * math.log(max(from_above, 1e-300))
        below = min(int(place), count - 1)
        low, high = self.misses[below - 1], self.misses[below]
        return low + (high - low) * (place - below)

    def survival(self, miss: float) -> float:
        """The probability that a miss is larger than this."""
        count = len(self.misses)
        if miss <= self.misses[0]:
            return 1 - math.exp((miss - self.misses[0]) / self._lower_scale) / (count + 1)
        if miss >= self.misses[-1]:
            return math.exp((self.misses[-1] - miss) / self._upper_scale) / (count + 1)
        below = bisect_right(self.misses, miss)
        low, high = self.misses[below - 1], self.misses[below]
        return 1 - (below + (miss - low) / (high - low)) / (count + 1)

    @cached_property
    def _upper_scale(self) -> float:
        """By how much the largest tenth exceed the quantile of 90% on average."""
        threshold = self.misses[-1 - len(self.misses) // 10]
        largest = self.misses[bisect_left(self.misses, threshold) :]
        return _mean_excess([each - threshold for each in largest])

    @cached_property
    def _lower_scale(self) -> float:
        threshold = self.misses[len(self.misses) // 10]
        smallest = self.misses[: bisect_right(self.misses, threshold)]
        return _mean_excess([threshold - each for each in smallest])


def _mean_excess(excesses: Sequence[float]) -> float:
    """At least a quarter of the spread: a few equal misses do not mean that there are no others."""
    return max(0.25, sum(excesses) / len(excesses))


@dataclass(frozen=True)
class Distribution:
    """How long a step may take.

    Attributes:
        scale_seconds: what the misses are multiplied with; near the median.
        spread: standard deviation of the logarithm by which such forecasts miss, before they are
            compared with how they did.
        shape: how they did.
        ran_seconds: how long the step has run already, so that shorter times are ruled out.
    """

    scale_seconds: float
    spread: float
    shape: Shape
    ran_seconds: float = 0.0

    def quantile(self, probability: float) -> float:
        """Seconds within which the step ends with this probability, above 0 and below 1.

        Raises:
            ValueError: it is not a probability.
        """
        if not 0 < probability < 1:
            raise ValueError(f"probability {probability!r}; it must lie between 0 and 1")
        miss = self.spread * self.shape.at(self.survival * (1 - probability))
        longest = math.log(MAX_DURATION_SECONDS)
        seconds = math.exp(min(longest, math.log(self.scale_seconds) + miss))
        return max(self.ran_seconds, seconds)

    def probability(self, seconds: float) -> float:
        """How probable it is that the step ends within this time."""
        if seconds <= self.ran_seconds:
            return 0.0
        miss = (math.log(seconds) - math.log(self.scale_seconds)) / self.spread
        return 1 - min(1.0, self.shape.survival(miss) / max(self.survival, 1e-300))

    @property
    def median_seconds(self) -> float:
        """The forecast: as many take longer as take less."""
        return self.quantile(0.5)

    @property
    def mean_seconds(self) -> float:
        """The mean, except for the last quarter of a percent."""
        points = ((number + 0.5) / _MEAN_POINTS for number in range(_MEAN_POINTS))
        return math.fsum(self.quantile(point) for point in points) / _MEAN_POINTS

    def sample(self, random: Random) -> float:
        """Seconds, drawn."""
        return self.quantile(min(max(random.random(), 1e-12), 1 - 1e-12))

    def after(self, seconds: float) -> "Distribution":
        """The distribution of a step that has run for this long and has not ended.

        One that runs for longer than any forecast was wrong shows that its spread is larger.

        Raises:
            ValueError: the time is negative or not a number.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a step that has run for {seconds!r} s; it must be 0 or more")
        ran_seconds, spread = max(self.ran_seconds, seconds), self.spread
        if ran_seconds > self.scale_seconds:
            late = math.log(ran_seconds) - math.log(self.scale_seconds)
            spread = max(spread, late / MOST_DEVIATIONS)
        return replace(self, ran_seconds=ran_seconds, spread=spread)

    @cached_property
    def survival(self) -> float:
        """The probability of running for longer than it has."""
        if self.ran_seconds == 0:
            return 1.0
        reached = math.log(self.ran_seconds) - math.log(self.scale_seconds)
        return self.shape.survival(reached / self.spread)


@dataclass(frozen=True)
class CommonFactor:
    """What the steps of a run have in common; see `history.common_factor`.

    Attributes:
        share: of the variance of each step's score, from 0 to below 1.
        mean, deviation: of the factor, as far as it is known; before the run standard normal.
    """

    share: float = 0.0
    mean: float = 0.0
    deviation: float = 1.0

    def given(self, scores: Sequence[float], weight: float = 1.0) -> "CommonFactor":
        """What is known of it once some steps have ended.

        Args:
            scores: of these steps, all of those that have ended.
            weight: how much a score counts, above 0; 1 = nothing but the factor makes them alike.
        """
        left = (1 - self.share) / weight
        precision = 1 / self.deviation**2 + len(scores) * self.share / left
        pull = self.mean / self.deviation**2 + math.sqrt(self.share) * math.fsum(scores) / left
        return CommonFactor(self.share, pull / precision, 1 / math.sqrt(precision))


@dataclass(frozen=True)
class Forecast:
    """What the past tells of a step.

    Attributes:
        distribution: how long it may take.
        basis: what that rests on.
    """

    distribution: Distribution
    basis: Basis
