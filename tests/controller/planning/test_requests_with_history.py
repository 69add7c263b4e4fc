"""RunRequests of pipelines that have run before: what a run needs rests on its past runs."""

from typing import Any

import pytest

from kfp_placement_controller.planning import built_pasts
from tests.controller.planning.noisy_cluster import NoisyCluster, a_coordinator, a_run
from tests.controller.planning.test_run_requests import QueuedCluster

ITERATIONS = 2
ASSUMED_SECONDS = 180
"""Three steps one after another, without a past."""

USUAL_SECONDS = 420
"""The same with what they take."""


def queued(cluster: NoisyCluster) -> QueuedCluster:
    """The cluster, with queues."""
    return QueuedCluster(played=cluster)


def ran(runs: int) -> QueuedCluster:
    """A cluster in which runs of the pipeline have ended."""
    cluster = NoisyCluster()
    for number in range(runs):
        cluster.play(number, iterations=ITERATIONS)
    return queued(cluster)


def wait(cluster: QueuedCluster, name: str) -> None:
    """A run of the pipeline is submitted, and its queue holds it back."""
    cluster.submit(a_run(name, ITERATIONS))


def makespan_seconds(cluster: QueuedCluster, name: str) -> float:
    taken = cluster.spec(name).makespan_seconds
    assert taken is not None
    return taken


def test_a_waiting_run_needs_what_past_runs_took():
    cluster = ran(4)
    wait(cluster, "waiting")
    cluster.settle()
    assert makespan_seconds(cluster, "waiting") == pytest.approx(USUAL_SECONDS, rel=0.2)


def test_one_that_came_before_the_first_has_ended_is_planned_again():
    cluster = queued(NoisyCluster())
    wait(cluster, "waiting")
    cluster.settle()
    assert makespan_seconds(cluster, "waiting") == pytest.approx(ASSUMED_SECONDS, rel=0.2)
    cluster.submit(a_run("first", ITERATIONS), held=False)
    cluster.played.run(lambda: makespan_seconds(cluster, "waiting") > 1.5 * ASSUMED_SECONDS)
    assert makespan_seconds(cluster, "waiting") == pytest.approx(USUAL_SECONDS, rel=0.3)
    writes = len(cluster.writes)
    cluster.settle()
    assert len(cluster.writes) == writes


def test_a_new_leader_that_still_builds_the_past_changes_nothing(monkeypatch: Any):
    cluster = ran(4)
    wait(cluster, "waiting")
    cluster.settle()
    writes = len(cluster.writes)
    monkeypatch.setattr(built_pasts, "BUILD_OBSERVATIONS", 1)
    monkeypatch.setattr(built_pasts, "BUILT_AT_ONCE", 1)
    successor = a_coordinator()
    successor.queues, successor.histories._pasts._left = True, 1
    cluster.played.hand_over(successor, 2)
    cluster.queue()
    for key, request in cluster.requests.items():
        cluster.tell(key, request)
    cluster.settle()
    cluster.settle()
    assert successor.requests._needs
    assert len(cluster.writes) == writes


def test_a_defect_in_the_past_keeps_no_run_from_its_request(monkeypatch: Any):
    cluster = ran(2)

    def fails(*_args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cluster.coordinator.histories, "_of_pipeline", fails)
    wait(cluster, "waiting")
    cluster.settle()
    assert makespan_seconds(cluster, "waiting") == pytest.approx(ASSUMED_SECONDS, rel=0.2)
    assert cluster.spec("waiting").problem == ""


def test_a_defect_in_one_run_hides_no_other(monkeypatch: Any):
    cluster = ran(2)
    of_all = cluster.coordinator.requests._must_plan

    def fails_for_one(need: Any, policy: Any) -> bool:
        if need.observed.key.name == "bad":
            raise ZeroDivisionError
        return bool(of_all(need, policy))

    monkeypatch.setattr(cluster.coordinator.requests, "_must_plan", fails_for_one)
    wait(cluster, "bad")
    wait(cluster, "good")
    cluster.settle()
    cluster.settle()
    assert makespan_seconds(cluster, "good") == pytest.approx(USUAL_SECONDS, rel=0.2)
