"""How long a step may take: quantiles, what is left after a time, and what lies beyond the seen."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.history.calibration import UNKNOWN
from kfp_placement_engine.model.forecast import Distribution, Shape

MISSES = tuple(round(-2 + 0.04 * number, 2) for number in range(101))
"""From -2 to 2, evenly."""

shapes = st.lists(st.floats(-50, 50), min_size=2, max_size=60).map(
    lambda misses: Shape(tuple(sorted(misses)))
)
distributions = st.builds(
    Distribution,
    scale_seconds=st.floats(0.5, 1e6),
    spread=st.floats(0.01, 3),
    shape=shapes,
    ran_seconds=st.just(0.0) | st.floats(1e-3, 1e9),
)


def test_quantiles_are_those_of_the_misses():
    found = Distribution(100.0, 0.5, Shape(MISSES))
    assert found.median_seconds == pytest.approx(100.0)
    # Of 101 misses the 26th is the quantile 26 / 102.
    assert found.quantile(26 / 102) == pytest.approx(100 * math.exp(0.5 * MISSES[25]))


def test_a_wider_spread_widens_the_interval_and_not_the_median():
    narrow, wide = (Distribution(60.0, spread, Shape(MISSES)) for spread in (0.1, 0.4))
    assert narrow.median_seconds == pytest.approx(wide.median_seconds)
    assert narrow.quantile(0.95) < wide.quantile(0.95)
    assert narrow.quantile(0.05) > wide.quantile(0.05)


def test_a_step_that_has_run_for_long_ends_later_than_one_that_has_not():
    found = Distribution(100.0, 0.2, UNKNOWN)
    later = found.after(130.0)
    assert later.quantile(0.01) >= 130.0
    assert later.median_seconds > found.median_seconds
    # What is beyond everything that was seen still has a time left, and not an endless one.
    overdue = found.after(10_000.0)
    assert 10_000.0 < overdue.median_seconds < 20_000.0


def test_what_is_left_is_what_the_whole_says_of_the_rest():
    """P(T <= t | T > r) is (F(t) - F(r)) / (1 - F(r))."""
    found = Distribution(100.0, 0.3, Shape(MISSES))
    ran, probability = found.quantile(0.6), 0.25
    assert found.after(ran).quantile(probability) == pytest.approx(found.quantile(0.6 + 0.4 * 0.25))


@given(distributions, st.lists(st.floats(0.001, 0.999), min_size=2, max_size=8))
def test_quantiles_rise_with_the_probability(found, probabilities):
    seconds = [found.quantile(each) for each in sorted(probabilities)]
    assert seconds == sorted(seconds)
    assert all(math.isfinite(each) and each >= found.ran_seconds for each in seconds)
    assert math.isfinite(found.mean_seconds)


@given(shapes, st.floats(-200, 200))
def test_survival_and_quantile_are_inverse(shape, miss):
    survival = shape.survival(miss)
    assert 0 <= survival <= 1
    if 1e-9 < survival < 1 - 1e-9 and len(set(shape.misses)) == len(shape.misses):
        assert shape.at(survival) == pytest.approx(miss, abs=1e-4)


def test_samples_are_of_the_distribution():
    found = Distribution(100.0, 0.5, Shape(MISSES))
    random = Random(1)
    drawn = [found.sample(random) for _ in range(4000)]
    inside = sum(found.quantile(0.05) <= each <= found.quantile(0.95) for each in drawn)
    assert inside / len(drawn) == pytest.approx(0.9, abs=0.02)
    assert sum(drawn) / len(drawn) == pytest.approx(found.mean_seconds, rel=0.03)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 95, math.nan])
def test_what_is_not_a_probability_is_refused(probability):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        Distribution(1.0, 0.1, UNKNOWN).quantile(probability)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_what_is_not_a_time_is_refused(seconds):
    with pytest.raises(ValueError, match="must be 0 or more"):
        Distribution(1.0, 0.1, UNKNOWN).after(seconds)
