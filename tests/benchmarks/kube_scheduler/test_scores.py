"""The scalar scores, against figures worked out by hand from the formulas of kube-scheduler."""

import pytest

from benchmarks.kube_scheduler import kube_scores
from tests.support.kubernetes import MEBIBYTE


@pytest.mark.parametrize(
    ("requested", "allocatable", "score"),
    [
        ((0, 0), (1_000, 1_000), 100),
        ((1_000, 1_000), (1_000, 1_000), 0),
        ((500, 250), (1_000, 1_000), (50 + 75) // 2),
        # Each resource is truncated before the mean is: 66 and 33, not 66.67 and 33.33.
        ((1, 2), (3, 3), (66 + 33) // 2),
        ((1_001, 0), (1_000, 1_000), 50),
        ((5, 5), (0, 10), 50),
        ((5, 5), (10, 0), 50),
        ((5, 5), (0, 0), 0),
    ],
)
def test_least_allocated(requested, allocatable, score):
    assert kube_scores.least_allocated(*requested, *allocatable) == score


@pytest.mark.parametrize(
    ("requested", "allocatable", "score"),
    [((0, 0), (10, 10), 0), ((5, 20), (10, 10), 75), ((1, 1), (3, 3), 33), ((1, 1), (0, 0), 0)],
)
def test_most_allocated(requested, allocatable, score):
    assert kube_scores.most_allocated(*requested, *allocatable) == score


def test_percentages_wrap_as_in_go():
    """(2^62 - 2^60) * 100 is 18 * 2^64 + 3 * 2^62: Go keeps -2^62 of it, then divides."""
    assert kube_scores.least_allocated(0, 2**60, 10, 2**62) == (100 - 1) // 2


@pytest.mark.parametrize(
    ("used", "pod", "allocatable", "until_135", "since_136"),
    [
        # An empty node is balanced (100); the pod makes it 90, so the score falls below 75.
        ((0, 0), (200, 0), (1_000, 1_000), 90, 50 + (50 + 90 - 100) // 2),
        # The pod restores the balance: 80 -> 100.
        ((400, 0), (0, 400), (1_000, 1_000), 100, 50 + (50 + 100 - 80) // 2),
        # No change is neutral.
        ((100, 100), (100, 100), (1_000, 1_000), 100, 75),
        # Fractions end at 1.
        ((5_000, 0), (0, 1_000), (1_000, 1_000), 100, 50 + (50 + 100 - 50) // 2),
        # One resource only: nothing to balance.
        ((0, 0), (200, 200), (1_000, 0), 100, 75),
        # (1 - 17/25/2) * 100 is 65.99999999999999 in floating point, and int() truncates it.
        ((0, 0), (17, 0), (25, 25), 65, 50 + (50 + 65 - 100) // 2),
        ((0, 0), (1, 0), (3, 3), 83, 66),
    ],
)
def test_balanced_allocation(used, pod, allocatable, until_135, since_136):
    """1.36 scores what the pod does to the balance, 1.35 the balance itself."""
    assert kube_scores.balanced_allocation(*used, *pod, *allocatable, False) == until_135
    assert kube_scores.balanced_allocation(*used, *pod, *allocatable, True) == since_136


@pytest.mark.parametrize(
    ("count", "maximum", "more_is_better", "less_is_better"),
    [(0, 0, 0, 100), (0, 3, 0, 100), (1, 3, 33, 67), (2, 3, 66, 34), (3, 3, 100, 0)],
)
def test_normalising(count, maximum, more_is_better, less_is_better):
    """The share is truncated first; reversing is 100 less the share."""
    assert kube_scores.normalise(count, maximum) == more_is_better
    assert kube_scores.normalise_reversed(count, maximum) == less_is_better


@pytest.mark.parametrize(
    ("mebibytes", "containers", "score"),
    [
        (0, 1, 0),
        (23, 1, 0),
        (24, 1, 0),
        (33, 1, 100 * 10 // 977),
        (1_000, 1, 100),
        (9_999, 1, 100),
        (1_000, 2, 100 * 977 // 1_977),
        (2_000, 2, 100),
    ],
)
def test_image_locality(mebibytes, containers, score):
    """Between 23 MiB and 1,000 MiB for each container."""
    assert kube_scores.image_locality(mebibytes * MEBIBYTE, containers) == score
