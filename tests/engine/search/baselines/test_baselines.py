"""Baselines by themselves: HEFT's schedule holds, large clusters are sampled, queues block."""

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.kube_scheduler.model import KubeScheduler
from benchmarks.kube_scheduler.state import SchedulerState
from kfp_placement_engine import BASELINES, Taint, simulate
from kfp_placement_engine.problem import native
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from kfp_placement_engine.search.baselines.heft import heft, heft_placement
from tests.engine.planning.random_runs import cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_loop,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
)
from tests.support.reference_simulation import Reference


@settings(max_examples=120)
@given(case=cases(kinds=("direct",)))
def test_heft_s_plan_starts_nothing_later_than_heft_does(case):
    """Its nodes in the order of its starts, each as early as room allows.

    Without images: HEFT pulls one for the step of highest rank, another may start there before it.
    """
    if any(step.image for step in case.run.steps):
        return
    problem = case.lowered(dispatch="ordered").problem
    start, node = native.heft(problem)
    simulated = simulate(problem, heft_placement(problem))
    placed = np.isfinite(start)
    assert placed.all()
    assert (simulated.node == node).all()
    assert (simulated.start <= start + 1e-9).all()


def test_heft_by_hand():
    """Ranks 33, 20 + 3, 10, 22: `a` and `b` first; `c` fills the gap that `d` waits in.

    Two nodes of one CPU. a 10 s; b after a, 20 s, 100 B at 100 B/s away; c 10 s; d after c and a,
    10 s, 600 B from a and 100 B from c.
    """
    run = a_workflow(
        a_step("a", seconds=10),
        a_step("b", "a", seconds=20, reads=[("a", 100)]),
        a_step("c", seconds=10),
        a_step("d", "a", "c", seconds=10, reads=[("a", 600), ("c", 100)]),
    )
    problem = a_problem(run, cluster_of(2, cpu=1), dispatch="ordered")
    schedule = heft(problem, 0)
    assert schedule.start.tolist() == [0, 10, 0, 16]
    assert schedule.node.tolist() == [0, 0, 1, 1]
    assert schedule.makespan_seconds == 30


def test_heft_is_not_held_to_an_order_that_limits_of_loops_forbid():
    """Three loops at once, each of six iterations of 12 s with their drivers, two at a time."""
    steps = [
        a_step(f"{loop}[{index}].work", group=f"{loop}[{index}]")
        for loop in ("a", "b", "c")
        for index in range(6)
    ]
    groups = [group for loop in ("a", "b", "c") for group in a_loop(loop, 6, parallelism=2)]
    problem = a_problem(a_kfp_run(*steps, groups=groups), cluster_of(3, cpu=4), dispatch="ordered")
    alone = simulate(problem, heft_placement(problem)).makespan_seconds
    assert heft(problem, 0).makespan_seconds == pytest.approx(1 + 1 + 6 * 12 / 2)
    assert alone > 60


@pytest.mark.parametrize("count", [99, 100, 130, 400])
def test_large_clusters_are_sampled_as_the_scheduler_model_samples_them(count):
    """From 100 nodes on not all are looked at, and the next search starts where the last ended."""
    rng = np.random.default_rng(count)
    members = [
        a_node(
            f"n{number}",
            cpu=int(rng.integers(1, 9)),
            memory=int(rng.integers(1, 33)),
            taints=(Taint("rather", "not", "PreferNoSchedule"),) if number % 7 == 0 else (),
            unschedulable=number % 11 == 0,
            images={"tool:1": 500 * 2**20} if number % 5 == 0 else {},
        )
        for number in range(count)
    ]
    steps = [
        a_step(
            f"s{number}",
            cpu=int(rng.integers(1, 4)) / 2,
            memory=int(rng.integers(1, 5)) / 2,
            image="tool:1" if number % 3 else "",
        )
        for number in range(300)
    ]
    run, cluster = a_run(*steps), a_cluster(*members)
    problem = a_problem(run, cluster)
    schedule = kube_default(problem, 0)
    reference = Reference(run, cluster, ROUND_NUMBERS)
    scheduler, state = KubeScheduler(), SchedulerState(cluster.nodes)
    for index, pod in enumerate(reference.pods()):
        decision = scheduler.schedule(reference.kube_pod(pod), state)
        if schedule.start[index] == 0:
            assert decision.node == problem.node_names[schedule.node[index]], index
        else:
            assert decision.node is None, index


def test_a_blocked_head_holds_up_all_behind_it_in_fifo_alone():
    """`wide` fits nowhere until 10; `small` could start at once."""
    run = a_run(a_step("first", cpu=2), a_step("wide", cpu=4), a_step("small", cpu=1))
    problem = a_problem(run)
    assert BASELINES["fifo"](problem, 0).start.tolist() == [0, 10, 20]
    assert kube_default(problem, 0).start.tolist() == [0, 10, 0]


def test_random_differs_by_seed_and_keeps_the_rules():
    """Only allowed nodes, the same ones for the same seed."""
    steps = [a_step(f"s{n}", node_selector={"zone": "a"} if n % 2 else {}) for n in range(20)]
    members = [a_node(f"n{n}", labels={"zone": "ab"[n % 2]}) for n in range(4)]
    problem = a_problem(a_run(*steps), a_cluster(*members), dispatch="ordered")
    drawn = [BASELINES["random"](problem, seed).node.tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(node in (0, 2) for node in drawn[0][1::2])
    assert {1, 3} & set(drawn[0][::2])
