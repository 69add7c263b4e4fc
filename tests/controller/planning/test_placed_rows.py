"""What is said of a step that has begun comes from the plan that placed it, whatever follows."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kfp_placement_controller.planning.rounds import RoundResult, plan_round
from kfp_placement_engine.views.runs import run_view
from tests.controller.planning.test_scenarios import a_cluster, a_step, started, submit
from tests.controlplane.argo.small_workflows import dag, task, workflow
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.support.kubernetes import node_object

SOONER = WorkloadSettings(driver_seconds=0, step_seconds=20, start_seconds=0)
"""Steps without a hint take 20 s, where plans expect a minute."""


def steps_of(cluster):
    """As people see them, by name."""
    view = run_view(cluster.placement("wf").to_object(), cluster.now)
    return {step.name: step for step in view.steps}


def planned(step):
    return step.planned_node, step.planned_start_seconds, step.planned_finish_seconds


def test_a_replan_leaves_the_times_of_a_step_that_runs_and_counts_its_end_as_expected():
    cluster = a_cluster(settings=SOONER)
    tasks = dag(
        "main", task("a", template="unknown"), task("b", depends="a"), task("c", depends="b")
    )
    unknown = a_step("unknown")
    del unknown["metadata"]["annotations"]
    submit(cluster, workflow(tasks, unknown, a_step()))
    cluster.run(started(cluster, "b"))
    before = cluster.placement("wf").spec
    row = planned(steps_of(cluster)["b"])
    cluster.run(lambda: cluster.placement("wf").spec.revision > before.revision)
    spec, counts = cluster.placement("wf").spec, cluster.placement("wf").status.counts
    assert row[1:] == (60, 120)
    assert (counts.succeeded, counts.running, counts.pending) == (1, 1, 1)
    assert planned(steps_of(cluster)["b"]) == row
    assert spec.makespan_seconds == pytest.approx(140, abs=2)
    cluster.run()
    assert planned(steps_of(cluster)["b"]) == row


def renamed():
    """A run whose first pod has no node yet, and what is planned of `first`: in force, and before.

    The plan in force wants the other of two nodes.
    """
    cluster = a_cluster()
    cluster.place = lambda _pod: None
    rows = []

    def search(asked):
        rows.append(planned(steps_of(cluster)["first"]))
        plans = {run: moved(plan) for run, plan in plan_round(asked).plans.items()}
        cluster.search = plan_round
        return RoundResult(asked.number, plans)

    cluster.search = search
    submit(cluster)
    cluster.run(lambda: bool(rows) and planned(steps_of(cluster)["first"]) != rows[0])
    return cluster, planned(steps_of(cluster)["first"]), rows[0]


def moved(plan):
    other = {"n0": "n1", "n1": "n0"}
    return replace(plan, steps=tuple(replace(each, node=other[each.node]) for each in plan.steps))


def bind(cluster, node, after_seconds):
    """The only pod gets that node, after a while in which nothing happens."""
    cluster.now += timedelta(seconds=after_seconds)
    cluster.place = lambda _pod: node
    cluster.set_node(node_object("n0", labels={"news": "yes"}))
    cluster.run(started(cluster))
    cluster.place = cluster.planned_node


@pytest.mark.parametrize("after_seconds", [0, 1])
def test_a_pod_that_the_plan_before_has_placed_is_where_it_was_planned(after_seconds):
    cluster, now, before = renamed()
    assert now[0] != before[0]
    bind(cluster, before[0], after_seconds)
    assert planned(steps_of(cluster)["first"]) == before
    cluster.run()
    first = steps_of(cluster)["first"]
    assert planned(first) == before
    assert (first.node, first.is_deviating) == (before[0], False)


def test_a_pod_that_is_placed_long_after_a_plan_is_elsewhere_by_that_plan():
    cluster, now, before = renamed()
    bind(cluster, before[0], 4)
    cluster.run()
    first = steps_of(cluster)["first"]
    assert planned(first) == now
    assert first.is_deviating
