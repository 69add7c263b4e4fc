"""What the steps of one run have in common: in a slow hour all of them are slow.

Each step of a run has a score: the quantile of its time in what was forecast, as a standard normal
number. A score is sqrt(share) times the run's common factor plus sqrt(1 - share) times a number of
its own (a one-factor Gaussian copula: Vasicek 1987, Li 2000), so that each step alone has the
distribution that was forecast. The share is learned from the runs before.
"""

import math
from collections import deque
from collections.abc import Sequence
from statistics import NormalDist, fmean

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.forecast import CommonFactor
from kfp_placement_engine.model.history import MOST_PIPELINES

RUNS_KEPT = 20

MOST_SHARE = 0.95
_SHRINKAGE = 2
"""A share that n runs show counts by n / (n + 2)."""

_NORMAL = NormalDist()
_LEAST_PROBABILITY = 1e-4


def score_of(probability: float) -> float:
    """The standard normal number with this probability below it."""
    within = min(max(probability, _LEAST_PROBABILITY), 1 - _LEAST_PROBABILITY)
    return _NORMAL.inv_cdf(within)


class CommonFactors:
    """How much the steps of a run have in common, of the pipelines of one namespace."""

    def __init__(self) -> None:
        """Begin with nothing known: nothing in common."""
        self._shares: Recent[str, deque[float]] = Recent(MOST_PIPELINES)

    def observe(self, pipeline: str, scores: Sequence[float]) -> None:
        """Learn from a run that has ended; one of fewer than two scores shows nothing."""
        count = len(scores)
        if count < 2:
            return
        # The mean product of two different scores is an unbiased estimate of their correlation.
        products = math.fsum(scores) ** 2 - math.fsum(each * each for each in scores)
        kept = self._shares.used(pipeline, lambda: deque(maxlen=RUNS_KEPT))
        kept.append(products / (count * (count - 1)))

    def of(self, pipeline: str) -> CommonFactor:
        """That of the next run of a pipeline, before any of its steps has ended."""
        shares = self._shares.get(pipeline)
        if not shares:
            return CommonFactor()
        shown = fmean(shares) * len(shares) / (len(shares) + _SHRINKAGE)
        return CommonFactor(share=min(max(shown, 0.0), MOST_SHARE))
