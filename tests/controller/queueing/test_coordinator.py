"""The queue's coordinator: from messages and the time to what is to be done."""

from dataclasses import replace
from typing import Any

import pytest

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change
from tests.controller.queueing.scene import (
    TEAM,
    Scene,
    SimulatedScene,
    a_queue,
    a_quota,
    a_run,
    amounts_listed,
)

WAITS = "waits in RunQueue default"


def test_runs_are_admitted_in_the_order_of_submission_up_to_the_quota():
    scene = Scene(runs=2)
    scene.tell(a_run("third", 0.3), a_run("first", 0.1), a_run("second", 0.2))
    assert scene.runs() == [("first", "admitted"), ("second", "admitted"), ("third", WAITS)]


def test_what_was_just_tried_is_not_tried_at_once_again_but_later():
    scene = Scene(runs=0)
    scene.tell(a_run("run"))
    assert scene.runs() == [("run", WAITS)]
    assert scene.runs() == []
    scene.pass_time(5)
    assert scene.runs() == [("run", WAITS)]


def test_a_run_that_goes_on_and_is_given_the_hold_by_hand_goes_on():
    scene = Scene(runs=0)
    going_on = a_run("run", is_held=False, has_begun=True)
    scene.tell(going_on)
    assert scene.runs() == []
    scene.tell(replace(going_on, is_held=True, version="2"))
    assert scene.runs() == [("run", "has-begun")]
    scene.tell(replace(going_on, version="3"))
    assert scene.runs() == []


def test_a_run_that_is_tried_again_after_its_end_waits():
    scene = Scene(runs=0)
    ended = a_run("run", is_held=False, has_begun=True, end=RunEnd.FAILED)
    scene.tell(replace(ended, end=None), ended)
    scene.tell(replace(ended, end=None, is_held=True, version="2"))
    assert scene.runs() == [("run", WAITS)]


def test_without_its_queue_a_run_begins():
    scene = Scene(runs=0)
    scene.tell(a_run("run", held_message="waits"))
    assert scene.runs() == []
    scene.drop_queue()
    assert after_a_moment(scene) == [("run", "no-queue")]


def after_a_moment(scene: Scene) -> list[tuple[str, str]]:
    """What becomes of runs without a queue, once it could have come back."""
    assert scene.runs() == []
    scene.pass_time(5)
    return scene.runs()


def test_a_queue_that_is_replaced_frees_nobody():
    queue = a_queue(runs=0)
    scene = Scene(queue)
    scene.tell(a_run("run", held_message="waits"))
    for _ in range(3):
        # Deleted and created again, as `kubectl replace --force` does.
        scene.drop_queue()
        assert scene.runs() == []
        scene.pass_time(4)
        assert scene.runs() == []
        scene.set_queue(queue)
        assert scene.runs() == []
        scene.pass_time(60)
    assert scene.runs() == []


def test_where_namespaces_must_ask_for_it_one_that_does_not_takes_no_part():
    scene = Scene(runs=0)
    scene.coordinator.namespaces.opt_in = True
    scene.label_namespace("")
    scene.tell(a_run("run"))
    assert after_a_moment(scene) == [("run", "no-queue")]
    scene.label_namespace("true")
    scene.pass_time(5)
    assert scene.runs() == [("run", WAITS)]


def test_a_held_run_of_a_namespace_that_has_not_been_seen_yet_is_not_let_go():
    """Admission has seen it, and has held the run."""
    scene = Scene(runs=0)
    scene.coordinator.namespaces.opt_in = True
    scene.tell(a_run("run"))
    assert scene.runs() == [("run", WAITS)]


def test_runs_of_the_controllers_own_namespace_begin_and_do_not_count():
    scene = Scene()
    scene.coordinator.namespaces.own = TEAM
    scene.tell(a_run("held"), a_run("going-on", is_held=False))
    scene.runs()
    scene.pass_time(5)
    assert scene.runs() == [("held", "no-queue")]
    scene.pass_time(5)
    (status,) = scene.statuses()
    assert (status["ready"], status["waiting"], status["admitted"]) == (False, 0, 0)


def test_a_queue_of_another_name_does_not_make_its_namespace_take_part():
    scene = Scene(replace(a_queue(), key=QueueKey(TEAM, "gpu")))
    scene.tell(a_run("run"))
    assert after_a_moment(scene) == [("run", "no-queue")]


UNREAD: dict[str, Any] = {"demand": None, "problem": "it cannot be read"}


@pytest.mark.parametrize("says", ["run", "hold"])
def test_a_run_that_cannot_be_read_counts_as_a_run(says):
    scene = Scene(runs=0, onControllerDown=says)
    scene.tell(a_run("run"), **UNREAD)
    assert scene.runs() == [("run", WAITS)]
    scene.set_queue(a_queue("2", runs=1))
    assert ("run", "admitted") in scene.runs()


@pytest.mark.parametrize(
    ("unreadable", "begins"),
    [
        (None, []),
        ({"resources": []}, ["run begins: admitted"]),
        ({"resources": amounts_listed({"cpu": "2"})}, ["run begins: admitted"]),
        ({"resources": amounts_listed({"cpu": "3"})}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("readable", [None, "1"])
def test_a_run_that_cannot_be_read_whole_counts_with_what_its_queue_states(
    unreadable, readable, begins
):
    """Beside what is readable of it."""
    scene = SimulatedScene(quota=a_quota(cpu="3" if readable else "2"), unreadable=unreadable)
    scene.submit("run", **UNREAD, **({"cpu": readable} if readable else {}))
    assert scene.settle() == begins
    assert scene.settle_after(300) == []
    if unreadable is None:
        assert "spec.unreadable of its RunQueue" in scene.message("run")
        assert "it cannot be read" in scene.message("run")
        assert scene.condition("run") == ("False", "Unplannable")
    else:
        (note,) = scene.written["run"]["notes"]
        assert note == "it counts with what default states for runs like it: it cannot be read"


def test_a_run_that_cannot_be_read_counts_as_one_run_where_nothing_is_stated():
    scene = SimulatedScene(quota={"runs": 1})
    scene.submit("run", **UNREAD)
    assert scene.settle() == ["run begins: admitted"]
    (note,) = scene.written["run"]["notes"]
    assert "takes nothing, since default states no unreadable: it cannot be read" in note


def readiness(scene: Scene) -> tuple[bool, str]:
    (status,) = scene.statuses()
    (condition,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    return status["ready"], condition["reason"]


@pytest.mark.parametrize(("says", "is_ready"), [("run", False), ("hold", True)])
def test_a_queue_is_ready_while_a_planner_is_there_or_it_holds_without(says, is_ready):
    scene = Scene(onControllerDown=says)
    assert readiness(scene) == (True, "Admitting")
    scene.pass_time(20, planner=False)
    assert readiness(scene) == (is_ready, "PlannerDown")


@pytest.mark.parametrize(("default", "other"), [("run", "hold"), ("hold", "run")])
def test_without_a_planner_default_decides_on_new_runs_and_each_queue_on_its_own(default, other):
    gold = replace(a_queue(onControllerDown=other), key=QueueKey(TEAM, "gold"))
    scene = SimulatedScene(a_queue(onControllerDown=default), gold)
    scene.pass_time(20, planner=False)
    messages = {
        condition["message"].split("; ", 1)[1]
        for status in scene.statuses()
        for condition in status["conditions"]
        if condition["type"] == "Ready"
        if status["ready"] is (default == "hold")
    }
    new = "new runs wait" if default == "hold" else "new runs begin"
    old = {"run": "begin after its holdDeadline", "hold": "wait on"}
    assert messages == {
        f"{new}; runs that wait in this queue {old[default]}",
        f"{new}, as RunQueue default says for all of the namespace;"
        f" runs that wait in this queue {old[other]}",
    }
    scene.submit("in-default")
    scene.submit("in-gold", queue="gold")
    begun = {line.split()[0] for line in scene.settle()}
    assert begun == {"in-default" if default == "run" else "in-gold"}


@pytest.mark.parametrize("opt_in", [True, False])
def test_no_queue_is_ready_in_a_namespace_that_takes_no_part(opt_in):
    scene = Scene(onControllerDown="hold")
    scene.coordinator.namespaces.opt_in = opt_in
    for label, expected in {
        "false": (False, "NamespaceExcluded"),
        "": (False, "NamespaceExcluded") if opt_in else (True, "Admitting"),
        "true": (True, "Admitting"),
    }.items():
        scene.label_namespace(label)
        assert readiness(scene) == expected, label
        scene.pass_time(5)


def test_no_queue_is_ready_while_the_policy_is_paused():
    scene = Scene(onControllerDown="hold")
    paused = PlacementPolicy(spec=PlacementPolicySpec(paused=True))
    scene.coordinator.handle(POLICIES, Change(("", "default"), None, paused))
    assert readiness(scene) == (False, "Paused")


def test_a_status_is_written_once_and_counts_alone_at_most_once_a_second():
    scene = Scene()
    (status,) = scene.statuses()
    assert (status["waiting"], status["admitted"]) == (0, 0)
    scene.set_queue(a_queue("2", status))
    scene.pass_time(0.5)
    scene.tell(a_run("run", is_held=False))
    assert scene.statuses() == []
    scene.pass_time(5)
    assert scene.statuses() == [{"admitted": 1}]


def test_a_status_shows_which_version_of_the_queue_it_is_about():
    scene = Scene()
    (status,) = scene.statuses()
    scene.set_queue(replace(a_queue("2", status), generation=2))
    scene.pass_time(5)
    (edited,) = scene.statuses()
    assert {each["observedGeneration"] for each in (edited, *edited["conditions"])} == {2}


def test_who_follows_does_nothing():
    scene = Scene()
    scene.tell(a_run("run"))
    scene.coordinator.follow_election(None)
    assert scene.actions() == []


def test_a_queue_beside_which_there_is_no_default_says_that_it_holds_nobody():
    gpu = replace(a_queue(), key=QueueKey(TEAM, "gpu"))
    scene = Scene(gpu)
    assert readiness(scene) == (False, "NoDefaultQueue")
    scene.set_queue(a_queue())
    scene.pass_time(5)
    assert [each["ready"] for each in scene.statuses()] == [True, True]


def test_a_queue_whose_backend_is_missing_holds_runs_and_says_that_nobody_begins():
    scene = Scene(backend="kueue", localQueue="team")
    (status,) = scene.statuses()
    conditions = {each["type"]: each for each in status["conditions"]}
    assert (status["ready"], conditions["Ready"]["reason"]) == (True, "NotAdmitting")
    assert conditions["Ready"]["message"].endswith("see condition BackendReady")
