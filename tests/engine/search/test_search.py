"""The search: the same plan from the same seed, never worse with more, something from nothing."""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from itertools import chain, count, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import (
    BASELINES,
    AnyOf,
    GeneticParams,
    MaxGenerations,
    MaxRuntime,
    MaxSchedules,
    Placement,
    simulate,
    solve,
)
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.genetic import seeds_of, starting_schedules
from kfp_placement_engine.search.island import Island
from kfp_placement_engine.search.refine import refine
from kfp_placement_engine.search.result import Candidate
from kfp_placement_engine.search.stop import SearchProgress
from tests.engine.planning.random_runs import DISPATCHES, cases
from tests.support.builders import (
    PAPER,
    SEARCH,
    a_chain,
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
    equal_steps,
    searched,
)


def a_wide_problem(dispatch: str = "ordered", steps: int = 30, kfp: bool = False):
    """Steps of mixed size over four unequal nodes: plenty to search."""
    rng = np.random.default_rng(5)
    made = []
    for number in range(steps):
        before = [f"s{other}" for other in range(number) if rng.random() < 0.12]
        made.append(
            a_step(
                f"s{number}",
                *before,
                cpu=int(rng.integers(1, 4)),
                seconds=float(rng.integers(1, 60)),
                reads=[(name, int(rng.integers(0, 2000))) for name in before],
            )
        )
    members = [
        a_node(f"n{number}", cpu=4 + number, speed=speed)
        for number, speed in enumerate([0.5, 1.0, 1.0, 2.0])
    ]
    run = a_kfp_run(*made) if kfp else a_workflow(*made)
    return a_problem(run, a_cluster(*members), dispatch=dispatch)


def outcome_of(result) -> list:
    """All that a result says, but for the time it took."""
    placement, schedule = result.placement, result.schedule
    arrays = (
        placement.gene_nodes,
        placement.priority,
        placement.not_before,
        schedule.start,
        schedule.end,
        schedule.node,
        schedule.terms,
    )
    return [array.tolist() for array in arrays] + [result.generations, result.seed]


def test_the_same_seed_and_generations_give_the_same_plan_on_any_number_of_threads(dispatch):
    """One thread, as many as islands, more than islands."""
    problem = a_wide_problem(dispatch=dispatch)
    params = replace(SEARCH, islands=3)
    first = outcome_of(searched(problem, 20, 7, params, threads=1))
    for threads in (1, 2, 4):
        again = a_wide_problem(dispatch=dispatch)
        assert outcome_of(searched(again, 20, 7, params, threads=threads)) == first
    others = [searched(problem, 13, seed, params, threads=2) for seed in range(8, 14)]
    assert len({str(outcome_of(other)[:-1]) for other in others}) > 1


@pytest.fixture
def starts(monkeypatch):
    """How often an island was filled with the plans to start from, as a list that grows."""
    counted: list[int] = []
    start = Island.start

    def noted(island, candidates):
        counted.append(len(candidates))
        start(island, candidates)

    monkeypatch.setattr(Island, "start", noted)
    return counted


@pytest.mark.parametrize("restart_after", [1, 5])
@pytest.mark.parametrize("islands", [1, 3])
def test_a_search_that_starts_again_loses_nothing(restart_after, islands, dispatch, starts):
    """The same plan on any number of threads, longer searches no worse, a warm start kept."""
    problem = a_wide_problem(dispatch=dispatch, steps=12)
    params = replace(SEARCH, islands=islands, restart_after=restart_after)
    first_terms = [each.terms for each in starting_schedules(problem, 7)]
    best = min(first_terms, key=tuple)
    for generations in (24, 30, 40):
        outcome = searched(problem, generations, 7, params, threads=1)
        assert not better(best, outcome.schedule.terms)
        best = outcome.schedule.terms
    assert len(starts) > 2 * 3 * islands
    again = searched(problem, 40, 7, params, threads=4)
    assert outcome_of(again) == outcome_of(outcome)
    on = searched(problem, 30, 8, params, warm_start=outcome.placement)
    assert not better(outcome.schedule.terms, on.schedule.terms)


@settings(max_examples=40)
@given(case=cases(), dispatch=DISPATCHES, islands=st.integers(1, 3))
def test_no_plan_to_start_from_is_lost_when_a_search_starts_again(case, dispatch, islands):
    problem = case.lowered(dispatch=dispatch).problem
    params = replace(SEARCH, islands=islands, restart_after=1)
    first_terms = [each.terms for each in starting_schedules(problem, 3)]
    schedule = searched(problem, len(first_terms) + 4, 3, params, threads=2).schedule
    assert not any(better(terms, schedule.terms) for terms in first_terms)


def placed_again(problem, start: Placement, children: int) -> Island:
    """An island whose children all have steps that are placed again, for deadlines."""
    params = replace(SEARCH, population_size=3, crossover_rate=0.0, deadline_share=1.0)
    island = Island(problem, params, 0, np.arange(1, 5, dtype=np.uint64))
    island.start([Candidate(start, simulate(problem, start))])
    island.improve(children)
    return island


def test_steps_that_have_time_leave_the_fast_node_to_those_that_have_not():
    """Four short steps come first, and the fast node has room for one step."""
    short = equal_steps(4, seconds=10)
    in_a_row = a_chain(40, 40, 40, name="c")
    cluster = a_cluster(a_node("slow", cpu=8), a_node("fast", cpu=1, speed=2))
    problem = a_problem(a_run(*short, *in_a_row), cluster, dispatch="ready")
    slow = Placement(np.zeros(problem.genes, np.int64), np.zeros(problem.activities), np.empty(0))
    assert simulate(problem, slow).makespan_seconds == 120
    schedule = simulate(problem, placed_again(problem, slow, children=40).best.placement)
    assert schedule.makespan_seconds == 60
    assert schedule.node[: len(short)].tolist() == [0] * len(short)


@settings(max_examples=60)
@given(case=cases())
def test_what_is_placed_again_is_kept_as_a_plan(case):
    """With the same schedule when it is simulated; what fits nowhere keeps its node."""
    problem = case.lowered(dispatch="ready").problem
    candidates = chain.from_iterable(seeds_of(problem))
    first = min(candidates, key=lambda each: tuple(each.schedule.terms))
    population = placed_again(problem, first.placement, children=60).population
    for genes, terms in zip(population.genes, population.terms, strict=True):
        placement = Placement(genes.copy(), first.placement.priority, np.empty(0))
        assert simulate(problem, placement).terms.tolist() == terms.tolist()


def test_what_another_island_has_found_already_does_not_count_as_an_improvement():
    """A criterion is told how long ago the best plan of all islands changed."""
    seen: list[SearchProgress] = []

    def noted(progress: SearchProgress) -> bool:
        seen.append(progress)
        return progress.generation >= 60

    solve(a_wide_problem(steps=10), noted, 3, replace(SEARCH, islands=3), threads=1)
    for before, after in pairwise(each for each in seen if each.terms is not None):
        assert after.terms is not None
        assert before.terms is not None
        changed = better(after.terms, before.terms)
        assert after.since_improvement == (0 if changed else before.since_improvement + 1)


PRINT_PLAN = """
import json
from tests.engine.search.test_search import a_wide_problem, outcome_of
from tests.support.builders import searched
print(json.dumps(outcome_of(searched(a_wide_problem(), 18, 3, threads=2))))
"""


def test_a_fresh_process_gives_the_same_plan():
    """Nothing depends on hash seeds or on what ran before."""
    answers = [
        subprocess.run(
            [sys.executable, "-c", PRINT_PLAN],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={
                **os.environ,
                "PYTHONHASHSEED": str(number),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        ).stdout
        for number in range(2)
    ]
    here = outcome_of(searched(a_wide_problem(), 18, 3, threads=1))
    assert [json.loads(answer) for answer in answers] == [here, here]


@pytest.mark.parametrize("kfp", [False, True])
def test_more_generations_are_never_worse(dispatch, kfp):
    """From the first plan on, through those the search starts from, to the search's own."""
    problem = a_wide_problem(dispatch=dispatch, kfp=kfp)
    terms = [
        searched(problem, generations, 2, threads=1).schedule.terms for generations in range(24)
    ]
    for fewer, more in pairwise(terms):
        assert not better(fewer, more)
    assert better(terms[-1], terms[0])


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.05, 0.2])
def test_generations_reproduce_a_timed_search(seconds, dispatch):
    """Wherever the time was up: among the plans it starts from or later."""
    problem = a_wide_problem(dispatch=dispatch, steps=120)
    timed = solve(problem, MaxRuntime(seconds), 4, SEARCH, threads=2)
    repeated = searched(problem, timed.generations, 4, threads=1)
    assert outcome_of(repeated) == outcome_of(timed)


def test_a_repetition_of_the_paper_s_search_is_exact_too():
    """It has its own loop."""
    problem = a_wide_problem(dispatch="ready")
    timed = solve(problem, MaxRuntime(0.05), 4, PAPER)
    repeated = searched(problem, timed.generations, 4, PAPER)
    assert outcome_of(repeated) == outcome_of(timed)


@settings(max_examples=60)
@given(case=cases(), dispatch=DISPATCHES)
def test_no_time_at_all_still_gives_a_whole_plan(case, dispatch):
    """A budget of 0 and one that ends at once."""
    problem = case.lowered(dispatch=dispatch).problem
    for stop in (MaxRuntime(0.0), MaxGenerations(0)):
        result = solve(problem, stop, 0, SEARCH)
        assert result.schedule.finished.all()
        assert result.generations == 0


def test_a_budget_is_kept():
    """The clock is a second further whenever somebody looks: two looks too many at the most."""
    problem = a_wide_problem(steps=300)
    for budget in (1, 5, 20):
        ticks = count(0.0)
        result = solve(problem, MaxRuntime(budget, clock=ticks.__next__), 0, SEARCH)
        assert result.schedule.finished.all()
        assert next(ticks) <= budget + 3


@settings(max_examples=80)
@given(case=cases(), dispatch=DISPATCHES, seed=st.integers(0, 9))
def test_a_plan_is_never_worse_than_any_plan_the_search_starts_from(case, dispatch, seed):
    """And neither is one that searches on from it."""
    problem = case.lowered(dispatch=dispatch).problem
    everything = list(seeds_of(problem, seed))
    result = searched(problem, len(everything), seed, threads=1)
    for candidate in chain.from_iterable(everything):
        assert not better(candidate.schedule.terms, result.schedule.terms)
    on = searched(problem, 0, seed, warm_start=result.placement)
    assert not better(result.schedule.terms, on.schedule.terms)


def test_a_search_starts_from_a_plan_with_held_starts():
    """A plan that waits on purpose is not lost, and not mistaken for one that does not wait."""
    run = a_workflow(a_step("a", seconds=10), a_step("b", seconds=10))
    problem = a_problem(run, a_cluster(a_node(cpu=1)), dispatch="ordered")
    held = Placement(np.zeros(2, np.int64), np.array([0.0, 30.0]), np.array([0.0, 30.0]))
    assert simulate(problem, held).makespan_seconds == 40
    result = searched(problem, 0, warm_start=held)
    assert result.schedule.makespan_seconds == 20


def test_a_plan_of_another_problem_is_refused():
    """By its size, and by nodes that are not there."""
    problem = a_problem(a_workflow(a_step("a"), a_step("b")), cluster_of(2))
    good = solve(problem, MaxGenerations(0)).placement
    for of_another in (
        replace(good, gene_nodes=np.zeros(3, np.int64)),
        replace(good, priority=np.zeros(1)),
        replace(good, not_before=np.zeros(1)),
        *(replace(good, gene_nodes=np.array([0, wrong])) for wrong in (-1, 2, 10**12)),
    ):
        with pytest.raises(PlanningError, match="another problem"):
            simulate(problem, of_another)
        with pytest.raises(PlanningError, match="another problem"):
            searched(problem, 0, warm_start=of_another)


def test_placements_need_not_be_contiguous_or_of_one_type():
    """The kernel reads them as they lie in memory."""
    problem = a_problem(a_workflow(*equal_steps(4)), cluster_of(3))
    straight = Placement(np.array([0, 1, 2, 1]), np.arange(4.0), np.empty(0))
    spaced = Placement(
        np.array([0, 9, 1, 9, 2, 9, 1, 9])[::2], np.arange(8.0)[::2] / 2, np.empty(0)
    )
    narrow = Placement(
        np.array([0, 1, 2, 1], np.int32), np.arange(4, dtype=np.float32), np.empty(0)
    )
    wanted = simulate(problem, straight)
    for other in (spaced, narrow):
        assert simulate(problem, other).node.tolist() == wanted.node.tolist()


def test_a_budget_serves_one_search_after_the_other():
    """Each has all of it; the clock ticks whenever somebody looks."""
    ticks = count()
    stop = MaxRuntime(60.0, clock=lambda: float(next(ticks)))
    first, second = (solve(a_wide_problem(), stop, 0, SEARCH) for _ in range(2))
    assert first.generations == second.generations > 12


def test_problems_and_plans_travel_between_processes():
    """The controller plans in a pool of processes."""
    problem = a_wide_problem()
    result = searched(problem, 15)
    there = pickle.loads(pickle.dumps(problem))
    assert outcome_of(searched(there, 15)) == outcome_of(result)
    assert outcome_of(pickle.loads(pickle.dumps(result))) == outcome_of(result)


@pytest.mark.parametrize("budget", [100, 1000, 2345])
def test_a_budget_of_schedules_is_kept(budget):
    """But for the last child of each island, plans to start from included; with the same plan."""
    counted: list[int] = []

    def noted(progress: SearchProgress) -> bool:
        counted.append(progress.schedules)
        return False

    problem, stop = a_wide_problem(steps=8), AnyOf((MaxSchedules(budget), noted))
    first = solve(problem, stop, 0, SEARCH, threads=1)
    assert 0 < counted[0] < counted[-1]
    assert budget <= counted[-1] < budget + 10
    second = solve(problem, MaxSchedules(budget), 0, SEARCH, threads=2)
    assert outcome_of(first) == outcome_of(second)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_budget_that_is_none_is_refused(seconds):
    """Also one that compares with nothing."""
    with pytest.raises(PlanningError, match="budget"):
        MaxRuntime(seconds)


def test_negative_generations_and_seeds_are_refused():
    """The messages name the value."""
    with pytest.raises(PlanningError, match="-1 generations"):
        MaxGenerations(-1)
    with pytest.raises(PlanningError, match="seed -3"):
        solve(a_problem(a_run(a_step("a"))), seed=-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"variant": "annealing"},
        {"islands": 0},
        {"restart_after": 2.5},
        {"crossover_rate": 1.5},
        {"greedy_share": float("nan")},
        {"mutation_rate": -1},
        {"exact_below": -1},
    ],
)
def test_parameters_that_make_no_search_are_refused(wrong):
    """The message names one of them."""
    with pytest.raises(PlanningError, match="|".join(wrong)):
        GeneticParams(**wrong)


def test_one_individual_on_one_island_searches_too():
    """The smallest population."""
    params = replace(SEARCH, population_size=1, islands=1)
    first, result = (searched(a_wide_problem(), each, 0, params) for each in (0, 15))
    assert better(result.schedule.terms, first.schedule.terms)


def test_a_run_that_the_plan_decides_nothing_of_is_simulated():
    """Nothing is marked: the default scheduler's schedule is the plan."""
    problem = a_problem(a_run(a_step("a"), a_step("b", "a")), marked_only=True)
    assert problem.genes == 0
    result = solve(problem)
    assert result.exact
    assert result.schedule.makespan_seconds == 20
    assert kube_default(problem, 0).start.tolist() == result.schedule.start.tolist()
    for name, baseline in BASELINES.items():
        assert baseline(problem, 0).makespan_seconds == 20, name


def test_tiny_runs_are_solved_exactly_and_say_so():
    """With the default parameters all plans are tried."""
    cluster = a_cluster(a_node("slow", cpu=1, speed=0.5), a_node())
    problem = a_problem(a_workflow(a_step("a"), a_step("b"), a_step("c")), cluster)
    result = solve(problem, MaxRuntime(5.0))
    assert result.exact
    assert result.generations == 0
    assert result.schedule.makespan_seconds == 10
    assert outcome_of(solve(problem, MaxGenerations(result.generations))) == outcome_of(result)
    refined = refine(problem, result.placement, 10**6, 0, GeneticParams(variant="paper"))
    assert refined.schedule.makespan_seconds == 10


def test_brute_force_refuses_what_would_take_for_ever():
    """The message says how many plans there are."""
    problem = a_wide_problem()
    with pytest.raises(PlanningError, match="brute force would try"):
        BASELINES["brute-force"](problem, 0)
