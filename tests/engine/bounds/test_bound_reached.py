"""A search stops at the bound; where it is not reached, people are told what waiting would gain."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kfp_placement_engine import (
    ActiveRun,
    PlanOptions,
    ReservedRoom,
    ReservedRun,
    plan_run,
    plan_runs,
)
from kfp_placement_engine.planning import plan_bounds
from kfp_placement_engine.plans.comparison import Bound
from kfp_placement_engine.search.stop import BoundReached, SearchProgress
from tests.support.builders import (
    ROUND_NUMBERS,
    SEARCH,
    a_cluster,
    a_node,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    plan_of,
)

MANY = 400
AT_THE_BOUND = 25
"""Generations after which small runs have stopped there, plans to start from included."""


TWO_NODES = cluster_of(2)
NEAR_AND_FAR = {"HOME": {"near": 5.0, "far": 50.0}}
EASY = a_run(*(a_step(f"s{number}", seconds=number) for number in range(1, 7)))
"""Room for all of it at once: its longest step is the bound."""

HARD = a_run(*equal_steps(3, cpu=3, seconds=9.87654321))
"""Three steps of 3 CPU on two nodes of 4: the bounds, of which none is rounded, are too low."""


OPTIONS = PlanOptions(
    generations=MANY, compare=(), assumptions=ROUND_NUMBERS, params=SEARCH, threads=1
)


def searched(run, cluster=TWO_NODES, **options):
    """A plan by the search, however small the run is."""
    return plan_run(run, cluster, replace(OPTIONS, **options))


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ([0, 0, 60, 9, 9], True),
        ([0, 0, 60 * (1 + 1e-10), 9, 9], True),
        ([0, 0, 60.001, 0, 0], False),
        ([1, 0, 60, 0, 0], False),
        ([0, 0.5, 60, 0, 0], False),
        (None, False),
    ],
)
def test_at_the_bound_all_is_placed_and_no_rule_missed(terms, reached):
    objective_terms = None if terms is None else np.array(terms, np.float64)
    assert BoundReached(60.0, 4)(SearchProgress(7, 4, objective_terms)) == reached
    assert not BoundReached(60.0, 4)(SearchProgress(7, 3, objective_terms))


def test_the_search_stops_at_the_bound(dispatch):
    """Once nothing else has improved for a while; the plan says how many generations there were."""
    plan = searched(EASY, dispatch=dispatch)
    assert plan.figures.makespan_seconds == pytest.approx(plan.comparison.lower_bound.seconds)
    assert 0 < plan.search.generations <= AT_THE_BOUND
    repeated = searched(EASY, dispatch=dispatch, generations=plan.search.generations)
    assert repeated.steps == plan.steps
    timed = searched(EASY, dispatch=dispatch, generations=None, budget_seconds=60.0)
    assert (timed.steps, timed.search.generations) == (plan.steps, plan.search.generations)
    assert timed.search.planning_seconds < 30


def test_a_search_that_does_not_reach_it_goes_on():
    plan = searched(HARD)
    assert plan.figures.makespan_seconds > plan.comparison.lower_bound.seconds
    assert plan.search.generations == MANY


def test_a_missed_latency_rule_is_worked_on():
    """The bound knows no rules: a plan at the bound may miss one that a later plan keeps."""
    run = a_run(*(a_step(f"p{n}", type="Predict", location="HOME", seconds=5) for n in range(2)))
    near, far = a_node("near", cpu=1), a_node("far", cpu=4)
    cluster = a_cluster(near, far, latencies=NEAR_AND_FAR)
    plan = searched(run, cluster, generations=20)
    assert plan.figures.latency_excess_ms > 0
    assert plan.figures.makespan_seconds == pytest.approx(plan.comparison.lower_bound.seconds)
    assert plan.search.generations == 20


@pytest.mark.parametrize("objective", ["packing", "paper"])
def test_other_objectives_do_not_end_with_the_makespan(objective):
    plan = searched(EASY, objective=objective, generations=20)
    assert plan.search.generations == 20


def test_a_repetition_does_not_depend_on_a_solver_that_may_be_missing(monkeypatch):
    """Of the linear program's bound a search of a number of generations takes no notice."""

    def found_by(kind):
        return lambda *_: Bound(6.0, kind)

    monkeypatch.setattr(plan_bounds, "lower_bound", found_by("pattern-lp"))
    assert searched(EASY, generations=30).search.generations == 30
    timed = searched(EASY, generations=None, budget_seconds=60.0)
    assert timed.search.generations <= AT_THE_BOUND
    monkeypatch.setattr(plan_bounds, "lower_bound", found_by("area"))
    assert searched(EASY, generations=30).search.generations <= AT_THE_BOUND


def test_several_runs_stop_where_each_is_at_its_own_bound():
    """Reserved runs too: they may end later than reserved, not earlier."""
    cluster = cluster_of(4)
    runs = (ActiveRun("one", EASY, weight=2.0), ActiveRun("two", EASY))
    options = replace(OPTIONS, generations=40, threads=0)
    room = ReservedRun("kept", (ReservedRoom("n1", 0.0, 90.0, {"cpu": 1000}),), weight=3.0)
    together = plan_runs(runs, cluster, options, reserved=(room,))
    assert together.generations <= AT_THE_BOUND
    assert together.completion_seconds == pytest.approx(2 * 6 + 6 + 3 * 90)
    crowded = plan_runs((ActiveRun("one", HARD), ActiveRun("two", HARD)), cluster, options)
    assert crowded.generations == 40


def a_run_that_gains_by_waiting():
    """Of two long steps on a quick node and a slow one the second should wait for the quick one."""
    quick, slow = a_node("quick", cpu=1, speed=8.0), a_node("slow", cpu=1, speed=1.0)
    run = a_run(a_step("one", seconds=64), a_step("two", seconds=64))
    return run, a_cluster(quick, slow)


def test_what_waiting_would_gain_is_told():
    """Under `ready` the second step goes to the slow node; `ordered` is 16 s for both."""
    run, cluster = a_run_that_gains_by_waiting()
    options = PlanOptions(limits=True, compare=(), assumptions=ROUND_NUMBERS)
    plan = plan_run(run, cluster, options)
    assert plan.search.exact
    assert plan.figures.makespan_seconds == 64
    assert plan.comparison.ordered_makespan_seconds == 16
    repeated = plan_of(run, cluster, generations=0, limits=True, assumptions=ROUND_NUMBERS)
    assert repeated.comparison.ordered_makespan_seconds == 16


def test_what_waiting_would_gain_is_asked_for_only_where_it_says_something():
    """By people, of plans under `ready` that could end earlier as far as the bound tells."""
    run, cluster = a_run_that_gains_by_waiting()

    def answer(run=run, cluster=cluster, **changes):
        given: dict[str, Any] = {"limits": True, "compare": (), "generations": 9}
        options = PlanOptions(**given | changes)
        return plan_run(run, cluster, options).comparison.ordered_makespan_seconds

    assert answer() == answer(params=SEARCH) == 16
    assert answer(limits=False) is None
    assert answer(quick=True) is None
    assert answer(dispatch="ordered") is None
    assert answer(objective="packing") is None
    assert answer(a_run(a_step("alone"))) is None
    assert answer(a_run(a_step("one"), a_step("huge", cpu=99))) is None


def test_the_search_stops_where_a_latency_rule_allows_nothing_earlier():
    """The bound that is shown knows no rules; what waiting would gain is not asked for either."""
    run = a_run(a_step("fit"), a_step("serve", "fit", type="Predict", location="HOME", seconds=8))
    near, far = a_node("near", speed=0.5), a_node("far", speed=2.0)
    cluster = a_cluster(near, far, latencies=NEAR_AND_FAR)
    plan = searched(run, cluster)
    assert plan.figures.makespan_seconds == 5 + 16
    assert plan.comparison.lower_bound.seconds == pytest.approx(5 + 4)
    assert plan.search.generations <= AT_THE_BOUND
    exact = searched(run, cluster, params=None, limits=True)
    assert exact.search.exact
    assert exact.comparison.ordered_makespan_seconds is None
