"""The stand-in against what the real controller of Argo 4.0.5 did with the same Workflows."""

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.data import data_folder
from kfp_placement_engine.exceptions import InputNotFoundError
from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, Json
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.support.data import data_json, data_path

SCHEDULER_LABEL = "kfp-placement.dev/scheduler"
CUT = {
    "if_elif_else_complex",
    "pipeline_with_importer_workspace",
    "pipeline_with_parallelfor_parallelism",
    "pipeline_with_string_machine_fields_task_output",
}
"""Recordings that end while the run goes on."""


def _names() -> list[str]:
    try:
        folder = data_folder()
    except InputNotFoundError:
        return []
    files = [*folder.glob("argo-4.0.5/*.json"), *folder.glob("labelled/recordings/*.json")]
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in files)


def recorded_workflow(recording: Mapping[str, Any]) -> Json:
    """The recorded run's Workflow as KFP's API server submits it."""
    golden = Path(recording["golden"])
    if len(golden.parts) == 1:
        golden = Path("kfp-2.17.0", "workflows", golden)
    workflow = yaml.load(data_path(*golden.parts).read_text(), yaml.CSafeLoader)
    run_id = recording["pods"][0]["metadata"]["labels"]["pipeline/runid"]
    return as_submitted(workflow, recording["workflow"], run_id)


def as_submitted(workflow: Json, name: str, run_id: str) -> Json:
    workflow["metadata"] = {
        "name": name,
        "namespace": "kubeflow",
        "uid": "6eecda84-92fd-45a0-a85a-d235d5f001e3",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "labels": {"pipeline/runid": run_id},
    }
    workflow["spec"]["podMetadata"]["labels"]["pipeline/runid"] = run_id
    workflow["status"] = {}
    return workflow


def as_recorded(pod: Mapping[str, Any]) -> Json:
    """A pod cut down to what the recordings keep."""
    metadata = copy.deepcopy(pod["metadata"])
    metadata.pop("namespace")
    for owner in metadata["ownerReferences"]:
        owner.pop("uid")
        owner.pop("blockOwnerDeletion")
    keys = ("name", "image", "resources")
    spec = {
        key: pod["spec"][key] for key in ("schedulerName", "serviceAccountName", "restartPolicy")
    }
    for part in ("initContainers", "containers"):
        spec[part] = [{key: entry[key] for key in keys} for entry in pod["spec"][part]]
    claims = [volume for volume in pod["spec"]["volumes"] if "persistentVolumeClaim" in volume]
    return {"metadata": metadata, "spec": spec | ({"volumes": claims} if claims else {})}


def admit(pod: Json) -> None:
    """The admission policy that was in force while recording."""
    wanted = pod["metadata"]["labels"].get(SCHEDULER_LABEL)
    if wanted:
        pod["spec"]["schedulerName"] = wanted


def node_name(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["annotations"][ANNOTATION_NODE_NAME])


def simulated_recording(recording: Mapping[str, Any]) -> SimulatedWorkflow:
    choices = DriverChoices(iteration_count=2, assume_width=True, with_placement=False)
    return SimulatedWorkflow(
        recorded_workflow(recording), choices=choices, cluster=MemoryCluster(admit)
    )


def _follow(simulated: SimulatedWorkflow, recording: Mapping[str, Any]) -> None:
    """Let pods appear in the recorded order; no pod ends before it must."""
    simulated.settle()
    waiting: list[str] = []
    for pod in recording["pods"]:
        name = pod["metadata"]["name"]
        while name not in simulated.cluster.pods:
            assert waiting, f"{node_name(pod)} does not come after those before it"
            simulated.complete(waiting.pop(0))
        waiting.append(name)


def _nodes(nodes: Any) -> dict[str, tuple[str, ...]]:
    keys = ("displayName", "type", "phase", "templateName", "boundaryID")
    return {node["name"]: tuple(node.get(key, "") for key in keys) for node in nodes}


def _complete_recorded(simulated: SimulatedWorkflow, nodes: Iterable[Mapping[str, Any]]) -> None:
    """End the pods that had ended when these nodes were read, and no others."""
    ended = {node["name"] for node in nodes if node["phase"] == "Succeeded"}
    simulated.settle()
    while True:
        by_node = simulated.cluster.by_node_name()
        opened = set(simulated.open_pods())
        names = {key: pod["metadata"]["name"] for key, pod in by_node.items()}
        due = [name for key, name in names.items() if key in ended and name in opened]
        if not due:
            return
        simulated.complete(*due)


@pytest.mark.parametrize("name", [name for name in _names() if Path(name).name not in CUT])
def test_equal_to_the_real_controller(name):
    """The same pods in an order that fits, the same nodes at the end."""
    recording = data_json(f"{name}.json")
    simulated = simulated_recording(recording)

    _follow(simulated, recording)
    simulated.complete_all()

    recorded = {node_name(pod): pod for pod in recording["pods"]}
    made = {key: as_recorded(pod) for key, pod in simulated.cluster.by_node_name().items()}
    assert made == recorded
    assert _nodes(simulated.workflow["status"]["nodes"].values()) == _nodes(recording["nodes"])
    assert simulated.phase == recording["phase"] == "Succeeded"


@pytest.mark.parametrize("name", sorted(CUT))
def test_equal_to_the_real_controller_until_it_was_cut_off(name):
    """The pods up to there, and the nodes, which were read a little earlier than the pods."""
    recording = data_json("argo-4.0.5", f"{name}.json")
    simulated, earlier = simulated_recording(recording), simulated_recording(recording)

    _follow(simulated, recording)
    _complete_recorded(earlier, recording["nodes"])

    made = {key: as_recorded(pod) for key, pod in simulated.cluster.by_node_name().items()}
    for pod in recording["pods"]:
        assert made[node_name(pod)] == pod
    assert _nodes(earlier.workflow["status"]["nodes"].values()) == _nodes(recording["nodes"])
    assert earlier.phase == recording["phase"] == "Running"
