"""The stand-ins of Argo and of the kubelets on a real API server with a real scheduler."""

import json
import re
import uuid

import pytest

from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION, custom_resource_definitions
from tests.controlplane.argo.loop import ArgoLoop
from tests.controlplane.argo.small_workflows import dag, step, task, workflow
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.argo.test_recordings import recorded_workflow
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.loop import KubeletLoop
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.cluster_of_runs import RUN_TIMEOUT_SECONDS
from tests.support.data import data_json

CHOICES = DriverChoices(iteration_count=2, assume_width=True, with_placement=False)


@pytest.fixture(scope="module")
def server(control_plane_programs):
    """A control plane without kwok's pods, two nodes, and the stand-ins at work."""
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        api = plane.api
        manifests.apply(api, custom_resource_definitions())
        housekeeping.add_nodes(api, objects.node("n1"), objects.node("n2"))
        settings = WorkloadSettings(driver_seconds=0.05, step_seconds=0.1, start_seconds=0.0)
        kubelets = Kubelets(Workload(settings), CHOICES)
        with ArgoLoop(api), KubeletLoop(api, kubelets):
            yield api


def _submit(api: Api, item: dict, namespace: str) -> dict:
    metadata = {**item["metadata"], "namespace": namespace}
    for key in ("uid", "creationTimestamp"):
        metadata.pop(key, None)
    return api.create({**item, "apiVersion": VERSION, "kind": "Workflow", "metadata": metadata})


def _shortened(item: dict) -> dict:
    """The Workflow with every step's duration hint a tenth of a second."""
    text = re.sub(r'(duration\\*": \\*")[0-9a-z.]+', r"\g<1>100ms", json.dumps(item))
    short: dict = json.loads(text)
    return short


def _ended(api: Api, item: dict, seconds: float = RUN_TIMEOUT_SECONDS) -> dict:
    name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]

    def ended() -> dict:
        now = api.get(VERSION, "Workflow", name, namespace)
        labels = now["metadata"].get("labels") or {}
        return now if labels.get("workflows.argoproj.io/completed") == "true" else {}

    def state() -> object:
        nodes = api.get(VERSION, "Workflow", name, namespace).get("status", {}).get("nodes", {})
        return {node["name"]: (node["phase"], node.get("message")) for node in nodes.values()}

    return wait_until(ended, f"the end of {name}", seconds, state)


@pytest.fixture
def namespace(server, request):
    """A namespace of the test's own, with the service account that KFP's pods have."""
    with housekeeping.temporary_namespace(server, f"test-{uuid.uuid4().hex[:8]}") as name:
        server.create(objects.an_object("v1", "ServiceAccount", "pipeline-runner", name))
        yield name


def test_two_steps_run_on_the_real_scheduler(server, namespace):
    tasks = (task("a"), task("b", depends="a.Succeeded"))
    spec = {"serviceAccountName": "pipeline-runner"}
    item = _submit(server, workflow(dag("main", *tasks), step(), **spec), namespace)

    ended = _ended(server, item)

    assert ended["status"]["phase"] == "Succeeded"
    pods = server.list("v1", "Pod", namespace)
    assert len(pods) == 2
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"n1", "n2"}
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}


@pytest.mark.parametrize("name", ["taxi", "control_flow"])
def test_a_recorded_pipeline_has_the_recorded_pods(server, namespace, name):
    recording = data_json("labelled", "recordings", f"{name}.json")
    item = _submit(server, _shortened(recorded_workflow(recording)), namespace)

    ended = _ended(server, item)

    assert ended["status"]["phase"] == "Succeeded"
    made = {pod["metadata"]["name"] for pod in server.list("v1", "Pod", namespace)}
    assert made == {pod["metadata"]["name"] for pod in recording["pods"]}
    nodes = {node["name"]: node["phase"] for node in ended["status"]["nodes"].values()}
    assert nodes == {node["name"]: node["phase"] for node in recording["nodes"]}


def test_a_full_quota_is_waited_for(server, namespace):
    spec = {"hard": {"pods": "1"}}
    server.create(objects.an_object("v1", "ResourceQuota", "q", namespace, spec=spec))
    wait_until(
        lambda: server.get("v1", "ResourceQuota", "q", namespace).get("status", {}).get("hard"),
        "the quota to be in force",
    )
    item = _submit(server, workflow(dag("main", task("a"), task("b")), step()), namespace)

    ended = _ended(server, item)

    assert ended["status"]["phase"] == "Succeeded"
    names = {
        pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]
        for pod in server.list("v1", "Pod", namespace)
    }
    assert names == {"wf(0).a(0)", "wf(0).b(0)"}
