"""What follows from Kueue's objects as the API server prints them; Kueue itself is not needed."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import yaml

from kfp_placement_controller.kinds import WORKLOADS
from kfp_placement_controller.queueing.kueue import writes
from kfp_placement_controller.queueing.kueue.actions import (
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    PatchWorkload,
)
from kfp_placement_controller.queueing.kueue.applied_statuses import without_admission
from kfp_placement_controller.queueing.steering import RETRY_SECONDS
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.keys import PREEMPT_ANNOTATION
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.responses import typed
from tests.controller.queueing.builders import START
from tests.controller.queueing.kueue_scene import ADMISSION, ADMITTED, RESERVED, KueueScene
from tests.controller.queueing.scene import a_queue

LABELS = [{"labels": [{"key": "pool", "value": "large"}]}]


@pytest.fixture
def scene():
    made = KueueScene()
    made.submit_and_settle("run", cpu="3")
    return made


def test_the_workload_of_a_run(scene, golden):
    (created,) = [each for each in scene.asked if isinstance(each, CreateWorkload)]
    golden(yaml.safe_dump(typed(WORKLOADS, created.body)))


def test_a_run_waits_for_what_kueue_says(scene):
    waits = {"type": "QuotaReserved", "status": "False", "message": "insufficient quota for cpu"}
    scene.workloads["run"]["status"] = {"conditions": [waits]}
    scene.tell_kueue()
    assert scene.settle_after(10) == []
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


def test_an_evicted_run_stops_and_gives_its_quota_back_when_its_pods_are_gone(scene):
    scene.admit("run")
    pod = scene.pod("run", cpu=3000)
    evicted = {**ADMITTED, "Evicted": "preempted for another"}
    assert scene.status("run", evicted, admission=ADMISSION) == ["run stops for kueue"]
    assert ClearAdmission not in scene.kinds_asked()
    scene.end_pod(pod)
    scene.settle()
    assert ClearAdmission in scene.kinds_asked()


def test_steps_that_have_ended_give_units_back(scene):
    scene.admit("run")
    scene.say("run", cpu="1")
    scene.settle()
    assert scene.statuses_asked() == [{"reclaimablePods": [{"name": "cpu", "count": 100}]}]


@pytest.mark.parametrize(("end", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed")])
def test_a_run_that_has_ended_is_finished(scene, end, reason):
    scene.admit("run")
    scene.change("run", end=RunEnd(end))
    scene.settle()
    assert scene.asked == []
    scene.say("run", end=end, demand={})
    scene.settle()
    (asked,) = scene.statuses_asked()
    assert [(each["type"], each["reason"]) for each in asked["conditions"]] == [
        ("Finished", reason)
    ]


def test_a_waiting_run_that_needs_something_else_asks_for_that(scene):
    scene.say("run", cpu="2", priority=7)
    scene.settle()
    (patched,) = [each for each in scene.asked if isinstance(each, PatchWorkload)]
    # An hour after its submission it has grown by one.
    assert patched.patch["spec"]["priority"] == 8
    counts = {each["name"]: each["count"] for each in patched.patch["spec"]["podSets"]}
    assert counts == {"run": 1, "cpu": 200}


def test_when_its_queue_is_not_of_kueue_any_more_a_run_asks_for_nothing_there(scene):
    scene.asked.clear()
    scene.set_queue(a_queue("2", runs=0))
    scene.settle()
    assert scene.kinds_asked() == [DeleteWorkload]


def test_when_kueue_is_gone_nobody_new_begins_and_the_queue_says_so(scene):
    scene.admit("run")
    scene.kueue.objects.problem = "Kueue is not installed"
    scene.coordinator.decide_soon()
    scene.submit("new", 0.5, cpu="1")
    assert scene.settle() == []
    assert scene.message("new") == "1st of 1, waits for Kueue: Kueue is not installed"
    condition = scene.queue().status.condition("BackendReady")
    assert condition is not None
    assert condition.message == "nobody new begins: Kueue is not installed"


def test_a_cluster_queue_with_quota_for_pods_is_refused():
    scene = KueueScene(resources=("cpu", "pods"))
    scene.submit_and_settle("run", cpu="3")
    assert scene.workloads == {}
    assert "has quota for pods" in scene.message("run")


REFUSED = {
    "conditions": [{"type": "QuotaReserved", "status": "False"}],
    "admissionChecks": [
        {
            "name": "ours",
            "state": "Pending",
            "message": "Reset to Pending after eviction. Previously: Rejected",
        }
    ],
}
"""Status that Kueue gives a Workload whose check was rejected, once its quota is free."""


@pytest.fixture
def refused(scene):
    """A run that fits no node of its flavor, and whose Workload is inactive since then."""
    checks = [{"name": "ours", "state": "Pending"}]
    scene.status("run", RESERVED, admission=ADMISSION, admissionChecks=checks)
    scene.say("run", plannedNodes=LABELS, unschedulable="step a: no node has 3 cpu")
    scene.settle()
    (asked,) = scene.statuses_asked()
    assert [each["state"] for each in asked["admissionChecks"]] == ["Rejected"]
    scene.workloads["run"]["spec"]["active"] = False
    scene.workloads["run"]["status"] = REFUSED
    scene.asked.clear()
    scene.tell_kueue()
    scene.settle_after(10)
    return scene


def test_a_run_that_was_refused_is_planned_for_the_same_nodes_and_says_why_it_waits(refused):
    refused.pass_time(3600)
    assert refused.settle() == []
    assert refused.asked == []
    assert refused.written["run"]["assignedNodes"] == LABELS
    assert refused.message("run") == (
        "1st of 1, has a step that fits no node: step a: no node has 3 cpu"
    )


def test_a_run_that_was_refused_is_tried_again_once_its_steps_fit_these_nodes(refused):
    refused.say("run", unschedulable="")
    refused.settle()
    assert refused.kinds_asked() == [DeleteWorkload]
    refused.workloads.clear()
    refused.tell_kueue()
    refused.settle()
    assert type(refused.asked[-1]) is CreateWorkload
    assert refused.written["run"]["assignedNodes"] == []


def test_a_run_that_was_refused_is_tried_again_once_its_flavor_is_of_other_nodes(refused):
    refused.labels = {"pool": "larger"}
    refused.tell_kueue()
    refused.settle()
    assert refused.kinds_asked() == [DeleteWorkload]


def test_a_run_whose_workload_somebody_has_deactivated_is_left_alone(scene):
    scene.workloads["run"]["spec"]["active"] = False
    scene.asked.clear()
    scene.tell_kueue()
    scene.settle_after(10)
    assert scene.asked == []
    assert "is not active" in scene.message("run")


@pytest.mark.parametrize(
    ("reason", "requeued"),
    [
        ("Preempted", ("True", "Preempted")),
        ("Deactivated", ("False", "Deactivated")),
        ("DeactivatedDueToAdmissionCheck", ("False", "Deactivated")),
        ("PodsReadyTimeout", ("False", "PodsReadyTimeout")),
    ],
)
def test_an_evicted_workload_gives_back_its_admission_and_waits_again_as_kueue_looks_for_it(
    reason, requeued
):
    """One that was deactivated comes back when it is active again, whatever had caused it."""
    conditions = [
        {"type": "Evicted", "status": "True", "reason": reason},
        {"type": "QuotaReserved", "status": "True"},
        {"type": "Admitted", "status": "True"},
    ]
    raw = {"status": {"admission": ADMISSION, "conditions": conditions}}
    cleared = without_admission(raw, START)
    assert cleared is not None
    assert "admission" not in cleared["status"]
    by_type = {each["type"]: each for each in cleared["status"]["conditions"]}
    assert (by_type["Requeued"]["status"], by_type["Requeued"]["reason"]) == requeued
    statuses = [by_type[each]["status"] for each in ("Evicted", "QuotaReserved", "Admitted")]
    assert statuses == ["True", "False", "False"]
    assert without_admission({"status": {"conditions": conditions[1:]}}, START) is None
    assert without_admission({}, START) is None


@pytest.mark.parametrize("requests", [{}, {"cpu": "0"}, {"cpu": "0", "kfp-placement.dev/runs": 0}])
def test_a_run_that_requests_nothing_begins_and_stops_nobody(requests):
    """Where the ClusterQueue does not count runs, its podSet is empty; others may write zeros."""
    scene = KueueScene(resources=("cpu",))
    scene.submit_and_settle("run", pods="1")
    (pod_set,) = scene.workloads["run"]["spec"]["podSets"]
    resources = pod_set["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {}}
    resources["requests"] = requests
    assert scene.admit("run") == ["run begins: admitted"]
    assert scene.statuses_asked() == []


def test_a_defect_in_deciding_about_one_run_stops_no_other(scene, monkeypatch, caplog):
    scene.submit("broken", 0.1, cpu="1")
    scene.submit("waits", 0.2, cpu="1")
    decide = writes.for_run

    def for_run(run, *others, **options):
        if run.requested.key.name == "broken":
            raise StopIteration
        return decide(run, *others, **options)

    monkeypatch.setattr(writes, "for_run", for_run)
    for _ in range(5):
        scene.settle_after(11)
    assert "broken" not in scene.workloads
    message = "2nd of 3, waits for Kueue: a defect of the queue: StopIteration"
    assert scene.message("broken") == message
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1
    assert scene.admit("run") == ["run begins: admitted"]
    assert scene.admit("waits") == ["waits begins: admitted"]


def test_the_priority_of_a_workload_grows_at_most_once_a_minute():
    scene = KueueScene(agingPerHour=1_000_000)
    for number in range(20):
        scene.submit(f"run-{number}", number / 1000, cpu="1")
    scene.settle()
    scene.asked.clear()
    ended = scene.now.timestamp() + 59
    while scene.now.timestamp() < ended:
        for action in scene.actions():
            scene.carry_out(action)
            if isinstance(action, PatchWorkload):
                scene.workloads[action.run.name]["spec"] |= action.patch["spec"]
                scene.tell_kueue()
    patched = Counter(each.run for each in scene.asked if isinstance(each, PatchWorkload))
    assert set(patched.values()) == {1}
    priorities = [scene.workloads[f"run-{number}"]["spec"]["priority"] for number in range(20)]
    assert priorities == sorted(priorities, reverse=True)


class StoredWorkloads(KueueScene):
    """Workloads are created and deleted as asked, by an API server with a clock of its own."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead
        self.made = 0
        super().__init__()

    def carry_out(self, action: Any) -> list[str]:
        match action:
            case CreateWorkload():
                outcomes = super().carry_out(action)
                self.made += 1
                metadata = self.workloads[action.run.name]["metadata"]
                metadata["uid"] = f"workload-{self.made}"
                metadata["creationTimestamp"] = time_text(self.now - self.ahead)
                self.tell_kueue()
                return outcomes
            case DeleteWorkload():
                self.asked.append(action)
                self.workloads.pop(action.run.name, None)
                self.tell_kueue()
                return []
            case _:
                return super().carry_out(action)


@pytest.mark.parametrize("minutes", [-60, -1, 0, 1, 60])
def test_a_run_that_was_stopped_by_request_gets_one_new_workload_whatever_clocks_say(minutes):
    scene = StoredWorkloads(timedelta(minutes=minutes))
    scene.submit_and_settle("run", cpu="1")
    assert scene.admit("run") == ["run begins: admitted"]
    pod = scene.pod("run", cpu=100)
    scene.ask("run", PREEMPT_ANNOTATION)
    assert scene.settle() == ["run stops for request"]
    scene.end_pod(pod)
    for _ in range(60):
        scene.settle_after(5)
    deleted = [each for each in scene.asked if isinstance(each, DeleteWorkload)]
    # If the API server's clock is ahead of ours, the old one looks new, and stays.
    assert (len(deleted), scene.made) == ((1, 2) if minutes >= 0 else (0, 1))


def test_while_a_queue_is_replaced_runs_that_go_on_keep_their_workloads(scene):
    scene.admit("run")
    scene.asked.clear()
    queue = scene.queue()
    scene.drop_queue()
    for _ in range(4):
        scene.settle_after(1)
    scene.set_queue(queue)
    scene.settle()
    assert DeleteWorkload not in scene.kinds_asked()
    scene.drop_queue()
    scene.settle_after(1)
    scene.pass_time(6)
    scene.settle()
    assert scene.kinds_asked() == [DeleteWorkload]


def test_a_clock_that_is_set_back_holds_up_no_write(scene):
    # Somebody deletes the Workload a moment after it was made.
    scene.workloads.clear()
    scene.asked.clear()
    scene.tell_kueue()
    scene.set_clock(timedelta(hours=-1))
    scene.settle_after(RETRY_SECONDS)
    assert scene.kinds_asked() == [CreateWorkload]
