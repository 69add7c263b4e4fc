"""What the steps of one run have in common: learned from runs, and known better as steps end."""

import math
from random import Random
from statistics import fmean, pstdev

import pytest

from kfp_placement_engine.history import History
from kfp_placement_engine.history.common_factor import CommonFactors, score_of
from kfp_placement_engine.model.forecast import CommonFactor
from kfp_placement_engine.model.history import MOST_PIPELINES, Observation, StepIdentity


def scores_of_run(random, share, count):
    factor = random.gauss(0, 1)
    own = math.sqrt(1 - share)
    return [math.sqrt(share) * factor + own * random.gauss(0, 1) for _ in range(count)]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_the_share_is_that_of_the_runs(share):
    """Twenty runs of 40 steps, learned 30 times: unbiased but for the shrinkage by 2 of 22."""
    learned = []
    for seed in range(30):
        random, factors = Random(seed), CommonFactors()
        for _ in range(20):
            factors.observe("churn", scores_of_run(random, share, 40))
        learned.append(factors.of("churn").share)
    assert fmean(learned) == pytest.approx(share * 20 / 22, abs=0.06)


def test_nothing_is_known_of_other_pipelines_or_of_single_steps():
    factors = CommonFactors()
    factors.observe("churn", [2.0])
    assert factors.of("churn") == CommonFactor()
    factors.observe("churn", [2.0, 2.0, 2.0])
    assert factors.of("churn").share > 0
    assert factors.of("sales") == CommonFactor()


def test_steps_that_have_ended_tell_of_the_factor():
    """The posterior of a normal mean: of four steps that were all slow, and of none."""
    factor = CommonFactor(share=0.5)
    assert factor.given([]) == factor
    after = factor.given([1.0, 1.2, 0.8, 1.0])
    # Precision 1 + 4 * .5 / .5 = 5; pull sqrt(.5) * 4 / .5.
    assert after.mean == pytest.approx(math.sqrt(0.5) * 4 / 0.5 / 5)
    assert after.deviation == pytest.approx(1 / math.sqrt(5))
    assert factor.given([1.0, 1.2]).given([0.8, 1.0]).mean == pytest.approx(after.mean)


def test_the_factor_of_a_run_is_found_from_its_steps():
    random, misses = Random(2), []
    for _ in range(400):
        true = random.gauss(0, 1)
        scores = [math.sqrt(0.4) * true + math.sqrt(0.6) * random.gauss(0, 1) for _ in range(15)]
        known = CommonFactor(share=0.4).given(scores)
        misses.append((true - known.mean) / known.deviation)
    assert fmean(misses) == pytest.approx(0, abs=0.15)
    assert pstdev(misses) == pytest.approx(1, abs=0.1)


def test_with_nothing_in_common_nothing_is_learned_of_the_run():
    assert CommonFactor().given([3.0, 3.0]) == CommonFactor()


def test_a_history_learns_it_from_whole_runs():
    """Runs that are slow as a whole, and runs whose steps are slow each for itself."""
    together, apart = (history_of(share) for share in (0.9, 0.0))
    assert together.common_factor("churn").share > 0.5
    assert apart.common_factor("churn").share < 0.1


def history_of(share):
    random, history = Random(6), History()
    for _ in range(25):
        scores = scores_of_run(random, share, 12)
        history.observe(
            [
                Observation(StepIdentity("churn", f"step-{number}"), 60 * math.exp(0.2 * score))
                for number, score in enumerate(scores)
            ]
        )
    return history


def test_scores_are_finite_and_memory_is_bounded():
    assert [score_of(each) for each in (0.0, 0.5, 1.0)] == pytest.approx(
        [-3.719, 0, 3.719], abs=1e-3
    )
    factors = CommonFactors()
    for number in range(MOST_PIPELINES + 5):
        factors.observe(f"run-{number}", [1.0, 1.0])
    assert factors.of("run-0") == CommonFactor()
