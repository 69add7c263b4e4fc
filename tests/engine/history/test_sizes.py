"""Whether the size of inputs tells of run times, and how."""

import math
from random import Random
from statistics import fmean, median

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement_engine.history import sizes
from kfp_placement_engine.history.sizes import SizedValue, by_size

values = st.lists(
    st.builds(SizedValue, st.floats(-0.69, 19.6), st.floats(0, 2**60)), min_size=1, max_size=12
)


def sized(*pairs):
    return [SizedValue(math.log(seconds), size) for seconds, size in pairs]


def seconds(found):
    return math.exp(found.log_seconds)


def test_a_line_is_followed_beyond_what_was_seen():
    """20 s and 3 s for each MB."""
    past = sized(*((20 + 3 * size, size * 1e6) for size in (1, 2, 4, 8)))
    assert seconds(by_size(past, 20e6)) == pytest.approx(80, rel=1e-6)


def test_far_from_what_was_seen_it_is_less_sure():
    past = sized(*((20 + 3 * size, size * 1e6) for size in (1, 2, 4, 8)))
    within, beyond, far = (by_size(past, size * 1e6) for size in (5, 80, 800))
    assert within is not None
    assert beyond is not None
    assert far is not None
    assert 0 == within.extrapolation < beyond.extrapolation < far.extrapolation


def test_a_size_that_tells_nothing_is_not_used():
    random = Random(3)
    past = sized(*((random.uniform(50, 70), random.uniform(1e6, 9e6)) for _ in range(30)))
    assert by_size(past, 3e6) is None


def test_equal_sizes_tell_nothing():
    assert by_size(sized((60, 1e6), (90, 1.02e6), (40, 1e6)), 1.01e6) is None


def test_the_values_of_the_nearest_sizes_win_where_no_line_does():
    """Steps of 3, 1700 and 5 s, three times each."""
    kinds = ((3, 20e6), (1700, 51e6), (5, 90e6))
    past = sized(*((seconds, size * near) for near in (1, 1.01, 0.99) for seconds, size in kinds))
    assert seconds(by_size(past, 51.1e6)) == pytest.approx(1700)
    assert seconds(by_size(past, 20.05e6)) == pytest.approx(3)


def test_one_value_is_scaled_but_for_the_start_of_the_container():
    found = by_size(sized((11, 1e6)), 4e6)
    assert seconds(found) == pytest.approx(41, rel=1e-3)
    nearer = by_size(sized((11, 1e6)), 2e6)
    assert found is not None
    assert nearer is not None
    assert found.extrapolation > nearer.extrapolation > 0
    assert by_size(sized((11, 1e6)), 1.05e6) is None
    assert by_size([], 1e6) is None


@given(values, st.floats(0, 2**60))
@example(sized((0.5, 1e6), (3e8, 2e6), (3e8, 3e6)), 5e6)
@example(sized((10, 10e6), (20, 20e6), (40, 40e6)), 0.0)
def test_whatever_comes_is_a_finite_time(past, size):
    found = by_size(past, size)
    assert found is None or math.isfinite(found.log_seconds)
    assert found is None or all(math.isfinite(each) for each in found.misses)
    assert found is None or math.exp(found.log_seconds) > 0.49


@given(values.filter(lambda past: len(past) > 2))
def test_each_value_is_compared_with_the_others_alone(past):
    """The quick ways to leave one out are the plain one."""
    others = [[*past[:number], *past[number + 1 :]] for number in range(len(past))]
    of_median = [median(each.log_seconds for each in rest) for rest in others]
    plain = [found - each.log_seconds for found, each in zip(of_median, past, strict=True)]
    assert sorted(sizes._misses_of_median(past)) == pytest.approx(sorted(plain), abs=1e-9)
    distances = {abs(one.log_size - two.log_size) for one in past for two in past if one is not two}
    if len(distances) == len(past) * (len(past) - 1) // 2:
        nearest = [sizes._nearest(each, rest) - each.log_seconds
                   for each, rest in zip(past, others, strict=True)]  # fmt: skip
        assert sorted(sizes._misses_of_nearest(past)) == pytest.approx(sorted(nearest), abs=1e-9)


def test_lines_of_the_others_are_those_of_numpy():
    past = sized((30, 1e6), (55, 3e6), (41, 2e6), (90, 7e6), (71, 5e6))
    misses = []
    for number, each in enumerate(past):
        rest = [*past[:number], *past[number + 1 :]]
        weights = [math.exp(-2 * other.log_seconds) for other in rest]
        mean_size = _weighted([other.size for other in rest], weights)
        mean_time = _weighted([math.exp(other.log_seconds) for other in rest], weights)
        slope = sum(w * (o.size - mean_size) * (math.exp(o.log_seconds) - mean_time)
                    for w, o in zip(weights, rest, strict=True))  # fmt: skip
        slope /= sum(w * (o.size - mean_size) ** 2 for w, o in zip(weights, rest, strict=True))
        line = mean_time + slope * (each.size - mean_size)
        misses.append(math.log(line) - each.log_seconds)
    assert sizes._misses_of_lines(past) == pytest.approx(misses, abs=1e-9)


def _weighted(numbers, weights):
    return sum(map(lambda n, w: n * w, numbers, weights)) / fmean(weights) / len(weights)
