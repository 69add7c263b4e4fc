"""Runs that wait in Kueue, from the notebook to the last pod: Kueue and all our processes."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.controller.end_to_end.queues import phase, said, set_queue, status
from tests.controller.end_to_end.small_pipelines import chain
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.kueue.program import KueueProgram
from tests.controlplane.kueue.running import KUEUE_VERSION, Kueue
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

pytestmark = pytest.mark.cluster

HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def queueing(at_work, kueue_program: KueueProgram) -> Iterator[Installation]:
    """An installation with queues, beside Kueue."""
    beside = partial(Kueue, program=kueue_program)
    with at_work("queue", "kueue", beside=beside) as running:
        yield running


@pytest.fixture
def team(queueing: Installation) -> Iterator[str]:
    """A namespace whose runs wait in Kueue, for the CPUs of one node."""
    queueing.wait_at_work()
    with queueing.namespace() as name:
        yield name
        for workflow in queueing.api.list(ARGO_VERSION, "Workflow", name):
            queueing.api.delete(workflow)
        housekeeping.delete_pods(queueing.api, name)


def add_quota(installation: Installation, namespace: str, node: str, cpu: str) -> None:
    amounts = {"cpu": cpu, "memory": "64Gi", "kfp-placement.dev/runs": "10"}
    resources = [{"name": name, "nominalQuota": each} for name, each in amounts.items()]
    flavors = [{"name": namespace, "resources": resources}]
    specs = {
        "ResourceFlavor": {"nodeLabels": {HOSTNAME: node}},
        "ClusterQueue": {
            "namespaceSelector": {},
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


def test_runs_wait_in_kueue_and_run_on_the_nodes_of_their_flavor(queueing, team):
    node = sorted(each["metadata"]["name"] for each in queueing.api.list("v1", "Node"))[0]
    add_quota(queueing, team, node, "1500m")
    set_queue(queueing, team, backend="kueue", localQueue=team)
    first = queueing.submit(chain("first", 5.0, 5.0, cpu="1"), team)
    wait_until(lambda: phase(queueing.workflow(first, team)) == "Running", "the first to run", 60)
    second = queueing.submit(chain("second", 0.1, cpu="1"), team)
    unused = "waits for Kueue: couldn't assign flavors"
    wait_until(lambda: unused in said(queueing, team, second).get("message", ""), "it to wait", 30)
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
