"""Whether the size of inputs tells of run times, and how."""

import math
from random import Random
from statistics import fmean, median

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement_engine.history.sizes import SizedValues

pairs_of_values = st.lists(
    st.tuples(st.floats(-0.69, 19.6), st.floats(0, 2**60)), min_size=1, max_size=12
)
"""Logarithms of run times, and sizes."""


def sized(*pairs):
    return values_of([(math.log(seconds), size) for seconds, size in pairs])


def values_of(pairs):
    return SizedValues([each for each, _ in pairs], [size for _, size in pairs])


def seconds(found):
    return math.exp(found.log_seconds)


def test_a_line_is_followed_beyond_what_was_seen():
    """20 s and 3 s for each MB."""
    past = sized(*((20 + 3 * size, size * 1e6) for size in (1, 2, 4, 8)))
    assert seconds(past.next(20e6)) == pytest.approx(80, rel=1e-6)


def test_far_from_what_was_seen_it_is_less_sure():
    past = sized(*((20 + 3 * size, size * 1e6) for size in (1, 2, 4, 8)))
    within, beyond, far = (past.next(size * 1e6) for size in (5, 80, 800))
    assert within is not None
    assert beyond is not None
    assert far is not None
    assert 0 == within.extrapolation < beyond.extrapolation < far.extrapolation


def test_a_size_that_tells_nothing_is_not_used():
    random = Random(3)
    past = sized(*((random.uniform(50, 70), random.uniform(1e6, 9e6)) for _ in range(30)))
    assert past.next(3e6) is None


def test_beyond_the_sizes_that_were_seen_a_line_counts_that_has_not_helped():
    """Sizes were much alike, and times vary more than by these."""
    past = sized((52, 9e6), (60, 10e6), (46, 10.2e6), (60, 11e6), (55, 12e6))
    assert past.next(10.5e6) is None
    smaller, larger = past.next(4e6), past.next(24e6)
    assert seconds(smaller) < 45 < 70 < seconds(larger)
    assert min(smaller.extrapolation, larger.extrapolation) > 0.35


def test_the_better_values_lie_on_a_line_the_surer_it_is_beyond_them():
    near, off = (
        sized((30 * by, 1e6), (40, 2e6), (50 * by, 3e6), (60, 4e6), (70 * by, 5e6))
        for by in (1.01, 1.3)
    )
    assert near.next(0.1e6).extrapolation < off.next(0.1e6).extrapolation


def test_where_sizes_were_equal_anything_up_to_proportion_may_follow():
    found = sized((60, 1e6), (61, 1e6), (62, 1e6)).next(4e6)
    # Two standard deviations up or down are all between no difference and proportion.
    assert found.extrapolation == pytest.approx(math.hypot(math.log(4) / 2, 0.3 * math.log(4)))


def test_equal_sizes_tell_nothing():
    assert sized((60, 1e6), (90, 1.02e6), (40, 1e6)).next(1.01e6) is None


def test_the_values_of_the_nearest_sizes_win_where_no_line_does():
    """Steps of 3, 1700 and 5 s, three times each."""
    kinds = ((3, 20e6), (1700, 51e6), (5, 90e6))
    past = sized(*((seconds, size * near) for near in (1, 1.01, 0.99) for seconds, size in kinds))
    assert seconds(past.next(51.1e6)) == pytest.approx(1700)
    assert seconds(past.next(20.05e6)) == pytest.approx(3)


def test_one_value_is_scaled_but_for_the_start_of_the_container():
    past = sized((11, 1e6))
    found = past.next(4e6)
    assert seconds(found) == pytest.approx(41, rel=1e-3)
    nearer = past.next(2e6)
    assert found is not None
    assert nearer is not None
    assert found.extrapolation > nearer.extrapolation > 0
    assert past.next(1.05e6) is None
    assert sized().next(1e6) is None


@given(pairs_of_values.map(values_of), st.floats(0, 2**60))
@example(values_of([(math.log(0.5), 1e6), (math.log(3e8), 2e6), (math.log(3e8), 3e6)]), 5e6)
@example(sized((10, 10e6), (20, 20e6), (40, 40e6)), 0.0)
def test_whatever_comes_is_a_finite_time(past, size):
    found = past.next(size)
    assert found is None or math.isfinite(found.log_seconds)
    assert found is None or all(math.isfinite(each) for each in found.misses)
    assert found is None or math.exp(found.log_seconds) > 0.49


@given(pairs_of_values.filter(lambda pairs: len(pairs) > 2))
@example([(1.0, 1e6), (2.0, 1e6), (3.0, 1.1e6), (5.0, 1.1e6), (8.0, 9e6)])
def test_each_value_is_compared_with_the_others_alone(pairs):
    """The quick ways to leave one out are the plain one."""
    past = values_of(pairs)
    others = [[*pairs[:number], *pairs[number + 1 :]] for number in range(len(pairs))]
    of_median = [
        median(value for value, _ in rest) - value
        for rest, (value, _) in zip(others, pairs, strict=True)
    ]
    assert sorted(past.misses_of_median()) == pytest.approx(sorted(of_median), abs=1e-9)
    order = sorted(range(len(pairs)), key=lambda number: math.log(pairs[number][1] + 1))
    ordered = [pairs[number] for number in order]
    expected = [0.0] * len(pairs)
    for place, number in enumerate(order):
        expected[number] = mean_of_nearest(ordered, place) - pairs[number][0]
    assert past.misses_of_nearest == pytest.approx(expected, abs=1e-9)


def mean_of_nearest(ordered, number):
    """Of two values before and two after it by size those that are nearest."""
    size = math.log(ordered[number][1] + 1)
    others = [*ordered[max(0, number - 2) : number], *ordered[number + 1 : number + 3]]
    nearest = sorted(others, key=lambda pair: abs(math.log(pair[1] + 1) - size))[:2]
    return fmean(value for value, _ in nearest)


def test_lines_of_the_others_are_those_of_the_formula():
    past = [(30, 1e6), (55, 3e6), (41, 2e6), (90, 7e6), (71, 5e6)]
    misses = []
    for number, (seconds, size) in enumerate(past):
        rest = [*past[:number], *past[number + 1 :]]
        weights = [other**-2 for other, _ in rest]
        mean_size = _weighted([other for _, other in rest], weights)
        mean_time = _weighted([other for other, _ in rest], weights)
        slope = sum(w * (x - mean_size) * (t - mean_time)
                    for w, (t, x) in zip(weights, rest, strict=True))  # fmt: skip
        slope /= sum(w * (x - mean_size) ** 2 for w, (_, x) in zip(weights, rest, strict=True))
        line = mean_time + slope * (size - mean_size)
        misses.append(math.log(line) - math.log(seconds))
    assert sized(*past).misses_of_lines() == pytest.approx(misses, abs=1e-9)


def _weighted(numbers, weights):
    return sum(map(lambda n, w: n * w, numbers, weights)) / fmean(weights) / len(weights)
