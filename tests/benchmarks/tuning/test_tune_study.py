"""Pairs of searches, differences with intervals, verdicts."""

import random
from statistics import fmean

import pytest

from benchmarks.budget import Budget
from benchmarks.tuning.constants import Setting
from benchmarks.tuning.report import operator_verdict, value_verdict
from benchmarks.tuning.study import Study, compare, mean_interval
from benchmarks.tuning.trials import Measurement
from kfp_placement_engine import GeneticParams

SHIPPED, OTHER = GeneticParams(), GeneticParams(crossover_rate=0.123)
SETTING = Setting("crossover_rate", 0.123, OTHER, ("kfp-ready", "workflows"))
BETTER, WORSE, NEITHER = [-0.2] * 9 + [-0.1], [0.2] * 9 + [0.1], [-0.6, 0.6] * 5
LITTLE_BETTER = [-0.04] * 10
UNSURE_BETTER, UNSURE_WORSE = [-0.9, 0.7] * 5, [0.9, -0.7] * 5


def a_study(**changed) -> Study:
    given = {
        "shipped": SHIPPED,
        "settings": [SETTING],
        "kinds": ["kfp-ready", "kfp-ordered"],
        "instances": range(1000, 1002),
        "seeds": range(2),
        "budget": Budget(schedules=10),
    }
    return Study(**{**given, **changed})


def test_pairs_have_the_same_instance_seed_and_budget():
    trials = list(a_study().trials())
    assert {each.kind for each in trials} == {"kfp-ready"}
    assert [each.params for each in trials] == [SHIPPED, OTHER] * 4
    for one, other in zip(trials[::2], trials[1::2], strict=True):
        assert (one.instance, one.seed, one.budget) == (other.instance, other.seed, other.budget)


def test_differences_are_percent_of_the_shipped_completion_over_seeds():
    seconds = {(1000, 0): 101.0, (1000, 1): 103.0, (1001, 0): 100.0, (1001, 1): 98.0}
    study = a_study()
    measurements = {
        each: Measurement(
            100.0 if each.params == SHIPPED else seconds[each.instance, each.seed], 10, 0.1
        )
        for each in study.trials()
    }
    (comparison,) = study.compare(measurements)
    assert list(comparison.by_kind) == ["kfp-ready"]
    assert comparison.overall.mean == pytest.approx(fmean((2.0, -1.0)))
    # Two instances, whose seeds are not independent draws: -1, 0.5 or 2.
    assert (comparison.overall.low, comparison.overall.high) == pytest.approx((-1.0, 2.0))


def test_an_interval_is_that_of_the_mean():
    rng = random.Random(0)
    values = [rng.gauss(1.0, 2.0) for _ in range(400)]
    interval = mean_interval([values])
    assert interval.mean == pytest.approx(fmean(values))
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 2.0 / 20, rel=0.1)
    assert mean_interval([values]) == interval
    assert mean_interval([values], seed=1) != interval


def test_kinds_count_alike_in_their_mean():
    interval = mean_interval([[1.0] * 50, [0.0] * 5])
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    ("ready", "workflows", "verdict"),
    [
        (BETTER, BETTER, "better"),
        (BETTER, NEITHER, "not better"),
        (LITTLE_BETTER, LITTLE_BETTER, "not better"),
        ([-1.0] * 10, WORSE, "worse in workflows"),
        (UNSURE_BETTER, UNSURE_BETTER, "not better"),
        ([-1.0] * 10, UNSURE_WORSE, "better"),
    ],
)
def test_verdicts_on_values(ready, workflows, verdict):
    comparison = compare(SETTING, {"kfp-ready": ready, "workflows": workflows})
    assert value_verdict(comparison) == verdict


@pytest.mark.parametrize(
    ("ready", "workflows", "verdict"),
    [
        (WORSE, NEITHER, "stays: gains in KFP ready"),
        (WORSE, LITTLE_BETTER, "stays: gains in KFP ready"),
        (WORSE, BETTER, "goes: loses in workflows"),
        (NEITHER, [0.04] * 10, "goes: gains in none"),
        (UNSURE_WORSE, UNSURE_WORSE, "goes: gains in none"),
        (WORSE, UNSURE_BETTER, "stays: gains in KFP ready"),
    ],
)
def test_verdicts_on_operators(ready, workflows, verdict):
    """Differences are those of the search without the operator: above 0 it gains."""
    comparison = compare(SETTING, {"kfp-ready": ready, "workflows": workflows})
    assert operator_verdict(comparison) == verdict
