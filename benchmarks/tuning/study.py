"""A study: settings compared with the shipped one in pairs of searches, and what differs.

A pair has the same instance, seed and budget. The differences of an instance are averaged over its
seeds; instances are what is drawn, so the interval is over them: percentiles of a bootstrap (Efron,
Tibshirani 1993, "An introduction to the bootstrap", 13.3), which does not suppose that differences
are normal. Many are exactly 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np

from benchmarks.budget import Budget
from benchmarks.tuning.constants import Setting
from benchmarks.tuning.trials import Measurement, Trial
from kfp_placement_engine import GeneticParams

LEAST_PERCENT = 0.05
"""Smaller mean differences do not count, however narrow their intervals are."""

FEWEST_INSTANCES = 5
"""An interval from fewer would say nothing."""

RESAMPLES, BOOTSTRAP_SEED = 10_000, 0
_PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True)
class Study:
    """Comparison of settings of the search.

    Attributes:
        shipped: parameters that all settings are compared with.
        settings: the others, each of which changes the search of one of the kinds.
        kinds: kinds of the instances.
        instances: numbers of the instances, the same for every kind.
        seeds: seeds of the searches.
        budget: budget of the searches.
    """

    shipped: GeneticParams
    settings: Sequence[Setting]
    kinds: Sequence[str]
    instances: range
    seeds: range
    budget: Budget

    def trials(self) -> Iterator[Trial]:
        """Yield the searches; those of a pair, and of an instance, are near each other."""
        for kind in self.kinds:
            tried = [each.params for each in self.settings if kind in each.kinds]
            for instance, seed in product(self.instances, self.seeds):
                for params in [self.shipped, *tried] if tried else ():
                    yield Trial(kind, instance, seed, self.budget, params)

    def compare(self, measurements: Mapping[Trial, Measurement]) -> list["Comparison"]:
        """Return the comparison of each setting, in the order of the settings."""
        return [
            compare(
                setting,
                {
                    kind: self._differences(setting, kind, measurements)
                    for kind in self.kinds
                    if kind in setting.kinds
                },
            )
            for setting in self.settings
        ]

    def _differences(
        self, setting: Setting, kind: str, measurements: Mapping[Trial, Measurement]
    ) -> list[float]:
        """Return differences by instance, in percent of the shipped setting; below 0 is better."""

        def completion(instance: int, seed: int, params: GeneticParams) -> float:
            return measurements[Trial(kind, instance, seed, self.budget, params)].completion_seconds

        return [
            fmean(
                100
                * (
                    completion(instance, seed, setting.params)
                    / completion(instance, seed, self.shipped)
                    - 1
                )
                for seed in self.seeds
            )
            for instance in self.instances
        ]


@dataclass(frozen=True)
class Interval:
    """A mean difference in percent, and its 95% interval; below 0 the setting is better."""

    mean: float
    low: float
    high: float

    @property
    def is_better(self) -> bool:
        """True if the setting is better than the shipped one by enough, with its whole interval."""
        return self.mean <= -LEAST_PERCENT and self.high < 0

    @property
    def is_worse(self) -> bool:
        """True if the setting is worse by enough, with its whole interval."""
        return self.mean >= LEAST_PERCENT and self.low > 0


@dataclass(frozen=True)
class Comparison:
    """A setting beside the shipped one.

    Attributes:
        setting: the setting.
        by_kind: differences by kind of instances.
        overall: comparison of the mean over these kinds.
    """

    setting: Setting
    by_kind: Mapping[str, Interval]
    overall: Interval

    @property
    def better(self) -> list[str]:
        """Kinds in which the setting is better."""
        return [kind for kind, interval in self.by_kind.items() if interval.is_better]

    @property
    def worse(self) -> list[str]:
        """Kinds in which it is worse."""
        return [kind for kind, interval in self.by_kind.items() if interval.is_worse]


def compare(setting: Setting, differences: Mapping[str, Sequence[float]]) -> Comparison:
    """Return a comparison from the differences of each kind's instances."""
    by_kind = {kind: mean_interval([some]) for kind, some in differences.items()}
    return Comparison(setting, by_kind, mean_interval(list(differences.values())))


def mean_interval(groups: Sequence[Sequence[float]], seed: int = BOOTSTRAP_SEED) -> Interval:
    """Return the mean of the groups' means; each group is resampled on its own.

    Args:
        groups: differences, at least one in each.
        seed: seed of the bootstrap.
    """
    rng = np.random.default_rng(seed)
    means = np.zeros(RESAMPLES)
    for group in groups:
        values = np.asarray(group)
        means += values[rng.integers(0, values.size, (RESAMPLES, values.size))].mean(axis=1)
    low, high = np.percentile(means / len(groups), _PERCENTILES)
    return Interval(fmean(map(fmean, groups)), float(low), float(high))
