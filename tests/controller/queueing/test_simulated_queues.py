"""Simulated queues: runs, RunRequests, nodes and pods change as the coordinator decides."""

from dataclasses import replace
from typing import Any

import pytest

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.queueing.statuses.publisher import NOT_STOPPED
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.times import time_text
from tests.controller.queueing.scene import TEAM, SimulatedScene, a_node, a_queue, a_quota, demand


def test_a_run_waits_until_the_planner_says_what_it_needs():
    scene = SimulatedScene()
    scene.submit("run", demand=None)
    assert scene.settle() == []
    assert scene.message("run") == "waits for the planner to say what it needs"
    assert scene.condition("run") == ("False", "PendingEvaluation")
    scene.say("run", cpu="2")
    assert scene.settle() == ["run begins: admitted"]
    assert scene.phase("run") == "Admitted"
    assert scene.condition("run") == ("True", "Admitted")


@pytest.mark.parametrize(
    ("says", "begins"), [("run", ["run begins: no-demand"]), ("hold", [])], ids=str
)
def test_a_run_of_which_nobody_says_what_it_needs_begins_after_the_deadline(says, begins):
    scene = SimulatedScene(holdDeadline="30s", onControllerDown=says)
    scene.submit_unknown("run", 1.0)
    assert scene.settle() == []
    assert scene.settle_after(31) == begins


def test_a_run_waits_ten_seconds_for_a_planner_that_lives_whatever_its_queue_says():
    """So long it may take to see the last of many runs."""
    scene = SimulatedScene(holdDeadline="1s")
    scene.submit_unknown("run", 1.0)
    assert scene.settle() == []
    assert scene.settle_after(9) == []
    assert scene.settle_after(6) == ["run begins: no-demand"]


def test_a_run_that_the_planner_knows_waits_for_its_turn_however_long_that_takes():
    """Else the last of a namespace that floods the planner would begin without a demand."""
    scene = SimulatedScene(holdDeadline="30s")
    scene.submit("run", 1.0, demand=None)
    for _ in range(12):
        assert scene.settle_after(31) == []
    assert scene.condition("run") == ("False", "PendingEvaluation")


@pytest.mark.parametrize("is_deleted", [True, False])
def test_of_a_run_whose_namespace_takes_part_no_more_it_is_not_said_that_it_waits(is_deleted):
    scene = SimulatedScene(runs=0)
    scene.submit("run")
    assert scene.settle() == []
    assert scene.phase("run") == "Waiting"
    if is_deleted:
        scene.drop_queue()
    else:
        scene.label_namespace("false")
    assert scene.settle() == []
    assert scene.settle_after(5) == ["run begins: no-queue"]
    assert (scene.phase("run"), scene.written["run"].get("position")) == ("Admitted", None)
    assert scene.condition("run") == ("True", "NotHeld")
    scene.end("run")
    assert scene.settle() == []
    assert scene.phase("run") == "Finished"


def test_what_admitted_runs_demand_counts_and_their_pods_only_beyond_that():
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    scene.submit("first", 0.1, cpu="5")
    scene.submit("second", 0.2, cpu="4")
    assert scene.settle() == ["first begins: admitted"]
    pod = scene.pod("first", cpu=5000)
    scene.settle()
    assert scene.message("second") == "1st of 1, lacks 1 cpu of the cluster"
    scene.say("first", cpu="4")
    assert scene.settle() == []
    scene.end_pod(pod)
    assert scene.settle() == ["second begins: admitted"]


@pytest.mark.parametrize("node_name", ["node", ""], ids=["on-a-node", "waiting-for-one"])
def test_pods_that_request_more_than_their_run_demands_count_against_its_quota(node_name):
    """An author may say too little: of run times, of widths, or in what Argo reads at run time."""
    scene = SimulatedScene(quota=a_quota(cpu="4"), nodes=[a_node(cpu=64)])
    scene.submit("first", 0.1, cpu="1")
    assert scene.settle() == ["first begins: admitted"]
    pod = scene.pod("first", node_name=node_name, cpu=3500)
    scene.submit("second", 0.2, cpu="1")
    assert scene.settle() == []
    assert scene.message("second") == "1st of 1, lacks 500m cpu of the quota"
    scene.settle_after(5)
    assert [(each.name, each.amount) for each in scene.queue().status.used] == [("cpu", "3500m")]
    scene.end_pod(pod)
    assert scene.settle() == ["second begins: admitted"]


def at_most(peak: str, most: str) -> dict[str, Any]:
    """A demand by a plan, and the most that the run may take at once."""
    return {**demand(cpu=peak), "most": demand(cpu=most)["peak"]}


def test_the_most_that_a_run_may_take_at_once_counts_against_its_quota():
    """For the cluster, its plan counts."""
    scene = SimulatedScene(quota=a_quota(cpu="8"), overcommit=1, nodes=[a_node(cpu=9)])
    scene.submit("first", 0.1, demand=at_most("1", "7"))
    assert scene.settle() == ["first begins: admitted"]
    scene.submit("second", 0.2, cpu="2")
    scene.submit("third", 0.3, demand=at_most("1", "8500m"))
    assert scene.settle() == []
    assert scene.message("second") == "1st of 2, lacks 1 cpu of the quota"
    assert "more than the whole quota" in scene.message("third")
    scene.settle_after(5)
    assert [(each.name, each.amount) for each in scene.queue().status.used] == [("cpu", "7")]
    scene.say("first", demand=at_most("1", "6"))
    assert scene.settle() == ["second begins: admitted"]


def test_a_run_wider_than_the_cluster_begins_in_a_quota_as_large_as_the_cluster():
    scene = SimulatedScene(quota=a_quota(cpu="8"), nodes=[a_node(cpu=8)])
    scene.submit("wide", demand=at_most("8", "300"))
    assert scene.settle() == ["wide begins: admitted"]


def test_pods_of_others_take_room():
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    pod = scene.pod("", cpu=6000)
    scene.submit("run", cpu="3")
    assert scene.settle() == ["run begins: admitted"]
    # More than the cluster has counts as all it has: alone such a run may go, but not a second.
    scene.submit("other", cpu="3")
    assert scene.settle() == []
    scene.end_pod(pod)
    assert scene.settle() == ["other begins: admitted"]


@pytest.mark.parametrize(
    "lost",
    [
        {"unschedulable": True},
        {"taints": (Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)},
        {"taints": (Taint("node-role.kubernetes.io/control-plane"),)},
    ],
    ids=["cordoned", "unreachable", "control-plane"],
)
def test_nodes_that_take_no_pods_of_runs_do_not_count(lost):
    scene = SimulatedScene(nodes=[a_node(cpu=8), a_node("gpu", gpu=1, **lost)])
    scene.submit("run", gpu="1")
    assert scene.settle() == []
    assert scene.message("run") == "1st of 1, needs 1 nvidia.com/gpu, which no node has"
    tainted = a_node("gpu", gpu=1, taints=(Taint("nvidia.com/gpu"),))
    scene.place(tainted)
    assert scene.settle() == ["run begins: admitted"]


def test_a_quota_of_a_resource_limits_runs_and_the_queue_says_what_is_used():
    scene = SimulatedScene(quota=a_quota(cpu="4"), nodes=[a_node(cpu=64)])
    scene.submit("first", 0.1, cpu="3")
    scene.submit("second", 0.2, cpu="2")
    assert scene.settle() == ["first begins: admitted"]
    assert scene.message("second") == "1st of 1, lacks 1 cpu of the quota"
    assert scene.written["second"]["missing"] == [
        {"rule": "quota", "resource": "cpu", "amount": "1"}
    ]
    scene.settle_after(5)
    queue = scene.queue()
    assert [(each.name, each.amount) for each in queue.status.used] == [("cpu", "3")]
    assert (queue.status.waiting, queue.status.admitted) == (1, 1)


def test_two_gangs_that_would_block_each_other_go_in_turn():
    scene = SimulatedScene(nodes=[a_node("a", gpu=2), a_node("b", gpu=2)])
    workers = demand((3, {"cpu": "1", "gpu": "1"}), cpu="3", gpu="3")
    for name in ("first", "second"):
        scene.submit(name, demand=workers)
    assert scene.settle() == ["first begins: admitted"]
    assert "lacks room for 2 pods" in scene.message("second")
    assert scene.condition("second") == ("False", "WaitingForRoom")
    scene.end("first")
    assert scene.settle() == ["second begins: admitted"]
    assert scene.phase("first") == "Finished"


def test_a_run_goes_to_the_queue_that_it_names():
    gpu = replace(a_queue(runs=0), key=QueueKey(TEAM, "gpu"))
    scene = SimulatedScene(a_queue(), gpu, nodes=[a_node()])
    scene.submit("a", queue="gpu")
    scene.submit("b", queue="tpu")
    assert scene.settle() == ["b begins: admitted"]
    assert (scene.written["a"]["queue"], scene.written["b"]["queue"]) == ("gpu", "default")
    assert scene.written["b"]["notes"] == ["there is no RunQueue tpu: it is in default"]
    scene.drop_queue("gpu")
    assert scene.settle() == ["a begins: admitted"]


def test_priorities_are_clamped_and_the_run_says_so():
    scene = SimulatedScene(runs=1, priorities={"min": 5, "max": 5})
    for number, priority in enumerate((-50, 5, 50)):
        scene.submit(f"run-{number}", number / 10, priority=priority)
    # Nobody stops: all are equal.
    assert scene.settle() == ["run-0 begins: admitted"]
    assert scene.message("run-2").startswith("2nd of 2")
    assert scene.written["run-2"]["priority"] == 5
    assert scene.written["run-2"]["notes"] == ["priority 50 counts as 5 in default"]


def preempting() -> tuple[SimulatedScene, ObservedPod]:
    """A run of low priority fills the cluster with its pod, and stops for one of high priority."""
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    scene.submit_and_settle("low", 0.1, cpu="6")
    running = scene.pod("low", cpu=4000)
    scene.submit("high", 0.2, cpu="6", priority=10)
    assert scene.settle() == ["low stops for uid-high"]
    return scene, running


def test_a_run_of_lower_priority_stops_for_one_that_then_fits_and_goes_on_later():
    scene, running = preempting()
    assert scene.message("low") == "its running steps end, then it waits again"
    assert scene.condition("low", "Preempted") == ("True", "Preempted")
    assert scene.condition("low") == ("False", "Preempted")
    (text,) = [
        each["message"]
        for each in scene.written["low"]["conditions"]
        if each["type"] == "Preempted"
    ]
    assert text.startswith("stopped for run high of a higher priority; it waits again")
    # Its running step keeps its room; others do not take what it gives back.
    scene.submit("small", 0.3, cpu="2")
    assert scene.settle() == []
    scene.end_pod(running)
    assert sorted(scene.settle()) == ["high begins: admitted", "small begins: admitted"]
    scene.settle_after(10)
    assert scene.message("low") == "1st of 1, lacks 6 cpu of the cluster"
    scene.end("high")
    assert scene.settle() == ["low goes on: admitted"]
    assert scene.condition("low", "Preempted") == ("False", "Resumed")


def test_a_preempted_run_that_its_owner_lets_go_on_is_stopped_again():
    scene, running = preempting()
    scene.end_pod(running)
    scene.change("low", is_suspended=False)
    assert "low stops for uid-high" in scene.settle()
    assert scene.phase("low") == "Waiting"


def test_a_preempted_run_that_an_operator_lets_go_on_counts_as_admitted():
    scene, running = preempting()
    scene.end_pod(running)
    scene.say("high", priority=0)
    scene.change("low", is_suspended=False, preempted_for="")
    assert scene.settle() == []
    assert scene.phase("low") == "Admitted"
    assert scene.message("high") == "1st of 1, lacks 4 cpu of the cluster"


def test_an_ended_run_keeps_its_place_until_its_pods_have_ended():
    scene = SimulatedScene(quota=a_quota(cpu="2"))
    scene.submit_and_settle("first", cpu="2")
    pod = scene.pod("first", node_name="", phase="Pending", cpu=1000)
    scene.submit("second", 1.0, cpu="2")
    scene.end("first")
    assert scene.settle() == []
    assert scene.phase("first") == "Admitted"
    assert scene.message("first") == "it has ended, but keeps its place until its pods have"
    assert scene.message("second") == "1st of 1, lacks 1 cpu of the quota"
    scene.end_pod(pod)
    assert scene.settle() == ["second begins: admitted"]
    assert scene.phase("first") == "Finished"


def test_a_run_that_has_ended_keeps_a_place_again_for_a_pod_that_comes_later():
    scene = SimulatedScene(quota=a_quota(cpu="2"))
    scene.submit_and_settle("first", cpu="2")
    scene.end("first")
    scene.settle()
    assert scene.phase("first") == "Finished"
    admitted_at = scene.written["first"]["admittedAt"]
    scene.pass_time(60)
    pod = scene.pod("first", node_name="", phase="Pending", cpu=1000)
    scene.submit_and_settle("second", 1.0, cpu="2")
    assert scene.message("first") == "it has ended, but keeps its place until its pods have"
    assert scene.message("second") == "1st of 1, lacks 1 cpu of the quota"
    assert scene.written["first"]["admittedAt"] == admitted_at
    assert scene.queue().status.admitted == 1
    scene.end_pod(pod)
    assert scene.settle() == ["second begins: admitted"]
    assert scene.phase("first") == "Finished"
    assert "message" not in scene.written["first"]


def test_a_run_that_is_retried_waits_until_its_earlier_pods_have_ended():
    scene = SimulatedScene(quota=a_quota(cpu="2"))
    scene.submit_and_settle("run", cpu="2")
    pod = scene.pod("run", cpu=2000)
    scene.end("run")
    scene.settle()
    scene.change("run", end=None, is_held=True)
    scene.submit("second", 1.0, cpu="1")
    assert scene.settle() == []
    assert scene.message("run") == "its running steps end, then it waits again"
    scene.end_pod(pod)
    assert scene.settle() == ["run begins: admitted"]


def test_a_preempted_run_whose_request_is_missing_for_a_moment_does_not_pass_its_quota():
    scene, running = preempting()
    scene.end_pod(running)
    assert scene.settle() == ["high begins: admitted"]
    # The planner has long been idle: it has nothing new to say.
    assert scene.settle_after(300) == []
    scene.observe_request(RunKey(TEAM, "low"), None)
    assert scene.settle_after(1) == []


def test_a_preempted_run_whose_request_is_made_again_waits_on_and_is_kept_stopped():
    """Nobody knows then for which run it made room."""
    scene, running = preempting()
    scene.end_pod(running)
    assert scene.settle() == ["high begins: admitted"]
    del scene.written["low"]
    scene.show("low")
    assert scene.settle() == []
    assert (scene.phase("low"), scene.written["low"]["preemptedFor"]) == ("Waiting", "unknown")
    scene.change("low", is_suspended=False)
    assert scene.settle() == ["low stops for unknown"]
    scene.end("high")
    assert scene.settle() == ["low goes on: admitted"]


def test_a_run_that_an_earlier_version_has_stopped_goes_on_when_there_is_room():
    scene, running = preempting()
    scene.end_pod(running)
    assert scene.settle() == ["high begins: admitted"]
    del scene.written["low"]["preemptedFor"]
    scene.show("low")
    scene.lead_again()
    assert scene.settle() == []
    scene.end("high")
    assert scene.settle() == ["low goes on: admitted"]


@pytest.mark.parametrize("is_suspended", [True, False])
def test_marks_that_others_have_written_stop_nothing_and_keep_no_room(is_suspended):
    scene = SimulatedScene(quota=a_quota(cpu="3"))
    scene.submit_and_settle("forged", 0.1, cpu="2")
    scene.submit("large", 0.2, cpu="3")
    scene.settle()
    scene.change("forged", preempted_for="uid-large", is_suspended=is_suspended)
    assert scene.settle() == []
    assert scene.written["forged"]["notes"] == [NOT_STOPPED]
    scene.submit("small", 0.3, cpu="1")
    assert scene.settle() == ["small begins: admitted"]
    assert scene.phase("forged") == "Admitted"
    assert scene.message("large") == "1st of 1, lacks 3 cpu of the quota"
    assert "preemptedFor" not in scene.written["forged"]


def test_marks_that_others_wrote_before_their_run_was_stopped_do_not_say_for_whom():
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    scene.submit_and_settle("forged", 0.1, cpu="6")
    scene.submit("friend", 0.2, cpu="7")
    scene.change("forged", preempted_for="uid-friend")
    scene.settle()
    scene.submit("high", 0.3, cpu="6", priority=10)
    assert scene.settle() == ["forged stops for uid-high", "high begins: admitted"]
    assert scene.written["forged"]["preemptedFor"] == "uid-high"


@pytest.mark.parametrize("writes", range(8))
def test_a_leader_that_is_killed_while_it_stops_a_run_loses_nothing(writes):
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    scene.submit_and_settle("low", 0.1, cpu="6")
    scene.submit("high", 0.2, cpu="6", priority=10)
    while writes > 0:
        done = scene.actions()[:writes]
        for action in done:
            scene.carry_out(action)
        writes -= max(1, len(done))
    scene.lead_again()
    scene.settle()
    assert scene.by_name["low"].is_suspended
    assert scene.written["low"]["preemptedFor"] == "uid-high"
    assert (scene.phase("low"), scene.phase("high")) == ("Waiting", "Admitted")
    scene.end("high")
    assert scene.settle() == ["low goes on: admitted"]
    assert "preemptedFor" not in scene.written["low"]


def test_a_run_that_was_to_stop_for_one_that_is_gone_goes_on_unmarked():
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=8)])
    scene.submit_and_settle("low", 0.1, cpu="6")
    scene.submit("high", 0.2, cpu="6", priority=10)
    for action in scene.actions():
        scene.carry_out(action)
    assert scene.written["low"]["preemptedFor"] == "uid-high"
    assert not scene.by_name["low"].is_suspended
    scene.forget("high")
    assert scene.settle() == []
    assert scene.phase("low") == "Admitted"
    assert "preemptedFor" not in scene.written["low"]


def test_a_preempted_run_that_is_terminated_goes_on_to_its_end():
    scene, _running = preempting()
    scene.change("low", is_terminated=True)
    # Argo ends it at once, so it keeps no room.
    assert scene.settle() == ["low goes on: terminated", "high begins: admitted"]


def test_whoever_may_lets_a_run_begin_that_has_to_wait():
    scene = SimulatedScene(runs=0)
    scene.submit("run")
    assert scene.settle() == []
    scene.ask("run", ADMIT_ANNOTATION, seconds_ago=7200)
    assert scene.settle() == []
    scene.ask("run", ADMIT_ANNOTATION)
    assert scene.settle() == ["run begins: requested"]
    assert scene.condition("run") == ("True", "ByRequest")


@pytest.mark.parametrize("annotation", [ADMIT_ANNOTATION, PREEMPT_ANNOTATION])
def test_a_request_of_the_far_future_or_that_is_not_a_time_is_ignored(annotation):
    scene = SimulatedScene(runs=1)
    scene.submit("first", 0.1)
    scene.submit_and_settle("second", 0.2)
    for name in ("first", "second"):
        scene.ask(name, annotation, seconds_ago=-3600)
        assert scene.settle() == []
        scene.say(name, annotations={annotation: "now!"})
        assert scene.settle() == []


def test_a_status_that_others_have_edited_is_put_right():
    scene = SimulatedScene(runs=0)
    scene.submit_and_settle("run")
    right = dict(scene.written["run"])
    scene.written["run"] = {**right, "phase": "Admitted", "position": 7, "queue": "mine"}
    scene.show("run")
    assert scene.settle() == []
    # Since when it waits is not known any more.
    assert {**scene.written["run"], "waitingSince": right["waitingSince"]} == right


def test_a_run_that_is_tried_again_waits_from_then_on():
    scene = SimulatedScene(runs=1)
    scene.submit_and_settle("run", 0.5)
    scene.change("run", end=RunEnd.FAILED)
    scene.settle()
    assert scene.phase("run") == "Finished"
    scene.submit("other")
    assert scene.settle() == ["other begins: admitted"]
    scene.pass_time(600)
    again = scene.now
    scene.change("run", end=None, is_held=True)
    assert scene.settle() == []
    assert scene.phase("run") == "Waiting"
    assert scene.written["run"]["waitingSince"] >= time_text(again)


def test_a_run_that_ends_while_nobody_leads_is_finished_by_the_next_leader():
    """It reads RunRequests after Workflows."""
    scene = SimulatedScene()
    scene.submit("run")
    assert scene.settle() == ["run begins: admitted"]
    scene.end("run")
    scene.lead_again()
    assert scene.settle() == []
    assert scene.phase("run") == "Finished"


def test_positions_alone_are_written_in_turn():
    """A hundred runs move up by one: that is not a hundred writes at once."""
    scene = SimulatedScene(runs=1)
    for number in range(100):
        scene.submit(f"run-{number:03}", number / 1000)
    scene.settle()
    scene.pass_time(20)
    scene.end("run-000")
    begun = [each for action in scene.actions() for each in scene.carry_out(action)]
    assert "run-001 begins: admitted" in begun
    assert 0 < len(scene.actions()) <= 30
