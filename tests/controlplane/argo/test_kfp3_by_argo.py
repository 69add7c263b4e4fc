"""Argo's own controller, where it is named, and the stand-in: the same nodes of KFP 3's runs."""

from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.crds import VERSION
from tests.controlplane.argo.kfp3_runs import complete_run, read_package
from tests.controlplane.argo.test_kfp3_runs import package_of
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.loop import KubeletLoop
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.data import data_path

NAMES = (
    "conditional_producer_and_consumers",
    "local_execution_pipeline_with_retry",
    "pipeline_as_exit_task",
    "pipeline_with_importer",
    "pipeline_with_loops",
    "pipeline_with_multiple_exit_handlers",
    "pipeline_with_pod_metadata",
    "two_step_pipeline",
)
CHOICES = DriverChoices(iteration_count=3, with_placement=False)


@pytest.fixture
def server(control_plane_programs, argo_program):
    """A control plane with a node, Argo's controller and the kubelets at work."""
    if argo_program is None:
        pytest.skip("needs Argo itself: name its controller with --argo-controller")
    packages = {run_name(name): read_package(package_of(path_of(name))) for name in NAMES}
    workload = Workload(WorkloadSettings(driver_seconds=0.05, step_seconds=0.1, start_seconds=0.0))
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        manifests.apply(plane.api, argo_program.custom_resource_definitions())
        housekeeping.add_nodes(plane.api, objects.node("n1", {"cpu": "64", "memory": "256Gi"}))
        process = argo_program.process(plane.api, plane.kubeconfig, plane.folder / "argo.log")
        process.start()
        with KubeletLoop(plane.api, Kubelets(workload, CHOICES, packages=packages)):
            yield plane.api
        process.stop()


def path_of(name: str) -> Path:
    return data_path("kfp-3-draft", "workflows", f"{name}.yaml")


def run_name(name: str) -> str:
    return name.replace("_", "-")


def nodes_of(workflow: dict) -> dict[str, tuple[str, ...]]:
    """What Argo says of each node, by the part of its name that follows the Workflow's."""
    start = len(workflow["metadata"]["name"])
    return {
        node["name"][start:]: tuple(node.get(key, "") for key in ("type", "phase", "templateName"))
        for node in workflow["status"]["nodes"].values()
    }


def test_it_makes_the_nodes_of_the_stand_in(server):
    with housekeeping.temporary_namespace(server, "kfp3") as namespace:
        server.create(objects.an_object("v1", "ServiceAccount", "pipeline-runner", namespace))
        workflows = {}
        for name in NAMES:
            workflows[name] = yaml.load(path_of(name).read_bytes(), yaml.CSafeLoader)
            metadata = {"name": run_name(name), "namespace": namespace}
            server.create({**workflows[name], "metadata": metadata, "status": {}})
        for name in NAMES:
            is_over = partial(_ended, server, run_name(name), namespace)
            ended = wait_until(is_over, f"the end of {name}", 120)
            simulated = complete_run(
                workflows[name], read_package(package_of(path_of(name))), CHOICES
            )
            assert ended["status"]["phase"] == "Succeeded"
            assert nodes_of(ended) == nodes_of(simulated.workflow), name


def _ended(server, name: str, namespace: str) -> dict:
    workflow = server.get(VERSION, "Workflow", name, namespace)
    is_over = (workflow.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Error")
    return workflow if is_over else {}
