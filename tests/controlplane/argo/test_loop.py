"""The stand-ins of Argo and of the kubelets on a real API server with a real scheduler."""

import json
import re
import uuid

import pytest
import yaml

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL, TYPE_LABEL
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION, custom_resource_definitions
from tests.controlplane.argo.loop import ArgoLoop
from tests.controlplane.argo.small_workflows import dag, step, task, workflow
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.argo.test_recordings import as_submitted, recorded_workflow
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.loop import KubeletLoop
from tests.controlplane.kubelet.packages import Package
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.data import data_json, data_path
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow

PACKAGES: dict[str, Package] = {}
"""Packages that drivers of KFP 3 read; tests add theirs."""

CHOICES = DriverChoices(iteration_count=2, assume_width=True, with_placement=False)


@pytest.fixture(scope="module")
def server(control_plane_programs):
    """A control plane without kwok's pods, two nodes, and the stand-ins at work."""
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        api = plane.api
        manifests.apply(api, custom_resource_definitions())
        housekeeping.add_nodes(api, objects.node("n1"), objects.node("n2"))
        settings = WorkloadSettings(driver_seconds=0.05, step_seconds=0.1, start_seconds=0.0)
        kubelets = Kubelets(Workload(settings), CHOICES, packages=PACKAGES)
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


def _ended(api: Api, item: dict, seconds: float = 60) -> dict:
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


def test_runs_of_kfp_2_and_3_have_executors_of_one_kind(server, namespace):
    """Both are Workflows of one package, side by side in a namespace."""
    documents = data_path("labelled", "pipelines", "taxi.yaml").read_text()
    package = list(yaml.safe_load_all(documents))
    PACKAGES[package[0]["pipelineInfo"]["name"]] = package
    workflows = {
        "two": data_path("labelled", "workflows", "taxi.yaml").read_text(),
        "three": json.dumps(emit_kfp3_workflow(*package)),
    }
    for name, text in workflows.items():
        submitted = _shortened(as_submitted(yaml.safe_load(text), name, name))
        _submit(server, submitted, namespace)
    executors = {}
    for name in workflows:
        ended = _ended(server, objects.an_object(VERSION, "Workflow", name, namespace))
        assert ended["status"]["phase"] == "Succeeded"
        selector = f"workflows.argoproj.io/workflow={name}"
        pods = server.list("v1", "Pod", namespace, labelSelector=selector)
        executors[name] = sorted(map(_executor, filter(_is_executor, pods)), key=str)
    assert executors["two"] == executors["three"] != []


def _is_executor(pod: dict) -> bool:
    return any(each["name"] == "kfp-launcher" for each in pod["spec"]["initContainers"])


def _executor(pod: dict) -> tuple:
    main = pod["spec"]["containers"][1]
    marks = {key: pod["metadata"]["labels"].get(key) for key in (SCHEDULER_LABEL, TYPE_LABEL)}
    return main["image"], main["resources"], marks
