"""Runs are admitted by what they need and what there is: everything as shipped, on Argo."""

from typing import Any

import pytest

from kfp_placement import Workers
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    annotate,
    phase,
    released,
    request,
    set_queue,
    wait_for_phase,
    wait_status,
)
from tests.controller.end_to_end.small_pipelines import chain, compiled, step
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team, team_of, tidy_team
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo import small_workflows
from tests.controlplane.waiting import wait_until
from tests.support.kubernetes import node_object
from tests.support.manifests import a_queue

GPU = "nvidia.com/gpu"
WORKERS = 3
ENDS = {"Succeeded", "Failed", "Error"}


@pytest.fixture(scope="module")
def queueing(at_work):
    """An installation with queues, and two nodes of two GPUs each."""
    with at_work("queue") as running:
        gpus = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "2"}
        nodes = [node_object(f"gpu-{number}", allocatable=gpus, capacity=gpus) for number in (1, 2)]
        housekeeping.add_nodes(running.api, *nodes)
        yield running


@pytest.fixture
def team(queueing):
    """A namespace whose queue admits what fits the cluster."""
    for made in tidy_team(queueing):
        set_queue(made, overcommit=1)
        yield made


def training(name: str) -> JsonObject:
    """A run with a step that makes workers of one GPU each, and works while all of them run."""

    def body() -> None:
        launch = step("launch", duration="1h", workers=Workers(WORKERS, cpu=1, gpu=1))
        step("evaluate", launch)

    return compiled(name, body)


class TrainingOperator:
    """Makes the workers of steps named `launch`, one for each run in turn, as such operators do.

    A step ends when all its workers have been given to nodes, and its workers with it.
    """

    def __init__(self, team: Team) -> None:
        self._team = team

    def work(self):
        """Look at all steps once."""
        for launch in self.launching():
            workers = self._workers(launch)
            if len(workers) < WORKERS:
                self._make_worker(launch, len(workers))
            elif all(pod["spec"].get("nodeName") for pod in workers):
                self._end(launch, workers)

    def launching(self) -> list[JsonObject]:
        return [
            pod
            for pod in self._team.pods()
            if pod["status"].get("phase") == "Running"
            and ".launch(0).executor(0)"
            in pod["metadata"].get("annotations", {}).get(NODE_NAME_ANNOTATION, "")
        ]

    def _workers(self, launch: JsonObject) -> list[JsonObject]:
        name = launch["metadata"]["name"]
        return [
            pod
            for pod in self._team.pods()
            if pod["metadata"].get("labels", {}).get("worker-of") == name[-60:]
        ]

    def _make_worker(self, launch: JsonObject, number: int) -> None:
        name = launch["metadata"]["name"]
        requests, labels = {"cpu": "1", GPU: "1"}, {"worker-of": name[-60:]}
        self._team.add_pod(f"{name}-worker-{number}", requests, "1h", labels=labels)

    def _end(self, launch: JsonObject, workers: list[JsonObject]) -> None:
        for pod in workers:
            self._team.api.delete(pod)
        self._team.installation.kubelets.fail(launch["metadata"]["name"], exit_code=0)


def short_of_room(team):
    """The gangs with a worker that fits no node."""
    return {
        pod["metadata"]["labels"].get("worker-of")
        for pod in team.pods()
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "Unschedulable"
    }


def test_two_gangs_block_each_other_without_a_queue_and_both_end_with_one(queueing, team):
    with team_of(queueing) as alone:
        for name in ("alone-1", "alone-2"):
            alone.submit(training(name))
        both = TrainingOperator(alone)
        wait_until(lambda: len(both.launching()) == 2, "both to launch workers")
        # Each has two of the four GPUs, and needs a third.
        wait_until(lambda: both.work() or len(short_of_room(alone)) == 2, "both to lack a GPU")
        alone.tidy()
    # Twice the cluster may be promised, but no gang gets a part of what another waits for.
    set_queue(team)
    names = [team.submit(training(f"queued-{number}")) for number in (1, 2)]
    wait_until(
        lambda: {wait_status(team, each).get("phase") for each in names} == {"Waiting", "Admitted"},
        "one to be admitted",
    )
    (second,) = [each for each in names if wait_status(team, each)["phase"] == "Waiting"]
    assert "lacks room for 2 pods" in wait_status(team, second)["message"]
    operator = TrainingOperator(team)
    wait_until(
        lambda: operator.work() or {phase(team.workflow(each)) for each in names} <= ENDS,
        "both to end",
        120,
    )


def test_a_run_request_says_what_a_run_needs_and_goes_with_it(team):
    set_queue(team, quota={"runs": 0})
    name = team.submit(chain("small", 0.1, 0.1, cpu="1500m"))
    wait_for_phase(team, name, "Waiting")
    asked = request(team, name)
    peak = {each["name"]: each["amount"] for each in asked["spec"]["demand"]["peak"]}
    assert peak == {"cpu": "1500m", "memory": "256Mi", "pods": "1"}
    assert (
        asked["status"]["message"]
        == "1st of 1, needs 1 run more than the whole quota, and waits until that is raised"
    )
    assert asked["metadata"]["ownerReferences"][0]["name"] == name
    team.api.delete(team.workflow(name))
    wait_until(lambda: request(team, name) == {}, "its RunRequest to go with it")


def test_an_unmarked_workflow_waits_for_what_it_needs_and_its_pods_are_left_alone(team):
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "1"}]})
    main = small_workflows.step("main")
    main["container"]["resources"] = {"requests": {"cpu": "2"}}
    name = team.submit(small_workflows.workflow(main))
    wait_for_phase(team, name, "Waiting")
    assert (
        wait_status(team, name)["message"]
        == "1st of 1, needs 1 cpu more than the whole quota, and waits until that is raised"
    )
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "2"}]})
    team.wait_for_success(name)
    (pod,) = team.pods()
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    wait_for_phase(team, name, "Finished")
    # The planner writes the spec, the queue the status: either may come first.
    wait_until(
        lambda: request(team, name)["spec"].get("end") == "Succeeded", "its end to be in the spec"
    )


def test_a_run_of_lower_priority_stops_for_another_and_goes_on_where_it_was(team):
    # Both take what the whole cluster has of GPUs, counted once.
    set_queue(team, quota={"resources": [{"name": GPU, "amount": "2"}]})
    lower = compiled("low", lambda: _two_steps(f"{LASTING_SECONDS:g}s", priority=0))
    higher = compiled("high", lambda: _two_steps("1s", priority=10))
    low = team.submit(lower)
    team.wait_for_step(low)
    high = team.submit(higher)
    wait_until(lambda: team.workflow(low)["spec"].get("suspend"), "the first to stop")
    wait_for_phase(team, low, "Waiting")
    team.end_step(low)
    team.wait_for_success(high)
    ended = team.wait_for_success(low)
    executors = [each for each in ended["status"]["nodes"].values() if "executor" in each["name"]]
    assert len(executors) == len({each["name"] for each in executors})
    assert wait_status(team, low)["admittedAt"] > wait_status(team, high)["admittedAt"]


def _one_step() -> None:
    step("only")


def _two_steps(duration: str, **marks: Any) -> None:
    gpus = {"gpu": 2, "cpu": "1", **marks}
    step("second", step("first", duration=duration, **gpus), duration="100ms", **gpus)


def test_what_others_write_is_put_right(team):
    set_queue(team, quota={"runs": 0})
    name = team.submit(chain("edited", 0.1))
    wait_for_phase(team, name, "Waiting")
    right = request(team, name)
    edit = {"spec": {"priority": 7, "demand": None}, "status": {"phase": "Admitted"}}
    team.api.patch(right, {"spec": edit["spec"]})
    team.api.patch(right, {"status": edit["status"]}, part="status")

    def is_right() -> bool:
        now = request(team, name)
        phase_now = now.get("status", {}).get("phase")
        return (now.get("spec"), phase_now) == (right["spec"], "Waiting")

    wait_until(is_right, "both to be put right")
    team.api.delete(request(team, name))
    wait_until(is_right, "it to be made again")
    assert is_held(team.workflow(name))


def test_a_run_begins_by_request_and_stops_by_request(team):
    set_queue(team, quota={"runs": 0})
    name = team.submit(chain("asked", LASTING_SECONDS, 0.1))
    wait_for_phase(team, name, "Waiting")
    annotate(team, name, "admit")
    released(team, name)
    wait_for_phase(team, name, "Admitted")
    team.wait_for_step(name)
    annotate(team, name, "preempt")
    wait_until(lambda: team.workflow(name)["spec"].get("suspend"), "it to stop")
    wait_for_phase(team, name, "Waiting")
    set_queue(team, quota={})
    team.end_step(name)
    team.wait_for_success(name)


def test_another_queue_of_the_namespace_has_a_quota_of_its_own(team):
    gpu = a_queue(team.name, "gpu", quota={"runs": 0})
    team.api.create(gpu)
    named = team.submit(compiled("named", _one_step, queue="gpu"))
    other = team.submit(compiled("other", _one_step))
    team.wait_for_success(other)
    wait_until(lambda: wait_status(team, named).get("queue") == "gpu", "it to be in gpu")
    assert is_held(team.workflow(named))
    team.api.delete(gpu)
    team.wait_for_success(named)
