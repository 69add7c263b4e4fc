"""Runs that wait in Kueue, from the notebook to the last pod: Kueue and all our processes."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from tests.controller.end_to_end.queues import phase, said, set_queue, status
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.kueue.program import KueueProgram
from tests.controlplane.kueue.running import KUEUE_VERSION, Kueue
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

pytestmark = pytest.mark.cluster

JsonObject = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def works(at_work, kueue_program: KueueProgram) -> Iterator[tuple[Installation, Kueue]]:
    """An installation with queues, and Kueue."""
    beside: list[Kueue] = []

    def make(plane: ControlPlane) -> Kueue:
        beside.append(Kueue(plane, kueue_program))
        return beside[0]

    with at_work("queue", "kueue", beside=make) as running:
        yield running, beside[0]


@pytest.fixture(scope="module")
def queueing(works: tuple[Installation, Kueue]) -> Installation:
    """An installation with queues, beside Kueue."""
    return works[0]


@pytest.fixture(scope="module")
def kueue(works: tuple[Installation, Kueue]) -> Kueue:
    """Kueue beside it."""
    return works[1]


@pytest.fixture
def team(queueing: Installation) -> Iterator[str]:
    """A namespace whose runs wait in Kueue, for the CPUs of one node."""
    queueing.wait_at_work()
    with queueing.namespace() as name:
        yield name
        for workflow in queueing.api.list(ARGO_VERSION, "Workflow", name):
            queueing.api.delete(workflow)
        housekeeping.delete_pods(queueing.api, name)


def add_quota(installation: Installation, namespace: str, cpu: str) -> str:
    """A LocalQueue named like its namespace, with the CPUs of one node; returns that node."""
    node = str(sorted(each["metadata"]["name"] for each in installation.api.list("v1", "Node"))[0])
    amounts = {"cpu": cpu, "memory": "64Gi", "kfp-placement.dev/runs": "10"}
    resources = [{"name": name, "nominalQuota": each} for name, each in amounts.items()]
    flavors = [{"name": namespace, "resources": resources}]
    specs = {
        "ResourceFlavor": {"nodeLabels": {HOSTNAME: node}},
        "ClusterQueue": {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "admissionChecksStrategy": {"admissionChecks": [{"name": "kfp-placement"}]},
            "resourceGroups": [{"coveredResources": [*amounts], "flavors": flavors}],
        },
        "LocalQueue": {"clusterQueue": namespace},
    }
    for kind, spec in specs.items():
        metadata = {"name": namespace}
        if kind == "LocalQueue":
            metadata["namespace"] = namespace
        body = {"apiVersion": KUEUE_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        installation.api.create(body)
    return node


def wait_for(installation: Installation, team: str, run: str, words: str) -> None:
    """Wait until a RunRequest says this of its waiting."""

    def message() -> str:
        return str(said(installation, team, run).get("message", ""))

    wait_until(lambda: words in message(), f"{run} to wait: {words}", 60, state=message)


def steps_in(installation: Installation, team: str, run: str) -> Counter[str]:
    """How many pods of our scheduler, which are those of steps, are in each phase."""
    return Counter(
        pod["status"].get("phase", "")
        for pod in installation.pods(team)
        if pod["spec"]["schedulerName"] == "kfp-placement"
        and pod["metadata"]["labels"][WORKFLOW_LABEL] == run
    )


def is_suspended(workflow: JsonObject) -> bool:
    return workflow["spec"].get("suspend") is True


def events_of(installation: Installation, team: str, run: str) -> list[JsonObject]:
    return [
        each
        for each in installation.api.list("events.k8s.io/v1", "Event", team)
        if each["regarding"]["name"] == run
    ]


def workload_of(installation: Installation, team: str, run: str) -> JsonObject:
    """The Workload of a run."""
    (found,) = [
        each
        for each in installation.api.list(KUEUE_VERSION, "Workload", team)
        if each["metadata"]["ownerReferences"][0]["name"] == run
    ]
    return found


def test_runs_wait_in_kueue_and_run_on_the_nodes_of_their_flavor(queueing, team):
    node = add_quota(queueing, team, "1500m")
    set_queue(queueing, team, backend="kueue", localQueue=team)
    first = queueing.submit(chain("first", 5.0, 5.0, cpu="1"), team)
    wait_until(lambda: phase(queueing.workflow(first, team)) == "Running", "the first to run", 60)
    second = queueing.submit(chain("second", 0.1, cpu="1"), team)
    wait_for(queueing, team, second, "waits for Kueue: couldn't assign flavors")
    assert "insufficient unused quota for cpu" in said(queueing, team, second)["message"]
    assert said(queueing, team, second)["position"] == 1
    (condition,) = [
        each for each in status(queueing, team)["conditions"] if each["type"] == "BackendReady"
    ]
    assert condition["status"] == "True"
    for name in (first, second):
        queueing.wait_for_success(name, team)
    placed = [pod["spec"] for pod in queueing.pods(team)]
    placed = [spec for spec in placed if spec["schedulerName"] == "kfp-placement"]
    assert [spec["nodeName"] for spec in placed] == [node] * 3
    wait_until(lambda: said(queueing, team, second)["phase"] == "Finished", "it to be over")
    for name in (first, second):
        queueing.api.delete(queueing.workflow(name, team))
    wait_until(
        lambda: queueing.api.list(KUEUE_VERSION, "Workload", team) == [], "Workloads to be gone"
    )


def test_a_run_that_kueue_preempts_stops_softly_and_goes_on_later(queueing, team):
    add_quota(queueing, team, "1500m")
    set_queue(queueing, team, backend="kueue", localQueue=team)
    low = queueing.submit(chain("low", 4.0, 1.0, 1.0, cpu="1"), team)
    running = partial(steps_in, queueing, team, low)
    wait_until(lambda: running() == {"Running": 1}, "its first step to run", 60)
    before = {pod["metadata"]["uid"] for pod in queueing.pods(team)}
    high = queueing.submit(chain("high", 1.0, cpu="1", priority=10), team)
    wait_until(lambda: is_suspended(queueing.workflow(low, team)), "the first to be suspended", 60)
    # Its step ends by itself, and only then the quota is free.
    wait_until(lambda: running() == {"Succeeded": 1}, "its first step to end", 60)
    kept = {pod["metadata"]["uid"] for pod in queueing.pods(team)}
    assert before <= kept
    queueing.wait_for_success(high, team)
    assert said(queueing, team, low)["phase"] in ("Waiting", "Admitted")
    queueing.wait_for_success(low, team)
    wait_until(lambda: said(queueing, team, low)["phase"] == "Finished", "it to be over", 60)
    assert not is_suspended(queueing.workflow(low, team))
    assert running() == {"Succeeded": 3}
    assert [each["reason"] for each in events_of(queueing, team, low)].count("Preempted") == 1


def test_runs_outlive_the_queue_and_kueue(queueing, team, kueue):
    """A step that runs ends, nobody new begins meanwhile, and who waits begins later.

    While Kueue is away its webhook refuses new pods everywhere, so the first run has one step.
    """
    add_quota(queueing, team, "1500m")
    set_queue(queueing, team, backend="kueue", localQueue=team, onControllerDown="hold")
    first = queueing.submit(chain("first", 10.0, cpu="1"), team)
    running = partial(steps_in, queueing, team, first)
    wait_until(lambda: running() == {"Running": 1}, "the first to run", 60)
    second = queueing.submit(chain("second", 0.1, cpu="1"), team)
    wait_for(queueing, team, second, "insufficient unused quota for cpu")
    workload = partial(workload_of, queueing, team)
    before = workload(second)["metadata"]["uid"]
    kueue.kill()
    with queueing.dead("queue-1"):
        third = queueing.submit(chain("third", 0.1, cpu="1"), team)
    wait_for(queueing, team, third, "it has no Workload yet")
    queueing.wait_for_success(first, team)
    wait_until(lambda: said(queueing, team, first)["phase"] == "Finished", "it to be over", 60)
    assert is_held(queueing.workflow(second, team))
    assert is_held(queueing.workflow(third, team))
    kueue.restart()
    for name in (second, third):
        queueing.wait_for_success(name, team)
    assert workload(second)["metadata"]["uid"] == before
