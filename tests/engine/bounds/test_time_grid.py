"""Bounds are rounded up to the common divisor of all times, where there is one."""

import numpy as np
import pytest

from kfp_placement_engine import BASELINES, ActiveRun, LoweringOptions, lower_bound
from kfp_placement_engine.bounds.lower_bound import lower_bounds, usable_nodes
from kfp_placement_engine.bounds.time_grid import common_divisor, rounded_up
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.search.baselines.heft import heft
from kfp_placement_engine.search.simulation import simulate_list
from tests.engine.planning.mixed_runs import SOURCES, Mixture, begun_run, mixed_cluster, mixed_run
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
)

OPTIONS = LoweringOptions(assumptions=ROUND_NUMBERS, latency_ruled_types=LATENCY_RULED_TYPES)


def divisor_of(run, *members, **options):
    problem = a_problem(run, a_cluster(*members), **options)
    return common_divisor(problem, usable_nodes(problem))


def steps_of(*seconds: float, **options):
    return [a_step(f"s{number}", seconds=each, **options) for number, each in enumerate(seconds)]


TWO_STEPS = a_run(*steps_of(20, 30))


def test_two_of_three_large_steps_run_one_after_the_other():
    """3 CPU each on two nodes of 4: an area of 11.25 s, but no schedule ends before 20 s."""
    problem = a_problem(a_run(*steps_of(10, 10, 10, cpu=3)), cluster_of(2))
    named = {bound.kind: bound.seconds for bound in lower_bounds(problem)}
    assert named["area"] == pytest.approx(11.25)
    assert named["area-rounded"] == pytest.approx(20)
    assert lower_bound(problem).kind == "area-rounded"
    assert heft(problem, 0).makespan_seconds == pytest.approx(20)


def test_a_bound_that_is_a_multiple_is_not_named_twice():
    problem = a_problem(a_run(*steps_of(10, 10)), a_cluster(a_node(cpu=1)))
    kinds = [bound.kind for bound in lower_bounds(problem)]
    assert "area-rounded" not in kinds
    assert lower_bound(problem).seconds == pytest.approx(20)


@pytest.mark.parametrize(
    ("seconds", "divisor"),
    [
        ((17, 34, 68), 17),
        ((0.1, 0.3), 0.1),
        ((100 * 4 / 6, 100, 100 * 8 / 6), 100 / 3),
        ((16.667, 25), 0.001),
        ((16.6667, 25), None),
        ((12.3456789,), None),
        ((0,), None),
        ((1e12, 3e12), None),
    ],
)
def test_the_divisor_of_run_times(seconds, divisor):
    """Exact where floats are not; none below 1 ms."""
    assert divisor_of(a_run(*steps_of(*seconds))) == (divisor and pytest.approx(divisor))


def test_speeds_divide_run_times():
    """20 and 30 s on nodes of speed 1.2 and 0.8: 16.67, 25, 25 and 37.5 s."""
    members = [a_node("n1", speed=1.2), a_node("n2", speed=0.8)]
    assert divisor_of(TWO_STEPS, *members) == pytest.approx(25 / 6)
    assert divisor_of(TWO_STEPS, a_node(speed=np.pi)) is None


def test_nodes_that_take_no_step_divide_nothing():
    members = [a_node("n1"), a_node("n2", cpu=0, speed=np.pi)]
    assert divisor_of(TWO_STEPS, *members) == pytest.approx(10)


def test_whatever_else_takes_time_is_on_the_grid_or_breaks_it():
    """Drivers of 1 s; pulls of 100 bytes at 50/s; 300 bytes at 100/s to and from the store."""
    assert divisor_of(a_kfp_run(*steps_of(20, 30))) == pytest.approx(1)
    pulled = a_run(*steps_of(20, 30, image="tool:1"))
    assert divisor_of(pulled) == pytest.approx(2)
    assert divisor_of(pulled, a_node(images={"tool:1": 100})) == pytest.approx(10)
    moved = [a_step("a", seconds=20), a_step("b", "a", seconds=30, reads=[("a", 300)])]
    assert divisor_of(a_run(*moved)) == pytest.approx(1)
    assert divisor_of(a_workflow(*moved)) == pytest.approx(1)
    assert divisor_of(a_run(*moved), a_node(store_bytes_per_second=np.pi)) is None


def test_a_rounding_error_above_a_multiple_is_not_rounded_up():
    assert rounded_up(20 * (1 + 1e-12), 10) == pytest.approx(20)
    assert rounded_up(20.001, 10) == pytest.approx(30)
    assert rounded_up(0.0, 10) == 0


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_no_schedule_of_any_policy_ends_before_any_bound(kind, begun, seed):
    """Runs with loops, transfers, speeds, images, claims, latency rules and running pods."""
    mixture = Mixture(kind, steps=8 + seed, nodes=2 + seed % 5, seed=seed)
    active = begun_run(mixture) if begun else ActiveRun("run", mixed_run(mixture))
    problem = lower_runs([active], mixed_cluster(mixture), OPTIONS).problem
    bounds = lower_bounds(problem)
    schedules = [BASELINES[name](problem, seed) for name in ("heft", "kube-default", "random")]
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(problem.activities).astype(np.float64) for _ in range(2)]
    schedules += [simulate_list(problem, order) for order in orders]
    for schedule in schedules:
        for bound in bounds:
            assert schedule.makespan_seconds >= bound.seconds, bound.kind
