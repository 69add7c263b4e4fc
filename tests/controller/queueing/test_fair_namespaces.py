"""Namespaces side by side in the queue: what one gets of another, and what it is told."""

from collections import Counter
from dataclasses import replace

import pytest

from kfp_placement_controller.queueing.actions import SuspendRun, WriteRequestStatus
from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import PODS
from tests.controller.planning.builders import a_pod
from tests.controller.queueing.scene import TEAM, SimulatedScene, a_node, a_queue, a_quota, demand

OTHER = "others"


def two_namespaces(cpu=8, **rules):
    queue = a_queue(overcommit=1, **rules)
    other = replace(queue, key=QueueKey(OTHER, "default"))
    return SimulatedScene(queue, other, nodes=[a_node(cpu=cpu)])


def texts_of(scene, name):
    """What people read of a run: not the uid of another."""
    return str({**scene.written[name], "preemptedFor": None})


def test_a_run_is_not_stopped_for_a_higher_priority_of_another_namespace():
    scene = two_namespaces()
    scene.submit_and_settle("mine", cpu="4")
    scene.submit("urgent", 0.5, OTHER, cpu="5", priority=1_000_000)
    assert scene.settle() == []
    assert scene.message("urgent") == "1st of 1, lacks 1 cpu of the cluster"


@pytest.mark.parametrize("priority", [1, 1_000_000])
def test_one_that_borrows_is_stopped_and_not_told_for_whom(priority):
    scene = two_namespaces()
    scene.submit_and_settle("early", cpu="4", priority=priority)
    scene.submit_and_settle("late", 0.1, cpu="4", priority=priority)
    pod = scene.pod("late", cpu=1000)
    scene.submit("stranger", 0.5, OTHER, cpu="4")
    assert scene.settle() == ["late stops for uid-stranger"]
    assert "stopped for a run of another namespace" in texts_of(scene, "late")
    assert not any(each in texts_of(scene, "late") for each in ("stranger", OTHER))
    scene.end_pod(pod)
    assert scene.settle() == ["stranger begins: admitted"]
    scene.end("stranger")
    assert scene.settle() == ["late goes on: admitted"]


def test_where_an_administrator_lets_it_a_priority_counts_across_namespaces():
    queue = a_queue(overcommit=1)
    urgent = replace(
        a_queue(overcommit=1, priorities={"max": 9, "maxAcross": 5}), key=QueueKey(OTHER, "default")
    )
    scene = SimulatedScene(queue, urgent, nodes=[a_node(cpu=8)])
    scene.submit_and_settle("mine", cpu="4", priority=1_000_000)
    scene.submit("urgent", 0.5, OTHER, cpu="5", priority=1)
    assert scene.settle() == ["mine stops for uid-urgent", "urgent begins: admitted"]


NOTE = "it has had no pod for long: runs of other queues may have its room until it has one"


def test_the_room_of_a_run_that_takes_no_pod_goes_to_others_until_it_wakes():
    scene = two_namespaces(idleAfter="10m")
    scene.submit_and_settle("giant", cpu="8")
    scene.submit("other", 0.5, OTHER, cpu="3", priority=0)
    # It borrows, so it would be stopped; but somebody has suspended it.
    scene.change("giant", is_suspended=True)
    assert scene.settle_after(550) == []
    assert scene.settle_after(60) == ["other begins: admitted"]
    assert scene.written["giant"]["notes"] == [NOTE]
    # Its own queue gets no more.
    scene.submit("own", 0.6, cpu="1")
    assert scene.settle() == []
    # It wakes: it counts again, is not held, and nothing stops for it.
    scene.change("giant", is_suspended=False)
    scene.pod("giant", phase="Pending", node_name="", cpu=8000)
    assert scene.settle_after(5) == []
    assert scene.phase("giant") == "Admitted"
    assert scene.message("own") == "1st of 1, lacks 4 cpu of the cluster"


@pytest.mark.parametrize("pending", [True, False])
def test_a_suspended_run_counts_by_its_pods_on_nodes(pending):
    scene = two_namespaces(idleAfter="1m")
    scene.submit_and_settle("giant", cpu="8")
    scene.pod(
        "giant",
        phase="Pending" if pending else "Running",
        node_name="" if pending else "node",
        cpu=1000,
    )
    scene.change("giant", is_suspended=True)
    scene.submit("other", 0.5, OTHER, cpu="7")
    scene.submit("more", 0.6, OTHER, cpu="1")
    begun = [f"{name} begins: admitted" for name in (("more", "other") if pending else ("other",))]
    assert sorted(scene.settle_after(61)) == begun


def test_a_run_with_pods_on_nodes_or_waiting_for_one_does_not_sleep():
    for phase, node in (("Running", "node"), ("Pending", "")):
        scene = two_namespaces(cpu=4)
        scene.submit_and_settle("mine", cpu="2")
        scene.pod("mine", phase=phase, node_name=node, cpu=1000)
        scene.submit("other", 0.5, OTHER, cpu="3")
        assert scene.settle_after(4000) == []


def test_a_process_that_begins_to_lead_counts_all_as_awake():
    scene = two_namespaces()
    scene.submit_and_settle("giant", cpu="8")
    scene.change("giant", is_suspended=True)
    scene.settle_after(590)
    scene.lead_again()
    scene.settle()
    scene.submit("other", 0.5, OTHER, cpu="3")
    assert scene.settle_after(590) == []
    assert scene.settle_after(11) == ["other begins: admitted"]


def test_a_weight_without_effect_says_so():
    scene = SimulatedScene(backend="kueue", localQueue="team", weight=2)
    scene.settle()
    (valid,) = [each for each in scene.queue().status.conditions if each.type == "Valid"]
    assert valid.message.endswith(
        "weight has no effect: Kueue shares by fairSharing of its ClusterQueues"
    )


def test_one_that_cannot_be_stopped_counts_by_its_pods():
    """Its object may be as large as an object may be, so that nothing can be added."""
    scene = two_namespaces()
    scene.submit_and_settle("giant", cpu="8")
    scene.pod("giant", cpu=2000)
    scene.submit("other", 0.5, OTHER, cpu="4")
    for action in scene.actions():
        scene.carry_out(action)
    (stop,) = [each for each in scene.actions() if isinstance(each, SuspendRun)]
    scene.coordinator.steering.refused(stop)
    assert scene.settle_after(5) == ["other begins: admitted"]
    assert not scene.written["giant"].get("notes")


@pytest.mark.parametrize("state", ["ended", "held"])
@pytest.mark.parametrize("on_node", [0, 1000])
def test_pods_that_wait_for_a_node_keep_none_for_a_run_that_may_have_none(state, on_node):
    """It has ended, or has not begun: for others, its pods on nodes count alone."""
    scene = two_namespaces(quota=a_quota(cpu="8"))
    gang = demand((8, {"cpu": "1"}), cpu="8")
    scene.submit("mine", demand=gang)
    if state == "ended":
        scene.settle()
        scene.end("mine")
    for number, cpu in enumerate((1_000_000, on_node)):
        pod = a_pod(
            f"p{number}",
            workflow="mine",
            workflow_uid="uid-mine",
            node_name="node" if number else "",
            requests={"cpu": cpu},
        )
        scene.coordinator.handle(PODS, Change((pod.namespace, pod.name), None, pod))
    scene.submit("all", 0.5, OTHER, demand=gang)
    scene.submit("most", 0.6, OTHER, cpu="7")
    scene.submit("own", 0.7, cpu="1")
    assert scene.settle() == [f"{'most' if on_node else 'all'} begins: admitted"]
    assert "of the quota" in scene.message("own")


def test_a_pod_that_never_finds_a_node_keeps_the_room_of_a_stopped_gang_for_a_while():
    scene = two_namespaces(idleAfter="10m")
    gang = demand((4, {"cpu": "2"}), cpu="8")
    scene.submit_and_settle("mine", demand=gang)
    scene.pod("mine", phase="Pending", node_name="", cpu=1)
    scene.submit("other", 0.5, OTHER, demand=demand((2, {"cpu": "2"}), cpu="4"))
    assert scene.settle() == ["mine stops for uid-other"]
    assert scene.settle_after(590) == []
    assert scene.settle_after(20) == ["other begins: admitted"]
    assert "notes" not in scene.written["mine"]


@pytest.mark.parametrize("held", [100, 400])
def test_runs_that_a_namespace_holds_are_looked_at_once_when_a_run_of_another_comes(
    held, monkeypatch
):
    scene = two_namespaces()
    scene.submit_and_settle("running", namespace=OTHER, cpu="3")
    for number in range(held):
        scene.submit(f"held-{number}", cpu="9")
    assert scene.settle() == []
    asked = Counter[RunKey]()
    lacks = Reservations.lacks

    def counted(reservations, run):
        asked[run.key] += 1
        return lacks(reservations, run)

    monkeypatch.setattr(Reservations, "lacks", counted)
    scene.submit("small", 0.5, OTHER, cpu="1")
    assert ("small", "admitted") in scene.runs()
    assert len(asked) == held + 1
    assert set(asked.values()) == {1}


def test_a_decision_writes_few_statuses_of_new_runs_of_one_namespace_and_those_of_others():
    scene = two_namespaces()
    for number in range(200):
        scene.submit(f"held-{number}", cpu="9")
    for name in ("small", "late"):
        scene.submit(name, 0.5, OTHER, cpu="8")
    seen: list[str] = []
    for _ in range(6):
        writes = [each for each in scene.actions() if isinstance(each, WriteRequestStatus)]
        assert sum(each.key.namespace == TEAM for each in writes) <= 50
        seen += [each.key.name for each in writes]
        if len(seen) == len(writes):
            assert "late" in seen
        for each in writes:
            scene.carry_out(each)
    # All have their turn.
    assert len(set(seen)) >= 200
