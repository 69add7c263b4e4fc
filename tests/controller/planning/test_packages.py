"""Runs of KFP 3: planned with their package as soon as it is there, by their outline until then."""

import json
from collections.abc import Callable

import orjson
import pytest
from typing_extensions import override

from kfp_placement_controller.packages.actions import AskPackage, PackageAnswer
from kfp_placement_controller.packages.run_packages import FIRST_PLAN_WAIT_SECONDS
from kfp_placement_controller.planning.actions import Action
from kfp_placement_engine.contract.keys import RUN_ID_LABEL, SCHEDULER_LABEL
from kfp_placement_engine.contract.placement import ConditionReason, ConditionType
from tests.controller.planning.builders import START
from tests.controller.planning.simulated_cluster import Json, SimulatedCluster, a_coordinator
from tests.controller.planning.test_run_requests import HELD, QueuedCluster
from tests.controller.planning.test_scenarios import a_chain
from tests.support.defects import fail
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.kubernetes import node_object
from tests.support.packages import a_package, a_task
from tests.support.placements import planned_nodes

RUN_ID = "0b5f2d0c-7a51-4a39-9d0c-6f1a6f9b1c11"
READ, UNREACHABLE = ConditionReason.READ, ConditionReason.UNREACHABLE
Reply = Callable[[AskPackage], PackageAnswer | None]


def documents(*names: str) -> list[Json]:
    """Steps for which only the large node has room, one at a time."""
    tasks = {name: a_task() for name in names}
    marks = {"exec-work": {"podMetadata": {"labels": {SCHEDULER_LABEL: "kfp-placement"}}}}
    container = {"resources": {"cpuRequest": 3.0}}
    return a_package(tasks, container=container, kubernetes=marks)


PACKAGE = documents("first", "second")


def a_workflow(name: str = "run", package: list[Json] = PACKAGE) -> Json:
    """The Workflow of a run, which says neither what its steps need nor what they are."""
    workflow = emit_kfp3_workflow(*package)
    workflow["metadata"] |= {"name": name, "labels": {RUN_ID_LABEL: RUN_ID}}
    return dict(workflow)


def read(package: list[Json] = PACKAGE) -> Reply:
    """KFP's API has this package."""
    return lambda question: PackageAnswer(question, READ, orjson.dumps(package[0]))


def dead(question: AskPackage) -> PackageAnswer:
    """KFP's API cannot be reached."""
    return PackageAnswer(question, UNREACHABLE, why="connection refused")


def silent(_question: AskPackage) -> None:
    """KFP's API takes its time."""


class KfpCluster(SimulatedCluster):
    """A cluster beside KFP's API.

    Attributes:
        asked: questions so far, each with the seconds since the start.
        reply: what the API says at once; None = it still works on that.
    """

    def __init__(self, reply: Reply, *, is_installed: bool = True) -> None:
        self.asked: list[tuple[float, AskPackage]] = []
        self.reply = reply
        small, large = (node_object(name, allocatable=room) for name, room in ROOMS.items())
        super().__init__(small, large, coordinator=a_coordinator(kfp_api=is_installed))
        self.kubelets.packages["run"] = PACKAGE

    @override
    def carry_out(self, action: Action) -> None:
        if isinstance(action, AskPackage):
            self.asked.append((self.seconds, action))
            answer = self.reply(action)
            if answer is not None:
                self.coordinator.package_answered(answer, self.now)
        super().carry_out(action)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return (self.now - START).total_seconds()

    def answer(self, reply: Reply) -> None:
        """KFP's API answers the last question now."""
        answer = reply(self.asked[-1][1])
        assert answer is not None
        self.coordinator.package_answered(answer, self.now)

    def submit_run(self, name: str = "run") -> None:
        """A run of KFP 3 begins."""
        self.submit(a_workflow(name))

    def until_planned(self, run: str = "run") -> float:
        """Let time pass until the plan is written; returns how many seconds that took."""
        began = self.seconds
        self.run(lambda: ("team", run) in self.placements)
        return self.seconds - began

    def spec_read(self, run: str = "run") -> tuple[str, str, str]:
        """Status, reason and message of the condition."""
        condition = self.placement(run).status.condition(ConditionType.SPEC_READ)
        return condition.status, condition.reason, condition.message


ROOMS = {
    "small": {"cpu": "2", "memory": "8Gi", "pods": "110"},
    "large": {"cpu": "4", "memory": "32Gi", "pods": "110"},
}
LARGE = {"first": "large", "second": "large"}


def test_a_package_in_time_is_in_the_first_plan():
    cluster = KfpCluster(read())
    cluster.submit_run()
    assert cluster.until_planned() < 0.5
    assert cluster.spec_read() == ("True", "Read", "")
    assert cluster.placement("run").spec.revision == 1
    assert planned_nodes(cluster.placement("run")) == LARGE
    cluster.run()
    assert cluster.phase("run") == "Succeeded"
    assert [question.package_id for _, question in cluster.asked] == [RUN_ID]


def is_one_after_the_other(cluster: KfpCluster) -> bool:
    """Whether the plan knows that there is room for one step at a time."""
    first, second = sorted(cluster.placement("run").spec.steps, key=lambda row: row[2])
    return bool(first[2] < second[2])


def test_a_slow_api_delays_no_plan_for_longer_than_three_seconds():
    cluster = KfpCluster(silent)
    cluster.submit_run()
    waited = cluster.until_planned()
    assert FIRST_PLAN_WAIT_SECONDS <= waited <= FIRST_PLAN_WAIT_SECONDS + 0.1
    assert cluster.spec_read()[:2] == ("False", "PendingEvaluation")
    assert cluster.tracked("run").reading.graph.is_outline
    assert not is_one_after_the_other(cluster)
    cluster.answer(read())
    cluster.look()
    assert cluster.spec_read() == ("True", "Read", "")
    cluster.run(lambda: is_one_after_the_other(cluster))
    assert planned_nodes(cluster.placement("run")) == LARGE
    assert len(cluster.asked) == 1


def test_a_dead_api_delays_no_plan_and_is_asked_again():
    cluster, longer = KfpCluster(dead), documents(*"abcdef")
    cluster.kubelets.packages["run"] = longer
    cluster.submit(a_workflow(package=longer))
    assert cluster.until_planned() < 0.5
    status, reason, message = cluster.spec_read()
    assert (status, reason) == ("False", "Unreachable")
    assert "connection refused; compare" in message
    cluster.reply = read(longer)
    cluster.run(lambda: cluster.spec_read()[0] == "True")
    assert len(cluster.asked) == 2


def test_without_the_feature_nothing_is_asked_and_the_outline_is_planned_at_once():
    cluster = KfpCluster(read(), is_installed=False)
    cluster.submit_run()
    assert cluster.until_planned() < 0.1
    assert cluster.spec_read()[:2] == ("False", "NotInstalled")
    cluster.run()
    assert cluster.asked == []
    assert cluster.phase("run") == "Succeeded"


def test_the_package_of_another_pipeline_is_not_used():
    cluster = KfpCluster(read(documents("first", "another")))
    cluster.submit_run()
    cluster.until_planned()
    status, reason, message = cluster.spec_read()
    assert (status, reason) == ("False", "OtherPackage")
    assert "second" in message
    assert cluster.tracked("run").reading.graph.is_outline
    cluster.run()
    assert cluster.phase("run") == "Succeeded"


@pytest.mark.parametrize(
    "text", [b"{}", b'{"root": 7}', b'{"root": {"dag": {"tasks": {"first": null}}}}']
)
def test_a_package_that_cannot_be_read_refuses_no_run(text):
    cluster = KfpCluster(lambda question: PackageAnswer(question, READ, text))
    cluster.submit_run()
    cluster.until_planned()
    assert cluster.spec_read()[0] == "False"
    assert cluster.tracked("run").refusal == ""
    cluster.run()
    assert cluster.phase("run") == "Succeeded"


def test_runs_of_other_makers_have_no_such_condition_and_wait_for_nothing():
    cluster = KfpCluster(silent)
    cluster.submit_run()
    cluster.submit(a_chain("plain"))
    assert cluster.until_planned("plain") < 0.1
    assert cluster.placement("plain").status.condition(ConditionType.SPEC_READ) is None
    assert ("team", "run") not in cluster.placements


def test_a_planner_that_takes_over_asks_again_and_keeps_the_plan():
    cluster = KfpCluster(read())
    cluster.submit_run()
    cluster.until_planned()
    first = planned_nodes(cluster.placement("run"))
    cluster.hand_over(a_coordinator(kfp_api=True))
    cluster.run(lambda: len(cluster.asked) == 2)
    cluster.look()
    assert cluster.spec_read()[0] == "True"
    assert planned_nodes(cluster.placement("run")) == first
    cluster.run()
    assert cluster.phase("run") == "Succeeded"


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_run_that_waits_in_a_queue_asks_for_what_its_package_says(is_marked):
    cluster = KfpCluster(silent)
    queued = QueuedCluster(simulated=cluster)
    workflow = a_workflow()
    workflow["metadata"]["labels"] |= HELD
    if not is_marked:
        workflow = json.loads(json.dumps(workflow).replace(SCHEDULER_LABEL, "somebody-else"))
    cluster.submit(workflow)
    cluster.postpone("run", "Pending")
    cluster.run(lambda: bool(queued.requests))
    assert FIRST_PLAN_WAIT_SECONDS <= cluster.seconds <= FIRST_PLAN_WAIT_SECONDS + 0.1
    assert queued.spec("run").demand is not None
    cluster.answer(read())
    cluster.pass_time(1)
    assert dict(queued.spec("run").demand.to_demand().peak)["cpu"] == 3000


def test_a_run_in_a_queue_states_its_need_once_where_the_package_comes_in_time():
    cluster = KfpCluster(read())
    queued = QueuedCluster(simulated=cluster)
    workflow = a_workflow()
    workflow["metadata"]["labels"] |= HELD
    cluster.submit(workflow)
    cluster.postpone("run", "Pending")
    cluster.pass_time(10)
    assert len(queued.writes) == 1
    assert dict(queued.spec("run").demand.to_demand().peak)["cpu"] == 3000


def test_a_run_that_nobody_plans_is_not_asked_for():
    cluster = KfpCluster(silent)
    workflow = json.loads(json.dumps(a_workflow()).replace(SCHEDULER_LABEL, "somebody-else"))
    cluster.submit(workflow)
    cluster.pass_time(10)
    assert cluster.asked == []


@pytest.mark.parametrize(
    "part", ["joined", "due", "answered", "awaits", "pause_seconds", "gone", "_why_not"]
)
def test_a_defect_in_this_part_stops_no_plan(part, monkeypatch):
    cluster = KfpCluster(read())
    monkeypatch.setattr(cluster.coordinator.joined.packages, part, fail)
    cluster.submit_run()
    assert cluster.until_planned() <= FIRST_PLAN_WAIT_SECONDS
    cluster.run()
    assert cluster.phase("run") == "Succeeded"


def a_draft() -> Json:
    """A Workflow of a draft of KFP, whose drivers run in one agent pod."""
    draft = a_workflow()
    draft["spec"]["arguments"] = {"parameters": [{"name": "components-root", "value": "{}"}]}
    for template in draft["spec"]["templates"]:
        if template["name"] == "system-dag-driver":
            template["plugin"] = {}
    return draft


def test_a_workflow_of_a_draft_of_kfp_is_refused_by_name():
    """As a plain Workflow its drivers would be steps."""
    cluster = KfpCluster(silent)
    cluster.submit(a_draft())
    cluster.run(lambda: ("team", "run") in cluster.placements)
    assert "kubeflow/pipelines 13171" in cluster.tracked("run").refusal
    assert "kubeflow/pipelines 13171" in str(cluster.placement("run").status.conditions)
    assert not planned_nodes(cluster.placement("run"))


def test_its_queue_says_why_it_cannot_be_planned():
    cluster = KfpCluster(silent)
    queued = QueuedCluster(simulated=cluster)
    draft = a_draft()
    draft["metadata"]["labels"] |= HELD
    cluster.submit(draft)
    cluster.postpone("run", "Pending")
    cluster.run(lambda: bool(queued.requests))
    assert "kubeflow/pipelines 13171" in str(queued.spec("run"))
