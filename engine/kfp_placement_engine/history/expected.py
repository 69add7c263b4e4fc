"""How much of what was expected of runs counts, learned from what they took."""

import math
from collections.abc import Sequence
from statistics import fmean, median

from kfp_placement_engine.history.estimates import middle_mean
from kfp_placement_engine.model.expected_ends import ExpectedEnds

_FULL = 1.0
_SHARES = (_FULL, 0.75, 0.5, 0.25, 0.0)
"""Of what is expected, that may count; of two that do as well the first."""

_BETTER = 0.85
"""A smaller share counts only if it brings errors down to this."""

_JUDGED_RUNS = 8
"""The last ones decide between shares, each forecast from all before it."""


def expected_ends(
    log_expected: Sequence[float], log_seconds: Sequence[float], log_true: Sequence[float]
) -> ExpectedEnds:
    """Learn from past runs, the oldest first: the share by which later ones were forecast best.

    Args:
        log_expected: logarithms of what was expected of each, in seconds; at least one.
        log_seconds: of what they took.
        log_true: of what would have been expected by what their steps really took, where known.
    """
    usual = fmean(log_expected)
    return ExpectedEnds(
        usual_seconds=math.exp(usual),
        least_seconds=math.exp(min(log_expected)),
        most_seconds=math.exp(max(log_expected)),
        true_seconds=math.exp(median(log_true) if log_true else usual),
        share=_share(log_expected, log_seconds),
    )


def _share(log_expected: Sequence[float], log_seconds: Sequence[float]) -> float:
    errors = {share: _error(share, log_expected, log_seconds) for share in _SHARES}
    best = min(_SHARES, key=errors.__getitem__)
    return best if errors[best] < _BETTER * errors[_FULL] else _FULL


def _error(share: float, log_expected: Sequence[float], log_seconds: Sequence[float]) -> float:
    """By how much the last runs were missed, had this share counted."""
    pairs = zip(log_expected, log_seconds, strict=True)
    left = [seconds - share * expected for expected, seconds in pairs]
    judged = range(max(1, len(left) - _JUDGED_RUNS), len(left))
    return math.fsum(abs(left[number] - middle_mean(left[:number])) for number in judged)
