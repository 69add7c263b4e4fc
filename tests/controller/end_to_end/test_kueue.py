"""Runs that wait in Kueue, from the notebook to the last pod: Kueue and all our processes."""

from collections import Counter
from functools import partial

import pytest

from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    set_queue,
    status,
    wait_for_phase,
    wait_for_workflow,
    wait_status,
)
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import Team, tidy_team
from tests.controller.hold_cases import is_held
from tests.controlplane.kueue.running import KUEUE_VERSION, Kueue
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.support.installation import FIRST_QUEUE

HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def works(at_work, kueue_program):
    """An installation with queues, and Kueue."""
    beside: list[Kueue] = []

    def make(plane: ControlPlane) -> Kueue:
        beside.append(Kueue(plane, kueue_program))
        return beside[0]

    with at_work("queue", "kueue", beside=make) as running:
        yield running, beside[0]


@pytest.fixture(scope="module")
def queueing(works):
    """An installation with queues, beside Kueue."""
    return works[0]


@pytest.fixture(scope="module")
def kueue(works):
    """Kueue beside it."""
    return works[1]


@pytest.fixture
def team(queueing):
    """A namespace whose runs wait in Kueue, for the CPUs of one node."""
    yield from tidy_team(queueing)


def add_quota(team: Team, cpu: str) -> str:
    """A LocalQueue named like its team, with the CPUs of one node; returns that node."""
    node = str(sorted(each["metadata"]["name"] for each in team.api.list("v1", "Node"))[0])
    amounts = {"cpu": cpu, "memory": "64Gi", "kfp-placement.dev/runs": "10"}
    resources = [{"name": name, "nominalQuota": each} for name, each in amounts.items()]
    flavors = [{"name": team.name, "resources": resources}]
    specs = {
        "ResourceFlavor": {"nodeLabels": {HOSTNAME: node}},
        "ClusterQueue": {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "admissionChecksStrategy": {"admissionChecks": [{"name": "kfp-placement"}]},
            "resourceGroups": [{"coveredResources": [*amounts], "flavors": flavors}],
        },
        "LocalQueue": {"clusterQueue": team.name},
    }
    for kind, spec in specs.items():
        metadata = {"name": team.name}
        if kind == "LocalQueue":
            metadata["namespace"] = team.name
        body = {"apiVersion": KUEUE_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        team.api.create(body)
    return node


def wait_for(team: Team, run: str, words: str) -> None:
    """Wait until a RunRequest says this of its waiting."""

    def message() -> str:
        return str(wait_status(team, run).get("message", ""))

    wait_until(lambda: words in message(), f"{run} to wait: {words}", state=message)


def steps_in(team: Team, run: str) -> Counter[str]:
    """How many pods of our scheduler, which are those of steps, are in each phase."""
    return Counter(
        pod["status"].get("phase", "")
        for pod in team.pods()
        if pod["spec"]["schedulerName"] == "kfp-placement"
        and pod["metadata"]["labels"][WORKFLOW_LABEL] == run
    )


def is_suspended(workflow: JsonObject) -> bool:
    return workflow["spec"].get("suspend") is True


def events_of(team: Team, run: str) -> list[JsonObject]:
    return [
        each
        for each in team.api.list("events.k8s.io/v1", "Event", team.name)
        if each["regarding"]["name"] == run
    ]


def workload_of(team: Team, run: str) -> JsonObject:
    """The Workload of a run."""
    (workload,) = [
        each
        for each in team.api.list(KUEUE_VERSION, "Workload", team.name)
        if each["metadata"]["ownerReferences"][0]["name"] == run
    ]
    return workload


def test_runs_wait_in_kueue_and_run_on_the_nodes_of_their_flavor(team):
    node = add_quota(team, "1500m")
    set_queue(team, backend="kueue", localQueue=team.name)
    first = team.submit(chain("first", 5.0, 5.0, cpu="1"))
    wait_for_workflow(team, first, "Running")
    second = team.submit(chain("second", 0.1, cpu="1"))
    wait_for(team, second, "waits for Kueue: couldn't assign flavors")
    assert "insufficient unused quota for cpu" in wait_status(team, second)["message"]
    assert wait_status(team, second)["position"] == 1
    (condition,) = [each for each in status(team)["conditions"] if each["type"] == "BackendReady"]
    assert condition["status"] == "True"
    for name in (first, second):
        team.wait_for_success(name)
    placed = [pod["spec"] for pod in team.pods()]
    placed = [spec for spec in placed if spec["schedulerName"] == "kfp-placement"]
    assert [spec["nodeName"] for spec in placed] == [node] * 3
    wait_for_phase(team, second, "Finished")
    for name in (first, second):
        team.api.delete(team.workflow(name))
    wait_until(
        lambda: team.api.list(KUEUE_VERSION, "Workload", team.name) == [], "Workloads to be gone"
    )


def test_a_run_that_kueue_preempts_stops_softly_and_goes_on_later(team):
    add_quota(team, "1500m")
    set_queue(team, backend="kueue", localQueue=team.name)
    low = team.submit(chain("low", 4.0, 1.0, 1.0, cpu="1"))
    running = partial(steps_in, team, low)
    wait_until(lambda: running() == {"Running": 1}, "its first step to run")
    before = {pod["metadata"]["uid"] for pod in team.pods()}
    high = team.submit(chain("high", 1.0, cpu="1", priority=10))
    wait_until(lambda: is_suspended(team.workflow(low)), "the first to be suspended")
    # Its step ends by itself, and only then the quota is free.
    wait_until(lambda: running() == {"Succeeded": 1}, "its first step to end")
    kept = {pod["metadata"]["uid"] for pod in team.pods()}
    assert before <= kept
    team.wait_for_success(high)
    assert wait_status(team, low)["phase"] in ("Waiting", "Admitted")
    team.wait_for_success(low)
    wait_for_phase(team, low, "Finished")
    assert not is_suspended(team.workflow(low))
    assert running() == {"Succeeded": 3}
    assert [each["reason"] for each in events_of(team, low)].count("Preempted") == 1


def test_runs_outlive_the_queue_and_kueue(queueing, team, kueue):
    """A step that runs ends, nobody new begins meanwhile, and who waits begins later.

    While Kueue is away its webhook refuses new pods everywhere, so the first run has one step.
    """
    add_quota(team, "1500m")
    set_queue(team, backend="kueue", localQueue=team.name, onControllerDown="hold")
    first = team.submit(chain("first", 10.0, cpu="1"))
    running = partial(steps_in, team, first)
    wait_until(lambda: running() == {"Running": 1}, "the first to run")
    second = team.submit(chain("second", 0.1, cpu="1"))
    wait_for(team, second, "insufficient unused quota for cpu")
    workload = partial(workload_of, team)
    before = workload(second)["metadata"]["uid"]
    kueue.kill()
    with queueing.dead(FIRST_QUEUE):
        third = team.submit(chain("third", 0.1, cpu="1"))
    wait_for(team, third, "it has no Workload yet")
    team.wait_for_success(first)
    wait_for_phase(team, first, "Finished")
    assert is_held(team.workflow(second))
    assert is_held(team.workflow(third))
    kueue.restart()
    for name in (second, third):
        team.wait_for_success(name)
    assert workload(second)["metadata"]["uid"] == before
