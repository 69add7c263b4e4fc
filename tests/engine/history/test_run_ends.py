"""When whole runs end: the factor beyond their plans, its interval, and what cannot be true."""

import math
from random import Random

import pytest

from kfp_placement_engine.history import RunEnds
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import MOST_PIPELINES


def seen(*runs, pipeline="churn"):
    ends = RunEnds()
    for run in runs:
        ends.observe(pipeline, *run)
    return ends


def forecast_of(ends, pipeline="churn"):
    forecast = ends.predict(pipeline)
    assert forecast is not None
    return forecast


def test_a_run_takes_longer_than_planned_as_those_before():
    """Whatever their plans."""
    forecast = forecast_of(seen((100, 130), (400, 524), (10, 12.9)))
    assert forecast.distribution.median_seconds == pytest.approx(1.3)
    assert (forecast.basis.level, forecast.basis.runs) == (Level.PIPELINE, 3)


def test_a_new_pipeline_is_judged_by_the_others_and_less_surely():
    ends = seen((100, 150), (100, 150))
    new = forecast_of(ends, "sales")
    known = forecast_of(ends, "churn")
    assert new.basis.level is Level.NAMESPACE
    assert 1 < new.distribution.median_seconds < known.distribution.median_seconds
    assert new.distribution.quantile(0.95) > known.distribution.quantile(0.95)


def test_runs_that_become_slower_bit_by_bit_count_once():
    """Each is missed to the same side, and the factor follows them already."""
    runs = [(100, 130 * 1.01**number) for number in range(60)]
    slower = forecast_of(seen(*runs)).distribution
    assert slower.median_seconds == pytest.approx(1.3 * 1.01**49.5, rel=0.002)
    assert slower.quantile(0.5) == pytest.approx(slower.median_seconds)


def test_before_a_run_has_ended_runs_take_what_their_steps_do_give_or_take_a_third():
    found = RunEnds().predict("churn")
    assert found.basis.runs == 0
    assert found.distribution.median_seconds == 1
    assert found.distribution.quantile(0.95) == pytest.approx(1.4, abs=0.05)
    assert found.distribution.quantile(0.05) == pytest.approx(1 / 1.4, abs=0.05)


def test_a_trial_run_does_not_make_later_ones_late():
    """Twice they were expected by a run on little data; then the estimates of steps follow."""
    ends = seen((10, 100, 98), (30, 100, 98))
    told = ends.expected_ends("churn").counted(98) * forecast_of(ends).distribution.median_seconds
    assert told == pytest.approx(100, rel=0.05)


def test_a_single_run_whose_steps_took_far_longer_makes_the_next_less_sure():
    """The estimate may still be that of a wrong hint."""
    found = forecast_of(seen((100, 300, 290))).distribution
    assert found.median_seconds < 1.1
    assert found.quantile(0.95) > 3
    assert forecast_of(seen((100, 110, 105))).distribution.quantile(0.95) < 1.3


def test_one_other_pipeline_says_little_of_a_new_one_and_many_say_more():
    ends = seen(*[(100, 300)] * 30)
    found = forecast_of(ends, "sales").distribution
    assert 1.1 < found.median_seconds < 1.6
    assert found.quantile(0.05) < 1 < 3 > found.quantile(0.95) > 2
    for number in range(20):
        ends.observe(f"other-{number}", 100, 300)
    assert forecast_of(ends, "sales").distribution.median_seconds > 2.5


def test_what_the_steps_of_one_run_alone_took_longer_may_be_chance():
    found = forecast_of(seen((100, 150, 140)))
    assert found.distribution.median_seconds == pytest.approx(150 / 140)
    assert found.basis.runs == 1
    assert forecast_of(seen((100, 150))).distribution.median_seconds == pytest.approx(1.5)
    two = forecast_of(seen((100, 150, 140), (140, 150, 140)))
    assert two.distribution.median_seconds > 1.2


def test_intervals_of_90_percent_hold_nine_times_of_ten():
    random, ends, held = Random(4), RunEnds(), []
    for number in range(300):
        planned = random.uniform(100, 1000)
        seconds = planned * 1.4 * math.exp(random.gauss(0, 0.08))
        if number >= 10:
            found = forecast_of(ends).distribution
            held.append(found.quantile(0.05) <= seconds / planned <= found.quantile(0.95))
        ends.observe("churn", planned, seconds)
    assert 0.86 <= sum(held) / len(held) <= 0.94


@pytest.mark.parametrize(
    ("planned", "seconds"),
    [
        (0.0, 5.0),
        (5.0, 0.0),
        (-1.0, 5.0),
        (math.nan, 5.0),
        (5.0, math.inf),
        (1e300, 5.0),
        (100.0, 5e-324),
        (5e-324, 100.0),
    ],
)
def test_what_cannot_be_true_teaches_nothing(planned, seconds):
    assert seen((planned, seconds)).predict("churn").basis.runs == 0


def test_pipelines_are_bounded_whatever_they_are_called():
    ends = RunEnds()
    for number in range(MOST_PIPELINES + 10):
        ends.observe(f"run-{number}", 100, 120)
    assert forecast_of(ends, "run-0").basis.level is Level.NAMESPACE
    assert forecast_of(ends, f"run-{MOST_PIPELINES}").basis.level is Level.PIPELINE


def test_one_run_that_hung_does_not_widen_all_that_follow():
    runs = [(100, 130 + number % 3) for number in range(25)]
    before = forecast_of(seen(*runs)).distribution
    after = forecast_of(seen(*runs, (100, 1040), *runs[:10])).distribution
    assert after.median_seconds == pytest.approx(before.median_seconds, rel=0.02)
    assert after.quantile(0.95) < 4


def test_what_steps_took_longer_after_a_change_is_not_counted_in_the_factor():
    """The estimates of steps follow; counted twice, runs would be expected far too late."""
    ends = seen(*[(100, 110, 100)] * 6, *[(100, 220, 200)] * 3)
    found = forecast_of(ends).distribution
    assert found.median_seconds == pytest.approx(1.1, rel=0.02)
    assert found.quantile(0.95) < 2


def test_fewer_than_three_slow_runs_may_be_chance():
    """They make the next one neither earlier nor likely to be as slow, but they may be repeated."""
    ends = seen(*[(100, 110 + number % 3, 100) for number in range(8)])
    before = forecast_of(ends).distribution
    for _ in range(2):
        ends.observe("churn", 100, 330, 300)
    after = forecast_of(ends).distribution
    assert after.median_seconds == pytest.approx(before.median_seconds, rel=0.05)
    assert after.quantile(0.95) > before.quantile(0.95)


def test_a_run_that_cannot_be_played_again_says_nothing_of_its_steps():
    ends = seen(*[(100, 150, 140), (100, 150)] * 6)
    assert ends.beside_steps("churn") < 0.03
    assert forecast_of(ends).distribution.median_seconds == pytest.approx(1.5)


def test_what_runs_take_beside_their_steps_is_known_apart():
    """Of one their steps vary, of the other what comes beside them."""
    ends, rng = RunEnds(), Random(0)
    for _ in range(20):
        factor = rng.lognormvariate(0, 0.2)
        ends.observe("steps", 100, 110 * factor, 100 * factor)
        ends.observe("beside", 100, 110 * factor, 100)
    assert ends.beside_steps("steps") < 0.03
    assert ends.beside_steps("beside") == pytest.approx(0.2, rel=0.3)
    assert RunEnds().beside_steps("unknown") == pytest.approx(0.2)
    # Of a pipeline that is new, no more is known than how far others lie apart.
    assert ends.beside_steps("unknown") > 0.2


def test_what_runs_took_longer_and_their_steps_did_not_is():
    ends = seen(*[(100, 110)] * 3, *[(100, 220)] * 15)
    assert forecast_of(ends).distribution.median_seconds == pytest.approx(2.2)
