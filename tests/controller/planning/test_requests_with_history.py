"""RunRequests of pipelines that have run before: what a run needs rests on its past runs."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.histories import known_pasts
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_controller.planning import promising
from kfp_placement_controller.planning.needs.past_news import NEWS_PAUSE_SECONDS
from kfp_placement_controller.planning.needs.run_needs import LONGEST_WAIT_FOR_PAST_SECONDS, RunNeed
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.model import promise
from kfp_placement_kube.change import Change
from tests.controller.planning.noisy_cluster import a_coordinator, a_run, cluster_with_past
from tests.controller.planning.test_run_requests import QueuedCluster
from tests.controlplane.argo.small_workflows import task
from tests.support.defects import fail
from tests.support.kubernetes import node_object

ASSUMED_SECONDS = 180
"""Three steps one after another, without a past."""

USUAL_SECONDS = 420
"""The same with what they take."""


def ran(runs):
    """A cluster in which runs of the pipeline have ended."""
    return QueuedCluster(simulated=cluster_with_past(runs))


def wait(cluster, name):
    """A run of the pipeline is submitted, and its queue holds it back."""
    cluster.submit(a_run(name))


def makespan_seconds(cluster, name):
    taken = cluster.spec(name).makespan_seconds
    assert taken is not None
    return taken


def waiting_seconds(cluster):
    """Makespan that is expected of a run which waits from now on."""
    wait(cluster, "waiting")
    cluster.settle()
    return makespan_seconds(cluster, "waiting")


def test_a_waiting_run_needs_what_past_runs_took():
    cluster = ran(4)
    assert waiting_seconds(cluster) == pytest.approx(USUAL_SECONDS, rel=0.2)


def test_one_that_came_before_the_first_has_ended_is_planned_again():
    cluster = ran(0)
    assert waiting_seconds(cluster) == pytest.approx(ASSUMED_SECONDS, rel=0.2)
    cluster.submit(a_run("first"), held=False)
    cluster.simulated.run(lambda: makespan_seconds(cluster, "waiting") > 1.5 * ASSUMED_SECONDS)
    assert makespan_seconds(cluster, "waiting") == pytest.approx(USUAL_SECONDS, rel=0.3)
    writes = len(cluster.writes)
    cluster.settle()
    assert len(cluster.writes) == writes


def test_a_new_leader_that_still_builds_the_past_changes_nothing(monkeypatch):
    cluster = ran(4)
    wait(cluster, "waiting")
    cluster.settle()
    writes = len(cluster.writes)
    monkeypatch.setattr(known_pasts, "STEPS_AT_ONCE", 1)
    monkeypatch.setattr(known_pasts, "STEPS_FOR_A_NEW_RUN", 1)
    successor = a_coordinator()
    successor.queues = True
    cluster.simulated.hand_over(successor)
    cluster.queue()
    for key, request in cluster.requests.items():
        cluster.tell(key, request)
    cluster.settle(2)
    assert len(cluster.writes) == writes


def test_a_defect_in_the_past_keeps_no_run_from_its_request(monkeypatch):
    cluster = ran(2)

    monkeypatch.setattr(cluster.coordinator.histories.pasts, "of_pipeline", fail)
    assert waiting_seconds(cluster) == pytest.approx(ASSUMED_SECONDS, rel=0.2)
    assert cluster.spec("waiting").problem == ""


def test_a_defect_in_one_run_hides_no_other(monkeypatch):
    cluster = ran(2)
    must_plan = RunNeed.must_plan

    def fails_for_one(need, policy):
        if need.observed.key.name == "bad":
            fail()
        return must_plan(need, policy)

    monkeypatch.setattr(RunNeed, "must_plan", fails_for_one)
    wait(cluster, "bad")
    wait(cluster, "good")
    cluster.settle(2)
    assert makespan_seconds(cluster, "good") == pytest.approx(USUAL_SECONDS, rel=0.2)


WAITING = 6


def counted_plans(cluster, monkeypatch):
    """Names of the runs that are planned for their RunRequests from now on."""
    planned: list[str] = []
    builder = cluster.coordinator.requests.builder
    plan_alone = builder.plan_alone

    def noted(key, *others):
        planned.append(key.name)
        return plan_alone(key, *others)

    monkeypatch.setattr(builder, "plan_alone", noted)
    return planned


def ends(cluster, name):
    """One more run of the pipeline ends, and is heard of."""
    cluster.simulated.now += timedelta(minutes=10)
    cluster.submit(a_run(name), held=False)
    cluster.simulated.run(lambda: cluster.simulated.workflows[name].phase == "Succeeded")
    cluster.settle(12)


def some_wait(cluster):
    """Several runs wait from now on."""
    names = [f"waiting-{number}" for number in range(WAITING)]
    for name in names:
        wait(cluster, name)
    cluster.settle(3)
    return names


def test_a_run_that_ends_as_usual_changes_nothing_for_those_that_wait(monkeypatch):
    monkeypatch.setattr(promise, "LEAST_MOVE_SECONDS", 100.0)
    cluster = ran(6)
    names = some_wait(cluster)
    makespans = {name: makespan_seconds(cluster, name) for name in names}
    planned, writes = counted_plans(cluster, monkeypatch), len(cluster.writes)
    ends(cluster, "usual")
    # Once for its RunRequest, and for what is promised of it.
    assert max(map(planned.count, names)) <= 3
    assert makespans == {name: makespan_seconds(cluster, name) for name in names}
    assert not [each for each in cluster.writes[writes:] if each.key.name in names]


def test_runs_that_end_otherwise_count_for_all_that_wait():
    simulated = cluster_with_past(3)
    cluster = QueuedCluster(simulated=simulated)
    names = some_wait(cluster)
    simulated.workload.factor = {"work": 5.0}
    for number in range(5):
        ends(cluster, f"slow-{number}")
    for name in names:
        assert makespan_seconds(cluster, name) > 2 * USUAL_SECONDS


def test_many_that_wait_do_not_hear_of_a_run_in_one_decision(monkeypatch):
    """They take some seconds to read again; placement must not wait for that."""
    cluster = ran(4)
    waiting = 15
    for number in range(waiting):
        wait(cluster, f"waiting-{number}")
    cluster.settle()
    read: list[set[str]] = []
    tick, read_run = cluster.coordinator.tick, TrackedRun.read

    def counted_tick(now: datetime) -> Any:
        read.append(set())
        return tick(now)

    def counted_read(run, *policy_and_past):
        if run.key.name.startswith("waiting-"):
            read[-1].add(run.key.name)
        read_run(run, *policy_and_past)

    monkeypatch.setattr(cluster.coordinator, "tick", counted_tick)
    monkeypatch.setattr(TrackedRun, "read", counted_read)
    ends(cluster, "nightly-9")
    cluster.settle(12)
    assert max(map(len, read)) == promising.PROMISED_AT_ONCE
    assert len(set().union(*read)) == waiting


def next_version(name: str) -> Any:
    """Only one short step, of another name and image."""
    run = a_run(name)
    run["spec"]["templates"][0]["dag"]["tasks"] = [task("new-work")]
    run["spec"]["templates"][1]["container"]["image"] = "other:2"
    return run


def test_waiting_runs_of_each_version_of_a_pipeline_hear_of_what_past_runs_tell():
    simulated = cluster_with_past(4)
    cluster = QueuedCluster(simulated=simulated)
    wait(cluster, "first-version")
    for number in range(2):
        cluster.submit(next_version(f"next-version-{number}"))
    cluster.settle()
    for number in range(2):
        assert makespan_seconds(cluster, f"next-version-{number}") < 150
    simulated.workload.factor["work"] = 30
    cluster.submit(next_version("next-ends"), held=False)
    simulated.run(lambda: simulated.workflows["next-ends"].phase == "Succeeded")
    simulated.pass_time(60)
    assert makespan_seconds(cluster, "first-version") == pytest.approx(USUAL_SECONDS, rel=0.2)
    for number in range(2):
        assert makespan_seconds(cluster, f"next-version-{number}") > 5000


def test_news_of_a_pipeline_are_looked_at_after_a_pause(monkeypatch):
    cluster = ran(3)
    wait(cluster, "waiting")
    cluster.settle()
    planned = counted_plans(cluster, monkeypatch)
    ((name, raw),) = cluster.simulated.histories.stored.items()
    history = observe_history(raw)
    begin = cluster.simulated.now
    while cluster.simulated.now - begin < timedelta(seconds=3 * NEWS_PAUSE_SECONDS):
        # As if somebody edited the object all the time.
        edited = Change(name, history, history)
        cluster.coordinator.handle(PIPELINE_HISTORIES, edited, cluster.simulated.now)
        cluster.settle()
    assert 2 <= len(planned) <= 4


def unschedulable(name: str) -> Any:
    run = a_run(name)
    requests = {"requests": {"cpu": "50"}}
    run["spec"]["templates"][1]["container"]["resources"] = requests
    return run


def larger_node(cluster):
    room = {"cpu": "160", "memory": "64Gi"}
    cluster.simulated.set_node(node_object("large", allocatable=room))


@pytest.mark.parametrize("awaited", ["", "other", "team"])
def test_a_run_without_a_past_waits_for_that_of_its_namespace_alone_and_not_for_long(
    monkeypatch, awaited
):
    cluster = ran(3)
    histories = cluster.coordinator.histories
    monkeypatch.setattr(histories, "past", lambda *_: None)
    cluster.submit_and_settle(unschedulable("waiting"))
    assert "none of 2 nodes" in cluster.spec("waiting").unschedulable
    monkeypatch.setattr(histories.pasts, "awaits", lambda namespace: namespace == awaited)
    larger_node(cluster)
    cluster.settle()
    assert bool(cluster.spec("waiting").unschedulable) == (awaited == "team")
    for _ in range(int(LONGEST_WAIT_FOR_PAST_SECONDS / 4) + 1):
        cluster.settle()
    assert cluster.spec("waiting").unschedulable == ""
