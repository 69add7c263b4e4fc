"""Which of a search's best plans is handed out: by samples, and never worse before the end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.history.calibration import UNKNOWN
from kfp_placement_engine.lowering import LoweringOptions, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.forecast import Basis, Distribution, Forecast, Level
from kfp_placement_engine.model.promise import RunForecast
from kfp_placement_engine.planning import choice
from kfp_placement_engine.planning.choice import chosen_by_samples, others_wanted
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run, plan_runs
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.genetic import seeds_of
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate, Result
from kfp_placement_engine.search.simulation import simulate
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations
from tests.engine.planner.random_runs import cases
from tests.support.builders import a_cluster, a_node, a_run, a_step, lowered

SEARCH = GeneticParams(exact_below=0)
DISPATCHES = ["ready", "ordered"]
OPTIONS = PlanOptions(generations=20, params=SEARCH)


def forecast_of(run, spreads):
    """Around the run times that the steps have now; by name how unsure each is."""
    return RunForecast(
        {
            step.name: Forecast(
                Distribution(step.duration_seconds, spreads[step.name], UNKNOWN),
                Basis(Level.STEP, 9),
            )
            for step in run.steps
            if step.name in spreads
        }
    )


def a_forked_run():
    """Steps of different lengths, of which every third one is unsure, before one that joins."""
    first = [a_step(f"s{number}", seconds=20 + 7 * number) for number in range(12)]
    return a_run(*first, a_step("join", *(step.name for step in first), seconds=10))


def spreads_of(run):
    return {step.name: (0.05, 0.2, 0.7)[at % 3] for at, step in enumerate(run.steps)}


@pytest.fixture
def cluster():
    """Two nodes of different speeds with room for two steps each."""
    return a_cluster(a_node("n1", cpu=2), a_node("n2", cpu=2, speed=1.5))


@pytest.fixture
def unsure(cluster):
    """A run of which one step is quick on average and now and then very slow; lowered."""
    run = a_run(
        a_step("sure", seconds=100), a_step("unsure", seconds=90), a_step("last", "sure", seconds=1)
    )
    forecast = forecast_of(run, {"sure": 0.01, "unsure": 1.5})
    runs = (ActiveRun("", run, forecast=forecast),)
    return lower_runs(runs, cluster, LoweringOptions(dispatch="ready"))


def candidate(lowered, *nodes):
    """The plan with the steps on these nodes."""
    placement = solve(lowered.problem, MaxGenerations(0), params=SEARCH).placement
    genes = placement.gene_nodes.copy()
    genes[:] = nodes
    moved = replace(placement, gene_nodes=genes)
    return Candidate(moved, simulate(lowered.problem, moved))


def result_of(best, *others):
    return Result(best.placement, best.schedule, 5, 3, 0.1, others=others)


def test_an_unsure_step_goes_to_the_faster_node_although_medians_say_otherwise(unsure):
    sure_is_quick, unsure_is_quick = candidate(unsure, 1, 0, 1), candidate(unsure, 0, 1, 0)
    assert better(sure_is_quick.schedule.terms, unsure_is_quick.schedule.terms)
    chosen = chosen_by_samples(unsure, result_of(sure_is_quick, unsure_is_quick))
    assert chosen.placement is unsure_is_quick.placement
    assert chosen.schedule is unsure_is_quick.schedule
    assert (chosen.generations, chosen.seed) == (5, 3)


def test_the_best_by_samples_stays_and_wins_ties(unsure):
    sure_is_quick, unsure_is_quick = candidate(unsure, 1, 0, 1), candidate(unsure, 0, 1, 0)
    for others in ([sure_is_quick], [unsure_is_quick], []):
        result = result_of(unsure_is_quick, *others)
        assert chosen_by_samples(unsure, result) is result


def test_a_defect_in_choosing_costs_no_search(unsure, monkeypatch, caplog):
    def broken(*_arguments):
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(choice, "remaining_durations", broken)
    sure_is_quick, unsure_is_quick = candidate(unsure, 1, 0, 1), candidate(unsure, 0, 1, 0)
    result = result_of(sure_is_quick, unsure_is_quick)
    assert chosen_by_samples(unsure, result) is result
    assert caplog.messages == ["the plan that is best on typical run times is taken: made up"]


def test_a_plan_that_leaves_steps_without_a_node_is_not_chosen_among(unsure, cluster):
    run = a_run(a_step("a", seconds=5), a_step("huge", cpu=99, seconds=5))
    runs = (ActiveRun("", run, forecast=forecast_of(run, {"a": 0.3})),)
    low = lower_runs(runs, cluster, LoweringOptions(dispatch="ready"))
    result = solve(low.problem, MaxGenerations(3), params=SEARCH)
    same = Candidate(result.placement, result.schedule)
    with_other = replace(result, others=(same,))
    assert chosen_by_samples(low, with_other) is with_other


@settings(max_examples=60, deadline=None)
@given(case=cases(), dispatch=st.sampled_from(DISPATCHES), seed=st.integers(0, 9))
def test_other_plans_differ_and_are_no_worse_than_any_that_the_search_started_from(
    case, dispatch, seed
):
    """And to ask for them changes nothing about the best."""
    problem = lowered(case.run, case.cluster, dispatch=dispatch).problem
    stop = MaxGenerations(25)
    result = solve(problem, stop, seed, SEARCH, others=7)
    alone = solve(problem, stop, seed, SEARCH)
    assert result.placement.gene_nodes.tolist() == alone.placement.gene_nodes.tolist()
    assert result.schedule.terms.tolist() == alone.schedule.terms.tolist()
    assert not alone.others
    assert len(result.others) <= 7
    schedules = [result.schedule, *(each.schedule for each in result.others)]
    starts = {(each.node.tobytes(), each.start.tobytes()) for each in schedules}
    assert len(starts) == len(schedules)
    for schedule in schedules:
        assert not better(result.schedule.terms[:2], schedule.terms[:2])
        for candidates in seeds_of(problem, seed):
            assert not any(better(each.schedule.terms, schedule.terms) for each in candidates)


@pytest.mark.parametrize("objective", ["packing", "paper"])
def test_other_plans_are_as_good_in_what_counts_before_the_end(objective, cluster):
    problem = lowered(a_forked_run(), cluster, objective=objective).problem
    result = solve(problem, MaxGenerations(20), 1, SEARCH, others=7)
    for each in result.others:
        assert not better(result.schedule.terms[:3], each.schedule.terms[:3])


@pytest.mark.parametrize("dispatch", DISPATCHES)
def test_same_seed_and_history_same_plan_and_promise(dispatch, cluster):
    run = a_forked_run()
    options = replace(OPTIONS, dispatch=dispatch)
    forecast = forecast_of(run, spreads_of(run))
    one, other = (plan_run(run, cluster, options, forecast=forecast) for _ in range(2))
    assert replace(one, planning_seconds=0) == replace(other, planning_seconds=0)
    assert one.promise is not None
    assert one.promise.ends is not None


@pytest.mark.parametrize("dispatch", DISPATCHES)
def test_the_chosen_plan_is_never_worse_than_a_baseline(dispatch, cluster):
    run = a_forked_run()
    for seed in range(5):
        options = replace(OPTIONS, dispatch=dispatch, seed=seed)
        plan = plan_run(run, cluster, options, forecast=forecast_of(run, spreads_of(run)))
        ends = [each.makespan_seconds for each in plan.baselines.values()]
        assert plan.figures.makespan_seconds <= min(ends) + 1e-6


def test_runs_that_are_planned_together_are_chosen_by_what_is_weighed(cluster):
    """A run without a past is played with its planned times beside one with a past."""
    run = a_forked_run()
    runs = (
        ActiveRun("known", run, forecast=forecast_of(run, spreads_of(run))),
        ActiveRun("unknown", run),
    )
    for objective in ("completion", "makespan"):
        options = replace(OPTIONS, objective=objective)
        one, other = (plan_runs(runs, cluster, options) for _ in range(2))
        assert one.terms == other.terms
        assert one.plans["unknown"].promise is None


def test_nothing_is_asked_for_without_a_past_nor_of_a_huge_run(cluster):
    run = a_run(*(a_step(f"s{number}", seconds=5) for number in range(20)))
    forecast = forecast_of(run, {"s1": 0.3})
    options = LoweringOptions(dispatch="ready")

    def wanted(forecast):
        return others_wanted(lower_runs((ActiveRun("", run, forecast=forecast),), cluster, options))

    assert (wanted(None), wanted(RunForecast()), wanted(forecast)) == (0, 0, 7)
    run = a_run(*(a_step(f"s{number}", seconds=5) for number in range(90_000)))
    assert wanted(forecast) == 0
