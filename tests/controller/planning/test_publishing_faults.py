"""What one run says, or a defect in its object, stops nothing for the runs of others."""

import json
import logging
import time
from datetime import timedelta

import pytest

from kfp_placement_controller.planning import placement_object, placement_publisher
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.runs.parameters import PlanningParams
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_engine.contract.resources import PlacementPolicy
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS
from tests.controller.planning.builders import a_policy
from tests.controller.planning.noisy_cluster import NoisyCluster, a_run
from tests.controller.planning.played_cluster import NO_PULLS, PlayedCluster
from tests.controlplane.argo.small_workflows import NO_DEFAULTS
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
    policy = PlacementPolicy(spec=a_policy(**NO_PULLS))
    params = PlanningParams(evaluation_seconds=5)
    cluster = NoisyCluster(
        coordinator=Coordinator(
            DEFAULT_SOURCES, time.monotonic, policy=policy, params=params, history=history
        )
    )
    cluster.play(0)
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
            raise ZeroDivisionError("made up")
        return build(run, *arguments)

    monkeypatch.setattr(placement_publisher, "placement_of", broken)
    cluster = NoisyCluster()
    cluster.begin_run(1)
    other = cluster.begin_run(2, "other")
    cluster.run(lambda: ("other", other) in cluster.placements)
    for _ in range(3):
        cluster.coordinator.tick(cluster.now)
    said = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len([each for each in said if "made up" in each.getMessage()]) == 1


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

    def broken(*_arguments):
        raise ZeroDivisionError("made up")

    def broken_later(*_arguments):
        yield from ()
        broken()

    # What most of them return is worked out one by one.
    monkeypatch.setattr(
        getattr(cluster.coordinator, part), method, broken if part == "gates" else broken_later
    )
    run = cluster.play(1)
    assert cluster.placement(run).status is not None
    assert cluster.history().past_runs()
    assert len([each for each in caplog.messages if "made up" in each]) == 1


def test_gates_come_off_at_their_deadline_whatever_else_fails(monkeypatch):
    """Where nobody can say whose turn it is, pods wait no longer than the policy says."""
    policy = PlacementPolicy(spec=a_policy(**NO_PULLS))
    cluster = PlayedCluster(
        node_object("n0"),
        coordinator=Coordinator(DEFAULT_SOURCES, time.monotonic, policy=policy),
        gated=True,
    )

    def broken(*_arguments):
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(cluster.coordinator.gates, "due", broken)
    cluster.submit(a_run("nightly-1"), settings=NO_DEFAULTS)
    cluster.run()
    assert cluster.players["nightly-1"].phase == "Succeeded"
