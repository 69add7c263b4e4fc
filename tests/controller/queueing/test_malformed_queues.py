"""RunQueues that cannot be read: whom they admit, and what they say of themselves."""

import copy
import itertools
from dataclasses import replace
from typing import Any

from kfp_placement_controller.observed.run_queues import ObservedQueue, observe_queue
from kfp_placement_controller.queueing.actions import ReleaseHeld, WriteQueueStatus
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from tests.controller.queueing.scene import TEAM, Played, Scene, a_node, a_queue, a_run, demand

BROKEN = {"resources": [{"name": "cpu", "amount": "1e99"}]}


def led_by_another(scene: Played, queue: ObservedQueue) -> None:
    """Another process leads, which has never read the queue as valid."""
    scene.lead_again()
    scene.coordinator = QueueCoordinator(DEFAULT_SOURCES, runs=scene.coordinator.runs)
    scene.coordinator.lead(2, [queue], [*scene.coordinator.runs.requests()])
    scene.place(*scene.nodes)
    scene.renew()


def condition(queue: ObservedQueue | None, name: str) -> tuple[str, str]:
    assert queue is not None
    found = queue.status.condition(name)
    assert found is not None
    return found.status, found.message


def test_one_that_was_never_read_admits_nobody_until_it_is_corrected():
    scene = Played(a_queue(quota={"runs": 0}), nodes=[a_node()])
    scene.submit(a_run("one", 0.1), demand=demand(cpu="1"))
    scene.submit(a_run("two", 0.2), demand=demand(cpu="1"))
    scene.submit(a_run("runs", 0.0, is_held=False), demand=demand(cpu="1"))
    assert scene.settle() == []
    broken = a_queue(quota=BROKEN)
    led_by_another(scene, broken)
    assert scene.settle() == []
    scene.pass_time(3600)
    assert scene.settle() == []
    waits = "waits until its RunQueue is corrected: see its condition Valid"
    assert scene.message("two") == waits
    status, message = condition(scene.coordinator.queues.get(broken.key), "Valid")
    assert status == "False"
    assert message.startswith("nobody is admitted; correct the queue: RunQueue 'default'")
    corrected = replace(a_queue(quota={"runs": 2}), version="99")
    scene.coordinator.queue_changed(broken.key, corrected)
    assert scene.settle() == ["one begins: admitted"]


def test_of_one_that_was_read_the_last_valid_rules_hold():
    scene = Played(a_queue(quota={"runs": 1}), nodes=[a_node()])
    broken = a_queue("9", quota=BROKEN)
    for _ in range(2):
        scene.coordinator.queue_changed(broken.key, broken)
    scene.submit(a_run("one", 0.1), demand=demand(cpu="1"))
    scene.submit(a_run("two", 0.2), demand=demand(cpu="1"))
    assert scene.settle() == ["one begins: admitted"]
    _, message = condition(scene.coordinator.queues.get(broken.key), "Valid")
    assert message.startswith("the last valid version holds: RunQueue 'default'")


def test_one_that_comes_back_malformed_has_no_valid_rules():
    scene = Played(a_queue(), nodes=[a_node()])
    broken = a_queue("9", quota=BROKEN)
    scene.coordinator.queue_changed(broken.key, None)
    scene.coordinator.queue_changed(broken.key, broken)
    scene.submit(a_run("one", 0.1), demand=demand(cpu="1"))
    assert scene.settle() == []


def test_with_a_dead_planner_its_runs_begin_as_those_of_any_other():
    scene = Scene(a_queue(quota=BROKEN, holdDeadline="30s"))
    scene.tell(a_run("run", held_message="waits"))
    scene.pass_time(43, planner=False)
    assert scene.runs() == []
    scene.pass_time(5, planner=False)
    assert scene.runs() == [("run", "planner-down")]
    holding = Scene(a_queue(quota=BROKEN, onControllerDown="hold"))
    holding.tell(a_run("run", held_message="waits"))
    holding.pass_time(1e6, planner=False)
    assert holding.runs() == []


class StoredQueue:
    """A RunQueue as an API server stores it, beside a coordinator that writes its status."""

    def __init__(self, **spec: Any) -> None:
        metadata = {"name": "default", "namespace": TEAM, "resourceVersion": "1", "generation": 1}
        self.raw: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": {}}
        self.scene = Scene(observe_queue(self.raw))
        self.versions = itertools.count(2)

    def change(self, **parts: Any) -> None:
        metadata = {**self.raw["metadata"], "resourceVersion": str(next(self.versions))}
        self.raw = {**copy.deepcopy(self.raw), **parts, "metadata": metadata}
        queue = observe_queue(self.raw)
        self.scene.coordinator.queue_changed(queue.key, queue)

    def writes(self, seconds: int) -> int:
        """How often its status is written in a time."""
        count = 0
        for _ in range(5 * seconds):
            for action in self.scene.actions():
                assert not isinstance(action, ReleaseHeld)
                if isinstance(action, WriteQueueStatus):
                    count += 1
                    self.change(status={**self.raw["status"], **action.fields})
            self.scene.renew()
        return count


def test_its_status_is_written_once_and_keeps_the_time_of_its_conditions():
    queue = StoredQueue(quota={"runs": 1})
    assert queue.writes(20) == 1
    queue.change(spec={"quota": BROKEN})
    assert queue.writes(20) == 1
    conditions = {each["type"]: each for each in queue.raw["status"]["conditions"]}
    assert conditions["Ready"]["lastTransitionTime"] < conditions["Valid"]["lastTransitionTime"]
    assert queue.raw["status"]["ready"] is True
