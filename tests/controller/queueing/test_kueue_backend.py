"""What follows from Kueue's objects as the API server prints them; Kueue itself is not needed."""

from typing import Any

import pytest
import yaml

from kfp_placement_controller.observed.kueue_quotas import (
    KueueListing,
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.kueue_actions import (
    ApplyStatus,
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    KueueAction,
    PatchWorkload,
)
from kfp_placement_controller.queueing.kueue_workloads import without_admission
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.model.keys import QueueKey
from tests.controller.queueing.scene import TEAM, Played, a_node, a_queue, a_run, demand

LABELS = [{"labels": [{"key": "pool", "value": "large"}]}]
RESERVED = {"QuotaReserved": "quota is reserved"}
ADMITTED = {**RESERVED, "Admitted": "the workload is admitted"}


class KueueScene(Played):
    """Played runs of a queue of Kueue; its Workloads say what a test says."""

    def __init__(self, resources=("cpu", "kfp-placement.dev/runs")) -> None:
        self.asked: list[Any] = []
        self.workloads: dict[str, dict[str, Any]] = {}
        self.resources = resources
        super().__init__(a_queue(backend="kueue", localQueue="team"), nodes=[a_node()])
        self.tell_kueue()

    def tell_kueue(self) -> None:
        flavors = [{"name": "large", "resources": [{"name": each} for each in self.resources]}]
        local = {
            "metadata": {"name": "team", "namespace": TEAM},
            "status": {"flavorsReservation": flavors},
        }
        spec = {"controllerName": "kfp-placement.dev/planner"}
        check = observe_check({"metadata": {"name": "ours"}, "spec": spec})
        assert check is not None
        flavor = {"metadata": {"name": "large"}, "spec": {"nodeLabels": {"pool": "large"}}}
        workloads = filter(None, map(observe_workload, self.workloads.values()))
        flavors_known = {"large": observe_flavor(flavor)}
        local_queues = [observe_local_queue(local)]
        listing = KueueListing([*workloads], local_queues, flavors_known, [check])
        self.coordinator.kueue_changed(lambda objects: objects.listed(listing))

    def carry_out(self, action: Any) -> list[str]:
        if not isinstance(action, KueueAction):
            return super().carry_out(action)
        self.asked.append(action)
        if isinstance(action, CreateWorkload):
            body = dict(action.body)
            body["metadata"] = {**body["metadata"], "uid": "w-1", "resourceVersion": "1"}
            self.workloads[action.run.name] = body
            self.tell_kueue()
        return []

    def status(self, run: str, conditions: dict[str, str], **fields: Any) -> list[str]:
        """Kueue says this of a Workload; returns what happens to runs."""
        listed = [
            {"type": name, "status": "True", "reason": name, "message": message}
            for name, message in conditions.items()
        ]
        self.workloads[run]["status"] = {"conditions": listed, **fields}
        self.asked.clear()
        self.tell_kueue()
        return self.settle()

    def statuses_asked(self) -> list[dict[str, Any]]:
        return [
            dict(each.body["status"])
            for each in self.asked
            if isinstance(each, ApplyStatus) and each.kind.plural == "workloads"
        ]


ADMISSION = {"podSetAssignments": [{"name": "cpu", "flavors": {"cpu": "large"}}]}


@pytest.fixture
def scene() -> KueueScene:
    made = KueueScene()
    made.submit(a_run("run"), demand=demand(cpu="3"))
    made.settle()
    return made


def test_the_workload_of_a_run(scene, golden):
    (created,) = [each for each in scene.asked if isinstance(each, CreateWorkload)]
    golden(yaml.safe_dump(dict(created.body)))


def test_a_run_waits_for_what_kueue_says(scene):
    waits = {"type": "QuotaReserved", "status": "False", "message": "insufficient quota for cpu"}
    scene.workloads["run"]["status"] = {"conditions": [waits]}
    scene.tell_kueue()
    scene.pass_time(10)
    assert scene.settle() == []
    assert scene.message("run") == "1st of 1, waits for Kueue: insufficient quota for cpu"


def test_the_check_is_answered_once_the_run_is_planned_for_the_nodes_of_its_flavor(scene):
    checks = [{"name": "ours", "state": "Pending"}, {"name": "others", "state": "Pending"}]
    assert scene.status("run", RESERVED, admission=ADMISSION, admissionChecks=checks) == []
    assert scene.statuses_asked() == []
    assert scene.written["run"]["assignedNodes"] == LABELS
    scene.say("run", plannedNodes=LABELS)
    assert scene.settle() == []
    (asked,) = scene.statuses_asked()
    assert [(each["name"], each["state"]) for each in asked["admissionChecks"]] == [
        ("ours", "Ready")
    ]


def test_a_run_begins_when_it_is_admitted_and_not_before(scene):
    assert scene.status("run", RESERVED, admission=ADMISSION) == []
    assert scene.status("run", ADMITTED, admission=ADMISSION) == ["run begins: admitted"]


def test_an_evicted_run_stops_and_gives_its_quota_back_when_its_pods_are_gone(scene):
    scene.status("run", ADMITTED, admission=ADMISSION)
    pod = scene.pod("run", cpu=3000)
    evicted = {**ADMITTED, "Evicted": "preempted for another"}
    assert scene.status("run", evicted, admission=ADMISSION) == ["run stops for kueue"]
    assert not [each for each in scene.asked if isinstance(each, ClearAdmission)]
    scene.end_pod(pod)
    scene.settle()
    assert [type(each) for each in scene.asked if isinstance(each, ClearAdmission)] == [
        ClearAdmission
    ]


def test_steps_that_have_ended_give_units_back(scene):
    scene.status("run", ADMITTED, admission=ADMISSION)
    scene.say("run", demand=demand(cpu="1"))
    scene.settle()
    assert scene.statuses_asked() == [{"reclaimablePods": [{"name": "cpu", "count": 100}]}]


@pytest.mark.parametrize(("end", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed")])
def test_a_run_that_has_ended_is_finished(scene, end, reason):
    scene.status("run", ADMITTED, admission=ADMISSION)
    scene.change(scene.known["run"], end=RunEnd(end))
    scene.say("run", end=end, demand={})
    scene.settle()
    (asked,) = scene.statuses_asked()
    assert [(each["type"], each["reason"]) for each in asked["conditions"]] == [
        ("Finished", reason)
    ]


def test_a_waiting_run_that_needs_something_else_asks_for_that(scene):
    scene.say("run", demand=demand(cpu="2"), priority=7)
    scene.settle()
    (patched,) = [each for each in scene.asked if isinstance(each, PatchWorkload)]
    # An hour after its submission it has grown by one.
    assert patched.patch["spec"]["priority"] == 8
    counts = {each["name"]: each["count"] for each in patched.patch["spec"]["podSets"]}
    assert counts == {"run": 1, "cpu": 200}


def test_when_its_queue_is_not_of_kueue_any_more_a_run_asks_for_nothing_there(scene):
    scene.asked.clear()
    scene.coordinator.queue_changed(QueueKey(TEAM, "default"), a_queue("2", quota={"runs": 0}))
    scene.settle()
    assert [type(each) for each in scene.asked] == [DeleteWorkload]


def test_when_kueue_is_gone_nobody_new_begins_and_the_queue_says_so(scene):
    scene.status("run", ADMITTED, admission=ADMISSION)
    scene.coordinator.kueue_changed(lambda objects: objects.not_listed("Kueue is not installed"))
    scene.submit(a_run("new", 0.5), demand=demand(cpu="1"))
    assert scene.settle() == []
    assert scene.message("new") == "1st of 1, waits for Kueue: Kueue is not installed"
    (queue,) = scene.coordinator.queues
    condition = queue.status.condition("BackendReady")
    assert condition is not None
    assert condition.message == "nobody new begins: Kueue is not installed"


def test_a_cluster_queue_with_quota_for_pods_is_refused():
    scene = KueueScene(resources=("cpu", "pods"))
    scene.submit(a_run("run"), demand=demand(cpu="3"))
    scene.settle()
    assert scene.workloads == {}
    assert "has quota for pods" in scene.message("run")


@pytest.mark.parametrize(
    "broken",
    [
        {"status": {"conditions": "x", "admission": [], "reclaimablePods": {}}},
        {"status": {"conditions": [1, {"type": 2}], "admissionChecks": [None, {"name": []}]}},
        {"spec": {"podSets": [{"name": 1}], "priority": "high", "queueName": {}}},
        {"spec": {"podSets": "x", "active": "no"}},
    ],
)
def test_whatever_a_workload_says_the_decision_is_made(scene, broken):
    scene.workloads["run"] |= broken
    scene.tell_kueue()
    scene.submit(a_run("other", 0.5), demand=demand(cpu="1"))
    scene.settle()
    assert scene.written["other"]["phase"] == "Waiting"


def test_an_admission_is_cleared_only_of_a_workload_that_was_evicted(scene):
    evicted = [
        {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "for another"},
        {"type": "QuotaReserved", "status": "True"},
        {"type": "Admitted", "status": "True"},
    ]
    raw = {"status": {"admission": ADMISSION, "conditions": evicted}}
    cleared = without_admission(raw, scene.now)
    assert cleared is not None
    assert "admission" not in cleared["status"]
    found = {each["type"]: each["status"] for each in cleared["status"]["conditions"]}
    assert found == {
        "Evicted": "True",
        "QuotaReserved": "False",
        "Admitted": "False",
        "Requeued": "True",
    }
    assert without_admission({"status": {"conditions": evicted[1:]}}, scene.now) is None
    assert without_admission({}, scene.now) is None
