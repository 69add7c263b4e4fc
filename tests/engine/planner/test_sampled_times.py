"""Runs played many times with drawn run times: each sample is the run that it says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.history.calibration import UNKNOWN
from kfp_placement_engine.lowering import LoweringOptions, lower_runs
from kfp_placement_engine.model.forecast import CommonFactor, Distribution
from kfp_placement_engine.planning.sampled_times import NOTHING_COMMON, drawn_times
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import simulate, simulate_durations
from tests.engine.planner.begun_runs import begun_cases
from tests.engine.planner.random_runs import cases
from tests.support.builders import a_cluster, a_node, a_problem, a_run, a_step, lowered

DISPATCHES = st.sampled_from(["ready", "ordered"])


def check_samples(problem, seed):
    """Against a simulation of its own for each sample."""
    placement = list_schedule(problem).placement
    random = np.random.default_rng(seed)
    durations = problem.arrays.duration_seconds * random.integers(0, 5, (4, problem.activities))
    starts, ends = simulate_durations(problem, placement, durations)
    for number, seconds in enumerate(durations):
        drawn = replace(problem, arrays=problem.arrays._replace(duration_seconds=seconds.copy()))
        alone = simulate(drawn, placement)
        assert np.array_equal(starts[number], alone.start)
        assert np.array_equal(ends[number], alone.end)


@given(cases(), DISPATCHES, st.integers(0, 99))
def test_a_sample_is_the_run_with_these_times(case, dispatch, seed):
    check_samples(lowered(case.run, case.cluster, dispatch=dispatch).problem, seed)


@given(begun_cases(), DISPATCHES, st.integers(0, 99))
def test_so_it_is_for_a_run_that_has_begun(drawn, dispatch, seed):
    case, run = drawn
    check_samples(lower_runs([run], case.cluster, LoweringOptions(dispatch=dispatch)).problem, seed)


@pytest.fixture
def chain():
    """20 s, then 40 s, on a node of double speed."""
    run = a_run(a_step("a", seconds=20), a_step("b", "a", seconds=40))
    return a_problem(run, a_cluster(a_node(speed=2.0)))


def distributions(problem, spread=0.2):
    seconds = problem.arrays.duration_seconds
    return {number: Distribution(float(each), spread, UNKNOWN)
            for number, each in enumerate(seconds)}  # fmt: skip


def drawn_durations(problem, known, samples, common=NOTHING_COMMON, seed=1):
    """[S, A] seconds; what has no distribution takes what the problem says."""
    durations = np.repeat(problem.arrays.duration_seconds[None], samples, axis=0)
    for number, seconds in drawn_times(known, samples, np.random.default_rng(seed), common):
        durations[:, number] = seconds
    return durations


def test_drawn_times_are_those_of_the_distributions(chain):
    known = distributions(chain)
    drawn = drawn_durations(chain, known, 4000)
    for number, distribution in known.items():
        for probability in (0.05, 0.5, 0.95):
            within = (drawn[:, number] <= distribution.quantile(probability)).mean()
            assert within == pytest.approx(probability, abs=0.02)
    assert abs(np.corrcoef(np.log(drawn.T))[0, 1]) < 0.05


def test_steps_that_are_slow_together_widen_the_end_and_nothing_else(chain):
    known = distributions(chain)
    alone, together = (
        drawn_durations(chain, known, 4000, CommonFactor(share)) for share in (0.0, 0.81)
    )
    assert np.corrcoef(np.log(together.T))[0, 1] == pytest.approx(0.81, abs=0.04)
    assert np.median(together[:, 0]) == pytest.approx(np.median(alone[:, 0]), rel=0.02)
    placement = list_schedule(chain).placement
    widths = []
    for drawn in (alone, together):
        _, ends = simulate_durations(chain, placement, drawn)
        low, middle, high = np.quantile(ends.max(axis=1), (0.05, 0.5, 0.95))
        assert middle == pytest.approx(30, rel=0.03)
        widths.append(high - low)
    assert widths[1] > 1.15 * widths[0]


def test_a_step_that_has_run_takes_at_least_that_long(chain):
    known = {0: Distribution(20.0, 0.2, UNKNOWN).after(30.0)}
    drawn = drawn_durations(chain, known, 500)
    assert drawn[:, 0].min() >= 30
    assert np.quantile(drawn[:, 0], 0.5) == pytest.approx(known[0].median_seconds, rel=0.03)
    assert (drawn[:, 1] == 40).all()


def test_an_overdue_step_has_the_rest_of_its_distribution(chain):
    """Far beyond what was forecast: the probability of running for so long was 3 in 10,000."""
    known = Distribution(20.0, 0.2, UNKNOWN).after(60.0)
    assert known.survival < 1e-3
    drawn = drawn_durations(chain, {0: known}, 4000)[:, 0]
    for probability in (0.05, 0.5, 0.95):
        assert np.quantile(drawn, probability) == pytest.approx(
            known.quantile(probability), rel=0.05
        )


def test_the_same_seed_draws_the_same(chain):
    one, two = (
        drawn_durations(chain, distributions(chain), 9, CommonFactor(0.5), seed=3) for _ in range(2)
    )
    assert np.array_equal(one, two)


def test_a_run_that_is_known_to_be_slow_is_drawn_slower(chain):
    known = distributions(chain)
    slow = CommonFactor(share=0.8).given([1.5] * 6)
    usual, slower = (
        np.median(drawn_durations(chain, known, 999, common))
        for common in (CommonFactor(0.8), slow)
    )
    assert slower > 1.1 * usual


@pytest.mark.parametrize("ran_seconds", [15.0, 22.0, 30.0])
def test_a_slow_run_counts_once_for_a_step_that_still_runs(chain, ran_seconds):
    """As of all runs that are as slow as this, those in which the step has run for so long."""
    slow, step = CommonFactor(share=0.7).given([1.2] * 20), Distribution(20.0, 0.2, UNKNOWN)
    of_all = drawn_durations(chain, {0: step}, 200_000, slow)[:, 0]
    of_those = of_all[of_all > ran_seconds]
    left = drawn_durations(chain, {0: step.after(ran_seconds)}, 4000, slow)[:, 0]
    assert left.min() >= ran_seconds
    for probability in (0.1, 0.5, 0.9):
        expected = np.quantile(of_those, probability) - ran_seconds
        found = np.quantile(left, probability) - ran_seconds
        assert found == pytest.approx(expected, rel=0.1)


def test_a_step_that_is_far_overdue_has_time_left_in_a_slow_run_too(chain):
    slow, step = CommonFactor(share=0.9).given([3.0] * 20), Distribution(20.0, 0.2, UNKNOWN)
    for ran_seconds in (60.0, 200.0, 20_000.0):
        left = drawn_durations(chain, {0: step.after(ran_seconds)}, 500, slow)[:, 0]
        assert np.median(left) > 1.005 * ran_seconds


def test_no_sample_cannot_be_drawn(chain):
    with pytest.raises(PlanningError, match="0 samples; there must be 1 or more"):
        drawn_durations(chain, {}, 0)


@pytest.mark.parametrize(
    "durations", [np.zeros((3, 1)), np.zeros(2), np.full((1, 2), -1.0), np.full((1, 2), np.nan)]
)
def test_what_are_not_run_times_of_the_problem_is_not_played(chain, durations):
    placement = list_schedule(chain).placement
    with pytest.raises(PlanningError, match="run times belong to another problem"):
        simulate_durations(chain, placement, durations)
