"""Windows of time and kinds of nodes: tight where other bounds are not, and never above a plan."""

import importlib.util
import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cp_sat
from kfp_placement_engine.bounds import kinds_bound as module
from kfp_placement_engine.bounds.effort import IN_A_PLAN, THOROUGH
from kfp_placement_engine.bounds.lower_bound import lower_bound, lower_bounds
from kfp_placement_engine.search.baselines.brute_force import brute_force
from kfp_placement_engine.search.baselines.heft import heft
from tests.engine.search.test_optimum import as_integers
from tests.support.builders import (
    a_chain,
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    equal_steps,
    nodes,
)

WITHIN = 2e-3
"""The search for the bound ends at 1e-3."""

FAST_AND_SLOW = (a_node("fast", cpu=1, speed=2.0), a_node("slow", cpu=1))

ODD = 1.0123456789
"""Time that is no divisor of another, so that nothing is rounded up."""


THREE_ON_TWO_SLOTS = (a_run(*equal_steps(3, seconds=10 * ODD)), a_node(cpu=2))

needs_highspy = pytest.mark.skipif(
    importlib.util.find_spec("highspy") is None, reason="needs the extra `bounds`"
)


def named(run, *members, **options):
    problem = a_problem(run, a_cluster(*members), **options)
    return seconds_of(problem), problem


def seconds_of(problem, *reached):
    return {bound.kind: bound.seconds for bound in lower_bounds(problem, *reached)}


@needs_highspy
def test_two_steps_have_no_fast_node_each():
    """100 s: one after the other on the fast node, or one of them on the slow node."""
    bounds, problem = named(a_run(*equal_steps(2, seconds=100 * ODD)), *FAST_AND_SLOW)
    assert bounds["critical-path"] == pytest.approx(50 * ODD)
    assert bounds["area"] == pytest.approx(200 * ODD / 3)
    assert bounds["kinds-lp"] == pytest.approx(100 * ODD, rel=WITHIN)
    assert brute_force(problem, 0).makespan_seconds == pytest.approx(100 * ODD)


@needs_highspy
def test_chains_share_the_fast_node():
    """Each of two chains of 100 + 100 s may be all fast, or one step of it slow: 150 s."""
    run = a_run(*(step for name in "ab" for step in a_chain(100 * ODD, 100 * ODD, name=name)))
    bounds, problem = named(run, *FAST_AND_SLOW, dispatch="ordered")
    assert bounds["critical-path"] == pytest.approx(100 * ODD)
    assert bounds["kinds-lp"] == pytest.approx(150 * ODD, rel=WITHIN)
    assert brute_force(problem, 0).makespan_seconds == pytest.approx(150 * ODD)


@needs_highspy
def test_steps_that_need_a_kind_are_not_counted_on_another():
    """Two steps of 10 s ask for the one GPU; six others have three CPUs that are twice as fast."""
    gpu = {"example.com/gpu": 1}
    steps = [a_step(f"g{n}", seconds=10 * ODD, extended=gpu) for n in range(2)]
    steps += [a_step(f"c{n}", seconds=20 * ODD) for n in range(6)]
    members = [a_node("gpu", cpu=1, extended=gpu), a_node("fast", cpu=3, speed=2.0)]
    bounds, problem = named(a_run(*steps), *members, dispatch="ordered")
    assert max(bounds.values()) == pytest.approx(20 * ODD, rel=WITHIN)
    assert heft(problem, 0).makespan_seconds >= max(bounds.values())


def test_windows_see_steps_that_overlap_wherever_they_start():
    """Three steps of 10 s on two slots: if all ended by 19 s, all would run from 9 to 10 s."""
    bounds, problem = named(*THREE_ON_TWO_SLOTS)
    assert bounds["area"] == pytest.approx(15 * ODD)
    assert bounds["windows"] == pytest.approx(20 * ODD, rel=WITHIN)
    assert brute_force(problem, 0).makespan_seconds == pytest.approx(20 * ODD)


def test_windows_need_no_solver(monkeypatch):
    monkeypatch.setattr(module, "find_solvers", lambda: None)
    bounds, _ = named(*THREE_ON_TWO_SLOTS)
    assert "windows" in bounds
    bounds, _ = named(a_run(*equal_steps(2, seconds=100)), *FAST_AND_SLOW)
    assert "kinds-lp" not in bounds


@needs_highspy
def test_a_search_of_generations_takes_no_notice_of_what_needs_the_solver():
    problem = a_problem(a_run(*equal_steps(2, seconds=100 * ODD)), a_cluster(*FAST_AND_SLOW))
    needs = {bound.kind: bound.needs_solver for bound in lower_bounds(problem)}
    assert needs == {"critical-path": False, "area": False, "kinds-lp": True, "pattern-lp": True}


@needs_highspy
def test_a_known_schedule_changes_no_bound():
    """It only spares programs that could not gain anything."""
    problem = a_case(7)
    reached = heft(problem, 0).makespan_seconds
    assert seconds_of(problem, reached).items() <= seconds_of(problem).items()


@needs_highspy
@pytest.mark.parametrize("work", [0, 1, 1_000, 30_000, 100_000])
def test_a_bound_holds_wherever_the_work_ends(work):
    """The prices of a solver that was stopped prove less, or nothing, but nothing wrong."""
    effort = replace(THOROUGH, kinds_work=work)
    for seed in range(20):
        problem = a_case(seed)
        bound = lower_bound(problem, effort=effort)
        assert bound.seconds <= heft(problem, 0).makespan_seconds * (1 + 1e-9)
        assert bound.seconds <= lower_bound(problem).seconds * (1 + WITHIN)


@needs_highspy
@pytest.mark.parametrize("seed", range(5))
def test_any_prices_prove_nothing_wrong(seed, monkeypatch):
    """Random ones instead of the solver's."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(
        module, "solve_rows", lambda _, __, rows, *___: (rng.exponential(size=rows.limits.size), 1)
    )
    for number in range(20):
        problem = a_case(number)
        assert lower_bound(problem).seconds <= heft(problem, 0).makespan_seconds * (1 + 1e-9)


def a_workflow_case(seed: int):
    """Up to eight steps of whole seconds on two or three nodes of different speeds."""
    rng = random.Random(f"kinds {seed}")
    steps = []
    for number in range(rng.randint(4, 8)):
        before = [f"s{other}" for other in range(number) if rng.random() < 0.25]
        steps.append(
            a_step(
                f"s{number}",
                *before,
                cpu=rng.choice([1, 1, 1, 2]),
                memory=rng.choice([0, 2, 4]),
                seconds=2 * rng.randint(1, 20),
                reads=[(name, 100 * rng.choice([0, 2, 5])) for name in before],
            )
        )
    members = [
        a_node(f"n{n}", cpu=rng.choice([1, 2, 3]) + (n == 0), speed=rng.choice([0.5, 1.0, 2.0]))
        for n in range(rng.randint(2, 3))
    ]
    return a_workflow(*steps), a_cluster(*members)


def a_case(seed: int):
    return a_problem(*a_workflow_case(seed), dispatch="ordered")


CASES = 200


def test_no_bound_is_above_the_proven_optimum():
    """CP-SAT's, of runs on nodes of different speeds; many of the bounds are reached."""
    pytest.importorskip("ortools", reason="ortools is not installed")
    optima = cp_sat.optima([as_integers(*a_workflow_case(seed)) for seed in range(CASES)])
    reached = 0
    for seed, optimum in enumerate(optima):
        problem = a_case(seed)
        for effort in (IN_A_PLAN, THOROUGH):
            bounds = lower_bounds(problem, effort=effort)
            for bound in bounds:
                assert bound.seconds <= optimum, (seed, bound)
        reached += max(bound.seconds for bound in bounds) >= optimum * (1 - WITHIN)
    assert reached >= CASES // 2


def test_the_row_of_the_fullest_window_is_chosen():
    """A window too full is found though others come first."""
    run = a_run(a_step("early", seconds=3 * ODD), *equal_steps(3, "early", seconds=10 * ODD))
    bounds, _ = named(run, *nodes(1, cpu=2))
    assert bounds["windows"] == pytest.approx(23 * ODD, rel=WITHIN)


def test_more_kinds_than_are_told_apart_are_left_out():
    kinds = importlib.import_module("kfp_placement_engine.bounds.node_kinds")
    members = [a_node(f"n{n}", speed=1 + n / 7) for n in range(kinds.MAX_KINDS + 1)]
    bounds, _ = named(a_run(*equal_steps(60, seconds=ODD)), *members)
    assert "kinds-lp" not in bounds
