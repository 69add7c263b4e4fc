"""Peers' schedules: they keep every rule, and are those that the engine's simulation yields."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.command import BenchmarkError
from benchmarks.peers import PEERS, list_scheduling, peer_schedules
from benchmarks.peers.list_scheduling import (
    ListScheduling,
    has_tasks_alone,
    occupied_seconds,
    schedule_of,
)
from benchmarks.peers.node_choices import fair
from benchmarks.peers.orders import StaticOrder, order_of
from kfp_placement_engine import BASELINES, Step
from kfp_placement_engine.bounds.lower_bound import lower_bound
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.search.simulation import simulate_list
from tests.benchmarks.peers.instances import an_instance, instance_of
from tests.engine.planning.invariants import Checker
from tests.engine.planning.random_runs import cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_node,
    a_step,
    a_workflow,
    cluster_of,
    lowered,
)
from tests.support.reference_simulation import Reference


@st.composite
def slot_cases(draw):
    """A workflow whose steps take a slot each, on nodes of four slots of different speeds."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 12))):
        earlier = [step.name for step in steps]
        before = (
            draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        )
        reads = [(name, draw(st.sampled_from([0, 100, 300]))) for name in before]
        seconds = draw(st.sampled_from([0, 1, 2, 3, 5, 8]))
        steps.append(a_step(f"s{number}", *before, seconds=seconds, reads=reads))
    speeds = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=4))
    members = (
        replace(a_node(f"n{at}", speed=speed), allocatable={"cpu": 4000, "pods": 110})
        for at, speed in enumerate(speeds)
    )
    return an_instance(a_workflow(*steps), a_cluster(*members))


class EndsFirst:
    """The node choice of the kernel's list scheduling, for steps without images."""

    def __init__(self, problem):
        self.problem, self.start = problem, np.full(problem.activities, np.inf)

    def bind_to(self, scheduling):
        self.scheduling = scheduling

    def __call__(self, activity, fitting, room):
        now = self.scheduling.now
        arrays = self.problem.arrays
        excess = arrays.latency_excess_ms[arrays.class_of[activity]]

        def rank(node):
            begin = now
            if self.problem.direct_transfers:
                begin = max(begin, self.scheduling.arrival(activity, node))
            end = begin + occupied_seconds(self.problem, activity, node)
            return excess[node], end, room.share_left(activity)[node]

        return min(np.flatnonzero(fitting).tolist(), key=rank)


@settings(max_examples=150)
@given(case=cases(kinds=("direct", "plain")), name=st.sampled_from(sorted(PEERS)))
def test_a_peers_schedule_keeps_every_rule(case, name):
    """Room, order, filters, transfers, pulls, times, bound: as plans of ours are checked."""
    low = lowered(case.run, case.cluster, dispatch="ordered")
    instance = instance_of(case.run, case.cluster, low)
    schedules = peer_schedules(instance, [name], 1)
    assert bool(schedules) == has_tasks_alone(low.problem)
    for schedule in schedules.values():
        reference = Reference(case.run, case.cluster, ROUND_NUMBERS, LATENCY_RULED_TYPES)
        assert Checker(reference, low, schedule, ours=True).faults() == []
        assert schedule.makespan_seconds >= lower_bound(low.problem).seconds


@settings(max_examples=100)
@given(instance=slot_cases())
def test_first_in_on_the_emptiest_node_is_kube_default_on_slots(instance):
    """Where kube-scheduler scores nothing but free slots, both do the same at the same moments."""
    ours = schedule_of(instance.problem, order_of("fifo", instance), fair)
    kube = BASELINES["kube-default"](instance.problem, 0)
    for name in ("start", "end", "node", "terms"):
        assert np.array_equal(getattr(ours, name), getattr(kube, name))


@settings(max_examples=150)
@given(case=cases(kinds=("direct", "plain")), data=st.data())
def test_list_scheduling_is_that_of_the_kernel(case, data):
    """With the kernel's choice of nodes and any priorities, pods without images."""
    run = replace(case.run, steps=tuple(replace(step, image="") for step in case.run.steps))
    problem = an_instance(run, case.cluster).problem
    if not has_tasks_alone(problem):
        return
    urgency = data.draw(st.permutations(range(problem.activities)))
    choose = EndsFirst(problem)
    scheduling = ListScheduling(problem, StaticOrder([(float(each),) for each in urgency]), choose)
    choose.bind_to(scheduling)
    decided = scheduling.decisions()
    kernel = simulate_list(problem, np.array(urgency, np.float64))
    assert np.array_equal(decided.start, kernel.start)
    assert np.array_equal(decided.node, kernel.node)


@pytest.mark.parametrize("name", sorted(PEERS))
def test_the_same_seed_is_the_same_schedule(name):
    steps = [a_step(f"s{at}", seconds=1 + at % 5) for at in range(30)]
    instance = an_instance(a_workflow(*steps), cluster_of(5, cpu=2))
    one, same, other = (peer_schedules(instance, [name], seed)[name] for seed in (3, 3, 4))
    assert np.array_equal(one.node, same.node)
    assert np.array_equal(one.start, same.start)
    assert np.array_equal(one.node, other.node) == ("random" not in name)


def test_a_step_that_fits_nowhere_is_skipped():
    run = a_workflow(
        a_step("first", cpu=3, seconds=4), a_step("large", cpu=4), a_step("small", cpu=1)
    )
    instance = an_instance(run, a_cluster(a_node(cpu=4)))
    schedule = schedule_of(instance.problem, order_of("fifo", instance), fair)
    starts = {name: schedule.start[at] for name, at in instance.activities.items()}
    assert starts == {"first": 0, "small": 0, "large": 10}


def test_runs_with_driver_pods_have_no_peers():
    instance = an_instance(a_kfp_run(a_step("s")), a_cluster(a_node()))
    assert peer_schedules(instance, list(PEERS), 0) == {}


def test_decisions_that_the_simulation_does_not_confirm(monkeypatch):
    """A run time that is too short here."""
    instance = an_instance(a_workflow(a_step("a"), a_step("b", "a")), a_cluster(a_node()))
    monkeypatch.setattr(list_scheduling, "occupied_seconds", lambda *given: 9.0)
    with pytest.raises(
        BenchmarkError, match="step b starts at 9 s in a peer's schedule, and at 10"
    ):
        schedule_of(instance.problem, order_of("fifo", instance), fair)
