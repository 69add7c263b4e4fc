"""How much of what was expected of past runs came true."""

import math

import pytest

from kfp_placement_engine.history.expected import expected_ends


def learned(*runs):
    """From what was expected of runs, what they took, and what their steps say since."""
    return expected_ends(
        *([math.log(each) for each in column] for column in zip(*runs, strict=True))
    )


STEADY = [(90, 100, 100), (110, 100, 100), (80, 101, 100), (120, 99, 100), (100, 100, 100)]
"""Runs that take the same whatever is expected of them."""

FOLLOWED = [(50, 60, 50), (100, 120, 100), (200, 240, 200), (80, 96, 80)]
"""Runs that take a fifth longer than expected."""


def test_what_told_nothing_of_past_runs_counts_little():
    counted = learned(*STEADY).counted
    assert counted(115) / counted(85) < 1.05


def test_what_came_true_counts_in_full():
    counted = learned(*FOLLOWED).counted
    assert counted(180) / counted(60) == pytest.approx(3)


@pytest.mark.parametrize("runs", [STEADY, FOLLOWED])
def test_what_lies_beyond_all_that_was_expected_is_a_change_of_the_run(runs):
    ends = learned(*runs)
    for bound in (ends.least_seconds, ends.most_seconds):
        assert ends.counted(bound) == pytest.approx(ends.counted(bound * 1.0001), rel=1e-3)
    most, least = ends.most_seconds, ends.least_seconds
    assert ends.counted(2 * most) == pytest.approx(2 * ends.counted(most))
    assert ends.counted(least / 3) == pytest.approx(ends.counted(least) / 3)


def test_estimates_that_follow_what_steps_took_are_no_change():
    """Two runs were expected by a hint; then the estimate is what their steps took."""
    ends = learned((10, 44, 40), (10, 45, 41))
    assert ends.counted(40) == pytest.approx(10)
    assert ends.counted(2 * ends.true_seconds) == pytest.approx(20)
    assert ends.counted(5) == pytest.approx(5)
    slower = learned((100, 44, 40), (100, 45, 41))
    assert slower.counted(40.5) == pytest.approx(100)
    assert slower.counted(ends.true_seconds / 2) == pytest.approx(50)


def test_one_run_that_hung_makes_no_change_look_like_one_that_estimates_follow():
    ends = learned(*STEADY, (100, 1000, 1000))
    assert ends.counted(240) == pytest.approx(2 * ends.counted(120))


def test_without_a_run_that_was_played_again_all_beyond_is_a_change():
    ends = expected_ends([math.log(10)], [math.log(40)], [])
    assert ends.counted(20) == pytest.approx(20)
