"""Sizes and numbers at the ends: no time, no bytes, exabytes, thousands of steps and nodes."""

from dataclasses import replace

import numpy as np
import pytest

from kfp_placement_engine import BASELINES, MaxRuntime, lower_bound, plan_run, solve
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from tests.support.builders import (
    ROUND_NUMBERS,
    SEARCH,
    a_chain,
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    a_working_loop,
    cluster_of,
    equal_steps,
    plan_of,
    searched,
    sentence_of,
    unplaced,
)
from tests.support.effort import growth

EXBIBYTE_GIB = 2.0**30
# Four times the size: what grows with the square would cost 16 times as much.
BELOW_SQUARED = 12
FOUR_TIMES_SQUARED = 16


def a_large_run(steps, make=a_run, kinds=60):
    """Chains and single steps of mixed size, `kinds` kinds of pods."""
    rng = np.random.default_rng(1)
    made = []
    for number in range(steps):
        before = [f"s{number - 1 - int(rng.integers(0, 20))}"] if number % 3 == 2 else []
        before = [name for name in before if not name.startswith("s-")]
        made.append(
            a_step(
                f"s{number}",
                *before,
                cpu=0.5 + int(rng.integers(0, kinds)) * 2.0 / kinds,
                memory=1,
                seconds=float(rng.integers(5, 100)),
            )
        )
    return make(*made)


def test_steps_without_run_time():
    """All at one instant, in order, whichever way round they are listed."""
    steps = a_chain(*[0] * 12)
    for listed in (steps, steps[::-1]):
        for dispatch in ("ready", "ordered"):
            problem = a_problem(a_run(*listed), cluster_of(2), dispatch=dispatch)
            for schedule in (
                *(BASELINES[name](problem, 0) for name in ("kube-default", "fifo", "heft")),
                searched(problem, 12).schedule,
            ):
                assert schedule.finished.all()
                assert schedule.makespan_seconds == 0
            assert lower_bound(problem).seconds == 0


def test_steps_without_run_time_do_not_wait_for_the_node_to_run_empty():
    """Listed the wrong way round, at one instant, beside a long step on the same node."""
    run = a_workflow(
        a_step("c", "b", seconds=3),
        a_step("b", "a", seconds=0),
        a_step("a", "z", seconds=0),
        a_step("z", seconds=10),
        a_step("long", seconds=100),
    )
    problem = a_problem(run, dispatch="ordered")
    for name in ("heft", "random", "kube-default"):
        assert BASELINES[name](problem, 0).makespan_seconds == 100
    for generations in range(12):
        result = searched(problem, generations)
        assert result.schedule.makespan_seconds == 100


def test_nothing_to_move_and_nothing_to_pull():
    """Images and inputs of 0 bytes take no time."""
    run = a_kfp_run(
        a_step("a", image="empty:1", output_bytes={"x": 0}),
        a_step("b", "a", image="empty:1", reads=[("a", 0)]),
    )
    plan = plan_run(run, a_cluster(a_node(images={"other:1": 0, "empty:1": 0}), a_node("n2")))
    assert plan.figures.makespan_seconds == 5 + 5 + 10 + 5 + 10
    for step in plan.steps:
        assert step.phases.image_pull_seconds == step.phases.transfer_seconds == 0


def test_exabytes_and_a_million_cores():
    """Room is counted in whole numbers to the end of what fits."""
    run = a_run(
        *equal_steps(3, memory=EXBIBYTE_GIB / 2, cpu=1e6),
        a_step("too-large", memory=EXBIBYTE_GIB, cpu=1e6),
    )
    cluster = cluster_of(2, cpu=4e6, memory=EXBIBYTE_GIB - 1)
    plan = plan_of(run, cluster, dispatch="ordered")
    assert unplaced(plan) == ["too-large"]
    assert "asks 1Ei" in sentence_of(plan, "too-large")
    assert plan.figures.makespan_seconds >= 10
    placed = {step.name: (step.node, step.start_seconds) for step in plan.steps if step.node}
    assert len(set(placed.values())) == 3
    assert plan.figures.makespan_seconds == 20
    assert plan.comparison.lower_bound.seconds <= plan.figures.makespan_seconds


def test_more_than_an_integer_holds_is_more_than_any_node_has():
    """Amounts beyond int64 do not wrap round to something small."""
    run = a_run(a_step("a", memory=2.0**50), a_step("b"))
    plan = plan_run(run, a_cluster(a_node(memory=2.0**20)))
    assert unplaced(plan) == ["a"]
    assert plan.step("b").node == "n1"


def test_very_short_and_very_long_steps():
    """A nanosecond before ten years: both end."""
    years = 10 * 365 * 86400.0
    run = a_run(a_step("short", seconds=1e-9), a_step("long", "short", seconds=years))
    plan = plan_run(run, a_cluster(a_node(speed=1e-3), a_node("n2", speed=1e3)))
    assert plan.figures.makespan_seconds == pytest.approx(years / 1e3)
    assert plan.figures.makespan_seconds >= plan.comparison.lower_bound.seconds


def test_run_times_keep_their_fractions_whatever_drivers_take():
    """A whole number of seconds for drivers does not make those of steps whole."""
    assumptions = replace(ROUND_NUMBERS, driver_seconds=5)
    problem = a_problem(a_kfp_run(a_step("a", seconds=2.5)), assumptions=assumptions)
    assert problem.arrays.duration_seconds.tolist() == [5.0, 5.0, 2.5]


def test_a_pod_limit_is_room_like_any_other(dispatch):
    """Four pods at a time on a node of 64 CPU."""
    run = a_run(*equal_steps(10, cpu=0))
    plan = plan_of(run, a_cluster(a_node(cpu=64, pods=4)), dispatch=dispatch)
    assert plan.figures.makespan_seconds == 30


def test_a_thousand_steps_on_a_thousand_nodes_have_a_plan_at_once(dispatch):
    """The first plan costs no more than looking at every step on every node."""

    def plan(size):
        members = (a_node(f"n{n}", cpu=4 + n % 5, speed=1 + n % 3) for n in range(size))
        problem = a_problem(a_large_run(size), a_cluster(*members), dispatch=dispatch)
        result = solve(problem, MaxRuntime(0.0), 0, SEARCH)
        assert result.schedule.finished.all()
        assert result.schedule.makespan_seconds >= lower_bound(problem).seconds

    assert growth(plan, 250, 1000) < FOUR_TIMES_SQUARED


def plan_on_three_nodes(run):
    plan = plan_of(run, cluster_of(3, cpu=8), budget_seconds=0.0)
    assert plan.unschedulable == ()
    assert all(step.node for step in plan.steps)
    assert plan.figures.makespan_seconds >= plan.comparison.lower_bound.seconds


@pytest.mark.parametrize("make", [a_run, a_kfp_run])
def test_ten_thousand_steps_on_three_nodes_are_planned(make):
    """Long queues of as many kinds of pods."""
    plan_on_three_nodes(a_large_run(10_000, make, kinds=10_000))


@pytest.mark.parametrize("make", [a_run, a_kfp_run])
def test_many_steps_cost_as_much_each_as_few(make):
    """Long queues of few kinds of pods."""
    runs = {steps: a_large_run(steps, make) for steps in (2500, 10_000)}
    assert growth(lambda steps: plan_on_three_nodes(runs[steps]), *runs) < BELOW_SQUARED


def test_a_loop_of_thousands_of_iterations_at_its_limit():
    """Two at a time; every end looks for the next to let in."""

    def search_loop(width):
        steps, loop = a_working_loop("loop", width, parallelism=2, seconds=1)
        run = a_kfp_run(*steps, groups=loop)
        problem = a_problem(run, cluster_of(3))
        seconds = 2 + width / 2 * 3
        assert kube_default(problem, 0).makespan_seconds == seconds
        assert searched(problem, 0).schedule.makespan_seconds == seconds

    assert growth(search_loop, 1000, 4000) < BELOW_SQUARED


def test_thousands_of_steps_that_share_a_volume():
    """One group, one node; and parted among nodes in the baseline."""

    def plan(width):
        steps = equal_steps(width, seconds=1, claims=["disk"])
        run = a_run(*steps)
        plan = plan_of(run, cluster_of(3), budget_seconds=0.0)
        assert len({step.node for step in plan.steps}) == 1
        assert plan.figures.makespan_seconds == width / 4

    assert growth(plan, 1000, 4000) < BELOW_SQUARED


def test_a_step_with_thousands_of_dependencies(dispatch):
    """Fan out and in again."""
    middle = equal_steps(3000, "first", seconds=1)
    run = a_run(a_step("first"), *middle, a_step("last", *(step.name for step in middle)))
    problem = a_problem(run, cluster_of(3, cpu=100), dispatch=dispatch)
    result = searched(problem, 1)
    assert result.schedule.makespan_seconds == 10 + 10 + 10
