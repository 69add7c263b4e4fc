"""What the expected end of a run says: how much of it came true in past runs of its pipeline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

_FULL_WEIGHT = 0.01
"""Squared deviations of logarithms that speak for expected ends to count in full, before runs do;
ten runs whose expected ends lie apart by a tenth count as ten times as much."""


@dataclass(frozen=True)
class ExpectedEnds:
    """How much of what was expected of past runs came true.

    What is expected changes from run to run as the estimates of steps do. Where it lies as it did
    before, only the share of that counts which came true of past runs. Between there and what the
    steps of these runs really took, the estimates follow, and nothing counts. What lies beyond both
    is a change of the run, such as a wider loop, and counts in full.

    Attributes:
        usual_seconds: in the middle of what was expected of past runs.
        least_seconds, most_seconds: the least and the greatest of that.
        true_seconds: what would have been expected by what the steps really took, in the middle.
        share: 0 = that runs were expected earlier or later said nothing; 1 = it came true in full.
    """

    usual_seconds: float
    least_seconds: float
    most_seconds: float
    true_seconds: float
    share: float

    def counted(self, expected_seconds: float) -> float:
        """What is left of an expected end if it counts by its share: seconds.

        Args:
            expected_seconds: of a run, before it began; more than 0.
        """
        inside = min(max(expected_seconds, self.least_seconds), self.most_seconds)
        damped: float = self.usual_seconds * (inside / self.usual_seconds) ** self.share
        least = min(self.least_seconds, self.true_seconds)
        most = max(self.most_seconds, self.true_seconds)
        return damped * expected_seconds / min(max(expected_seconds, least), most)


def expected_ends(
    log_expected: Sequence[float], log_seconds: Sequence[float], log_true: Sequence[float]
) -> ExpectedEnds:
    """Learn from past runs: the slope of what they took over what was expected, by least squares.

    Args:
        log_expected: logarithms of what was expected of each, in seconds; at least one.
        log_seconds: of what they took.
        log_true: of what would have been expected by what their steps really took, where known.
    """
    usual, middle = fmean(log_expected), fmean(log_seconds)
    squares, products = _FULL_WEIGHT, _FULL_WEIGHT
    for expected, seconds in zip(log_expected, log_seconds, strict=True):
        squares += (expected - usual) ** 2
        products += (expected - usual) * (seconds - middle)
    return ExpectedEnds(
        usual_seconds=math.exp(usual),
        least_seconds=math.exp(min(log_expected)),
        most_seconds=math.exp(max(log_expected)),
        true_seconds=math.exp(median(log_true) if log_true else usual),
        share=min(max(products / squares, 0.0), 1.0),
    )
