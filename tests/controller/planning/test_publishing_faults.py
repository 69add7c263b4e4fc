"""What one run says, or a defect in its object, stops nothing for the runs of others."""

import json
from datetime import timedelta

import pytest

from kfp_placement_controller.planning import placement_object, placement_publisher
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS
from tests.controller.planning.noisy_cluster import NoisyCluster, a_run, cluster_with_past
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.controlplane.argo.small_workflows import NO_DEFAULTS
from tests.support.defects import fail, times_said
from tests.support.kubernetes import node_object


def submit_long(cluster: NoisyCluster, duration: str) -> str:
    """A run whose steps take so long, by their authors."""
    cluster.now += timedelta(minutes=10)
    run = a_run("nightly-1")
    hints = {HINTS_ANNOTATION: json.dumps({"v": 1, "duration": duration})}
    for template in run["spec"]["templates"]:
        if "container" in template:
            template.setdefault("metadata", {}).setdefault("annotations", {}).update(hints)
    cluster.submit(run, settings=NO_DEFAULTS, namespace="team")
    return "nightly-1"


@pytest.mark.parametrize(("duration", "history"), [("3285d", False), ("1150d", True)])
def test_steps_that_add_up_to_more_than_ten_years_stop_no_other_run(duration, history):
    coordinator = a_coordinator(evaluation_seconds=5, history=history)
    cluster = cluster_with_past(1, coordinator=coordinator)
    run = submit_long(cluster, duration)
    cluster.run(
        lambda: (
            ("team", run) in cluster.placements
            and (not history or cluster.placement(run).spec.first_ends is not None)
        )
    )
    spec = cluster.placement(run).spec
    if history:
        assert spec.first_ends.high == MAX_DURATION_SECONDS
    else:
        assert spec.first_makespan_seconds == MAX_DURATION_SECONDS
    other = cluster.begin_run(50, "other")
    cluster.run(lambda: ("other", other) in cluster.placements)


def test_a_defect_in_the_object_of_one_run_hides_no_other_and_is_said_once(monkeypatch, caplog):
    build = placement_object.placement_of

    def broken(run, *arguments):
        if run.key.namespace == "team":
            fail()
        return build(run, *arguments)

    monkeypatch.setattr(placement_publisher, "placement_of", broken)
    cluster = NoisyCluster()
    cluster.begin_run(1)
    other = cluster.begin_run(2, "other")
    cluster.run(lambda: ("other", other) in cluster.placements)
    for _ in range(3):
        cluster.coordinator.tick(cluster.now)
    assert times_said(caplog) == 1


@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("gates", "due"),
        ("watchdog", "scheduler_due"),
        ("watchdog", "queue_due"),
        ("requests", "due"),
    ],
)
def test_a_defect_beside_plans_keeps_back_no_plan_and_is_said_once(
    monkeypatch, caplog, part, method
):
    cluster = NoisyCluster()

    def fail_later(*_arguments):
        yield from ()
        fail()

    # What most of them return is worked out one by one.
    broken = fail if part == "gates" else fail_later
    monkeypatch.setattr(getattr(cluster.coordinator, part), method, broken)
    run = cluster.simulate_run(1)
    assert cluster.placement(run).status is not None
    assert cluster.history().past_runs()
    assert times_said(caplog) == 1


def test_gates_come_off_at_their_deadline_whatever_else_fails(monkeypatch):
    """Where nobody can say whose turn it is, pods wait no longer than the policy says."""
    cluster = SimulatedCluster(node_object("n0"), coordinator=a_coordinator(), gated=True)
    monkeypatch.setattr(cluster.coordinator.gates, "due", fail)
    cluster.submit(a_run("nightly-1"), settings=NO_DEFAULTS)
    cluster.run()
    assert cluster.workflows["nightly-1"].phase == "Succeeded"
