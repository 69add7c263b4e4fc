"""Where values have changed for good, and what values before count as then."""

import math
from random import Random

import pytest

from kfp_placement_engine.history.changes import LAST, levelled, spread_if_changing

LEAST = 0.08


def noisy(centre, count, random):
    return [centre + random.gauss(0, 0.05) for _ in range(count)]


@pytest.mark.parametrize("before", [3, 6, 17])
@pytest.mark.parametrize("after", [3, 5, 12])
@pytest.mark.parametrize("apart", [-2.3, -0.7, 0.7, 2.3])
def test_values_before_a_change_count_as_if_they_had_been_like_the_last_ones(before, after, apart):
    for seed in range(5):
        random = Random(seed)
        values = [*noisy(1.0, before, random), *noisy(1.0 + apart, after, random)]
        now = levelled(values, LEAST)
        assert now[-LAST:] == pytest.approx(values[-LAST:])
        assert all(abs(each - 1.0 - apart) < 0.6 for each in now)


def test_two_changes_are_two():
    values = [1.0] * 6 + [3.0] * 4 + [2.0] * 5
    assert levelled(values, LEAST) == pytest.approx([2.0] * 15)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_noise_is_hardly_ever_a_change(sigma):
    random, changed = Random(3), 0
    for _ in range(300):
        values = [random.gauss(0, sigma) for _ in range(20)]
        changed += levelled(values, LEAST) is not values
    assert changed <= 9


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0] * 20,
        [1.0, 9.0] * 10,
        [1.0] * 10 + [9.0, 9.0],
        [1.0] * 9 + [9.0] + [1.0] * 9,
        [1.0] * 6 + [9.0] * 4 + [1.0] * 3,
        ([1.0] * 4 + [9.0] * 4 + [5.0] * 4) * 2,
    ],
    ids=["none", "one", "equal", "taking turns", "two", "an outlier", "come back", "in blocks"],
)
def test_other_values_stay_as_they_are(values):
    assert levelled(values, LEAST) is values


def test_values_from_before_the_first_of_those_that_change_places_count_as_if_like_the_last():
    values = [5.0] * 4 + ([1.0] * 4 + [2.0] * 4) * 2
    assert levelled(values, LEAST) == pytest.approx([2.0] * 4 + values[4:])


def test_values_have_changed_only_where_some_of_the_same_size_were_others():
    sizes = ([0.0] * 4 + [2.3] * 4) * 2
    by_size = [0.5 * each for each in sizes]
    assert levelled(by_size, LEAST, sizes) is by_size
    assert levelled([1.0] * 4 + [2.0] * 4, LEAST, [0.0] * 4 + [2.3] * 4) == [1.0] * 4 + [2.0] * 4
    changed = [each + (3.0 if number >= 8 else 0.0) for number, each in enumerate(by_size)]
    assert levelled(changed, LEAST, sizes) == pytest.approx([each + 3.0 for each in by_size])


def test_a_change_may_have_begun_with_two_values_on_one_side():
    before = [0.0, 0.05, -0.05, 0.02, 0.0]
    assert spread_if_changing([*before, 0.7, 0.9], LEAST) == pytest.approx(0.7 / 1.5)
    assert spread_if_changing([*before, -0.7, -0.9], LEAST) == pytest.approx(0.7 / 1.5)
    for last in ([0.7, -0.7], [0.0, 0.7], [0.7, 0.0], [0.1, 0.1]):
        assert spread_if_changing([*before, *last], LEAST) == 0
    assert spread_if_changing([0.7, 0.7], LEAST) == 0
    assert math.isfinite(spread_if_changing([], LEAST))
