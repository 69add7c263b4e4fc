"""Runs of a namespace beyond its budget of steps: which are planned, and what others do."""

import base64
import random

import pytest

from kfp_placement_controller.planning.actions import Unplanned
from kfp_placement_engine.contract.keys import PLAN_GATE
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.controller.planning.test_scenarios import a_step, submit
from tests.controlplane.argo.small_workflows import dag, task, workflow
from tests.support.kubernetes import node_object

ROOM = {"cpu": "64", "memory": "64Gi"}


def a_cluster(planned_steps, *, gated=False):
    policy = {
        "namespaceLimits": {"plannedSteps": planned_steps},
        "actuator": "gates" if gated else "extender",
    }
    coordinator = a_coordinator(policy, evaluation_seconds=1)
    return SimulatedCluster(
        node_object("n0", allocatable=ROOM), coordinator=coordinator, gated=gated
    )


def submit_wide(cluster, name, steps, namespace="team", seconds=600):
    """A run of so many steps beside each other."""
    tasks = [task(f"s{number}") for number in range(steps)]
    run = workflow(dag("main", *tasks), a_step(seconds=seconds, cpu="10m"))
    run["metadata"]["name"] = name
    submit(cluster, run, namespace=namespace)


def planned(cluster):
    return sorted(name for _, name in cluster.placements)


def announced(cluster):
    return [(each.key.name, each.reason) for each in cluster.announced]


@pytest.fixture
def full():
    """A namespace of whose budget of 20 steps two runs have taken 16."""
    cluster = a_cluster(20)
    for name in ("a", "b"):
        submit_wide(cluster, name, 8)
        cluster.look()
        cluster.now += cluster.now.resolution
    return cluster


def test_a_run_beyond_the_budget_is_not_planned_and_one_event_says_so(full):
    submit_wide(full, "c", 8)
    full.pass_moments(3)
    assert planned(full) == ["a", "b"]
    assert announced(full) == [("c", Unplanned.OVER_BUDGET)]
    assert "at most 20 steps" in full.announced[0].why
    assert full.coordinator.plans.intake.over_budget == {"team": 1}


def test_a_younger_run_that_would_fit_waits_for_the_older_one(full):
    submit_wide(full, "c", 8)
    full.look()
    submit_wide(full, "d", 1)
    full.pass_moments(3)
    assert planned(full) == ["a", "b"]


def test_a_run_counts_by_the_size_of_its_object_too():
    cluster = a_cluster(60)
    for name in ("a", "b", "c"):
        run = workflow(dag("main", task("s0")), a_step(seconds=600, cpu="10m"))
        run["metadata"]["name"] = name
        run["spec"]["arguments"] = {"parameters": [{"name": "p", "value": "x" * 50_000}]}
        submit(cluster, run)
        cluster.look()
        cluster.now += cluster.now.resolution
    cluster.pass_moments(3)
    assert planned(cluster) == ["a", "b"]
    assert announced(cluster) == [("c", Unplanned.OVER_BUDGET)]


def test_another_namespace_has_a_budget_of_its_own(full):
    submit_wide(full, "other", 20, "other-team")
    full.pass_moments(3)
    assert planned(full) == ["a", "b", "other"]
    assert not full.announced


def test_when_a_run_ends_the_oldest_that_waits_is_planned(full):
    submit_wide(full, "c", 8)
    submit_wide(full, "d", 8)
    full.run(lambda: full.tracked("a").observed.ended)
    full.pass_moments(3)
    assert {"c"} <= set(planned(full))
    assert announced(full) == [("c", Unplanned.OVER_BUDGET), ("d", Unplanned.OVER_BUDGET)]


def test_one_run_is_planned_however_large_it_is():
    cluster = a_cluster(5)
    submit_wide(cluster, "large", 30)
    cluster.look()
    submit_wide(cluster, "small", 1)
    cluster.pass_moments(3)
    assert planned(cluster) == ["large"]


def test_a_held_run_makes_room_for_one_that_goes_on(full):
    full.suspend("a")
    full.look()
    submit_wide(full, "c", 12)
    full.pass_moments(3)
    assert "c" in planned(full)
    assert announced(full) == [("a", Unplanned.OVER_BUDGET)]


def test_the_next_leader_plans_the_same_runs(full):
    submit_wide(full, "c", 8)
    full.pass_moments(3)
    successor = a_coordinator({"namespaceLimits": {"plannedSteps": 20}}, evaluation_seconds=1)
    full.hand_over(successor)
    full.pass_moments(3)
    runs = successor.registry.runs.values()
    assert sorted(run.key.name for run in runs if run.plan is not None) == ["a", "b"]


def test_pods_of_a_run_beyond_the_budget_wait_for_nobody():
    cluster = a_cluster(20, gated=True)
    submit_wide(cluster, "a", 16)
    submit_wide(cluster, "c", 16)
    begin = cluster.now
    cluster.run(
        lambda: (
            all(
                {"name": PLAN_GATE} not in pod["spec"].get("schedulingGates", ())
                for pod in cluster.pods()
                if pod["metadata"]["labels"]["workflows.argoproj.io/workflow"] == "c"
            )
            and bool(cluster.pods())
        )
    )
    assert (cluster.now - begin).total_seconds() < 5


def test_an_ended_run_is_forgotten_when_open_ones_need_its_room_and_planned_again_if_retried(full):
    full.run(lambda: full.tracked("a").observed.ended and full.tracked("b").observed.ended)
    submit_wide(full, "c", 16)
    full.pass_moments(3)
    assert full.tracked("a").reading is None
    assert full.tracked("c").plan is not None
    placement = full.placement("a")
    assert placement.status.phase == "Succeeded"
    assert len(placement.spec.steps) == 8


def submit_fat(cluster, name, seconds=600):
    """A run of two steps whose object of 90 kB cannot be compressed."""
    tasks = task("s0"), task("s1", depends="s0")
    run = workflow(dag("main", *tasks), a_step(seconds=seconds, cpu="10m"))
    run["metadata"]["name"] = name
    text = base64.b85encode(random.Random(name).randbytes(70_000)).decode()
    run["spec"]["arguments"] = {"parameters": [{"name": "p", "value": text}]}
    submit(cluster, run)


def test_of_runs_beyond_the_budget_no_more_is_kept_than_of_those_within_it():
    cluster = a_cluster(60)
    for number in range(6):
        submit_fat(cluster, f"r{number}")
        cluster.look()
        cluster.now += cluster.now.resolution
    cluster.pass_moments(3)
    contents = {name: cluster.tracked(name).observed.content for name in cluster.workflows}
    forgotten = [name for name, content in contents.items() if content.is_forgotten]
    assert planned(cluster) == ["r0"]
    assert forgotten == ["r2", "r3", "r4", "r5"]
    assert cluster.coordinator.plans.intake.over_budget == {"team": 5}


def test_a_forgotten_run_is_planned_once_it_changes_and_there_is_room():
    cluster = a_cluster(60)
    for name, seconds in {"r0": 60, "r1": 60, "r2": 300}.items():
        submit_fat(cluster, name, seconds)
        cluster.look()
        cluster.now += cluster.now.resolution
    cluster.pass_moments(1)
    assert cluster.tracked("r2").observed.content.is_forgotten
    cluster.run(lambda: cluster.tracked("r2").plan is not None)
    assert not cluster.tracked("r2").observed.ended
