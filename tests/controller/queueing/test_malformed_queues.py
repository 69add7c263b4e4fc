"""RunQueues that cannot be read: whom they admit, and what they say of themselves."""

from dataclasses import replace
from typing import Any

import pytest

from kfp_placement_controller.queueing.actions import WriteQueueStatus
from tests.controller.queueing.builders import BROKEN
from tests.controller.queueing.scene import Scene, SimulatedScene, a_queue, a_run


def condition(scene: Scene, name: str) -> Any:
    return scene.queue().status.condition(name)


def test_one_that_was_never_read_admits_nobody_until_it_is_corrected():
    scene = SimulatedScene(runs=0)
    scene.submit("one", 0.1)
    scene.submit("two", 0.2)
    scene.submit("runs")
    scene.change("runs", is_held=False)
    assert scene.settle() == []
    # Another process leads, which has never read the queue as valid.
    broken = a_queue(quota=BROKEN)
    scene.drop_queue()
    scene.set_queue(broken)
    assert scene.settle() == []
    scene.lead_again()
    assert scene.settle() == []
    assert scene.settle_after(3600) == []
    waits = "waits until its RunQueue is corrected: see its condition Valid"
    assert scene.message("two") == waits
    valid = condition(scene, "Valid")
    assert valid.status == "False"
    assert valid.message.startswith("nobody is admitted; correct the queue: RunQueue 'default'")
    scene.set_queue(a_queue("99", runs=2))
    assert scene.settle() == ["one begins: admitted"]


def test_of_one_that_was_read_the_last_valid_rules_hold():
    scene = SimulatedScene(runs=1)
    broken = a_queue("9", quota=BROKEN)
    for _ in range(2):
        scene.set_queue(broken)
    scene.submit("one", 0.1)
    scene.submit("two", 0.2)
    assert scene.settle() == ["one begins: admitted"]
    valid = condition(scene, "Valid")
    assert valid.reason == "Misconfigured"
    assert valid.message.startswith("the last valid version holds: RunQueue 'default'")


def test_one_of_a_backend_that_a_newer_version_knows_is_malformed():
    scene = Scene(backend="future")
    assert scene.queue().problem == "backend 'future' is not one that this version knows"
    scene.tell(a_run("run"))
    assert scene.runs() == [("run", "waits in RunQueue default")]


@pytest.mark.parametrize("quota", [BROKEN, {"runs": 0}])
def test_with_a_dead_planner_its_runs_begin_as_those_of_any_other(quota):
    scene = Scene(quota=quota, holdDeadline="30s")
    scene.tell(a_run("run", held_message="waits"))
    # A Lease is stale after 15 s, and then it must have been so for 30 s.
    scene.pass_time(43, planner=False)
    assert scene.runs() == []
    scene.pass_time(5, planner=False)
    assert scene.runs() == [("run", "planner-down")]
    holding = Scene(quota=quota, onControllerDown="hold")
    holding.tell(a_run("run", held_message="waits"))
    holding.pass_time(1e6, planner=False)
    assert holding.runs() == []


def test_its_status_is_written_once_and_keeps_the_time_of_its_conditions():
    scene = SimulatedScene(runs=1)

    def writes() -> int:
        """How often the status of the queue is written in 20 seconds."""
        count = 0
        for _ in range(100):
            for action in scene.actions():
                count += isinstance(action, WriteQueueStatus)
                assert scene.carry_out(action) == []
            scene.renew()
        return count

    assert writes() == 1
    broken = a_queue("99", quota=BROKEN)
    scene.set_queue(replace(broken, status=scene.queue().status))
    assert writes() == 1
    ready, valid = (condition(scene, each) for each in ("Ready", "Valid"))
    assert ready.last_transition_time < valid.last_transition_time
    assert scene.queue().status.ready is True
