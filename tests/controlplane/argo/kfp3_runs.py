"""Runs of KFP 3's own Workflows in memory, and the truth about each of their pods.

What a pod is for comes from the nodes and templates that the stand-in has gone through, from the
pod outwards. No name of a node is taken apart, as readers do: theirs can be compared with it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.argo.state import Json
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.packages import Package

ASSUMED_WIDTH = 3
"""Width of loops whose items the package does not tell; the product assumes the same."""

_AMOUNTS = {
    "pipelinechannel--cpu-limit-Output": "4",
    "pipelinechannel--memory-limit-Output": "15G",
    "pipelinechannel--accelerator-type-Output": "nvidia.com/gpu",
    "pipelinechannel--accelerator-limit-Output": "1",
    "pipelinechannel--cpu": "2",
    "pipelinechannel--memory": "2Gi",
}
"""Resources that some pipelines get from parameters and from their own steps."""

_ATTEMPT = re.compile(r"\(\d+\)$")
_ITERATION = re.compile(r"iteration-iterations\((\d+):")


class TrueRole(StrEnum):
    """Purpose of a pod of KFP."""

    ROOT_DRIVER = "root driver"
    DAG_DRIVER = "DAG driver"
    LOOP_DRIVER = "loop driver"
    CONTAINER_DRIVER = "container driver"
    EXECUTOR = "executor"
    IMPORTER = "importer"
    CLAIM_STEP = "step that the driver does itself"


@dataclass(frozen=True)
class TruePod:
    """Truth about one pod.

    Attributes:
        node_name: name of its node, which is in an annotation of the pod.
        role: purpose of the pod.
        name: name of the step or group that it is for, with loop indexes; "" for the whole run.
        iteration: loop indexes in that name, outermost first.
    """

    node_name: str
    role: TrueRole
    name: str
    iteration: tuple[int, ...]

    @property
    def is_group(self) -> bool:
        """Whether it is for a group of steps."""
        return self.role in (TrueRole.ROOT_DRIVER, TrueRole.DAG_DRIVER, TrueRole.LOOP_DRIVER)


def read_package(path: Path) -> Package:
    """Return the documents of a package."""
    documents = yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader)
    return [document for document in documents if document]


def submitted(workflow: Mapping[str, Any], name: str) -> Json:
    """A compiled Workflow of KFP 3 as KFP's API server submits it."""
    metadata = {
        "name": name,
        "namespace": "kubeflow",
        "uid": f"uid-of-{name}",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "labels": {"pipeline/runid": f"run-of-{name}"},
        "annotations": dict(workflow["metadata"]["annotations"]),
    }
    return {**workflow, "metadata": metadata, "status": {}}


def complete_run(
    workflow: Mapping[str, Any],
    package: Package,
    choices: DriverChoices | None = None,
) -> SimulatedWorkflow:
    """Run a Workflow of KFP 3 to its end.

    Args:
        workflow: the Workflow as compiled; its name becomes `wf`.
        package: package of which it was compiled.
        choices: choices of its drivers; by default loops have the width that plans assume.
    """
    run = SimulatedWorkflow(
        submitted(workflow, "wf"),
        choices=choices or DriverChoices(iteration_count=ASSUMED_WIDTH, parameters=_AMOUNTS),
        packages={"wf": package},
    )
    run.complete_all()
    return run


def true_pods(run: SimulatedWorkflow) -> Iterator[TruePod]:
    """Yield the truth about every pod that a run of KFP 3 has had."""
    nodes = run.workflow["status"]["nodes"]
    for node in nodes.values():
        if node["type"] == "Pod":
            yield _true_pod(nodes, node)


def _true_pod(nodes: Mapping[str, Json], node: Json) -> TruePod:
    around = _levels(nodes, node)
    values = {each["name"]: each["value"] for each in node["inputs"]["parameters"]}
    role, name = _role(nodes, node, values), values.get("task-name", "")
    # The loop itself is the last level around its driver, and the step that around its executor.
    inside = role in (TrueRole.LOOP_DRIVER, TrueRole.EXECUTOR, TrueRole.ROOT_DRIVER)
    levels = around if inside else [*around, (name, None)]
    path = ".".join(text if index is None else f"{text}[{index}]" for text, index in levels)
    iteration = tuple(index for _, index in levels if index is not None)
    return TruePod(node["name"], role, path, iteration)


def _role(nodes: Mapping[str, Json], node: Json, values: Mapping[str, str]) -> TrueRole:
    template, name = node["templateName"], _own_name(node)
    if template == "system-dag-driver":
        if values["driver-type"] == "ROOT_DAG":
            return TrueRole.ROOT_DRIVER
        of_loop = name == "iteration-driver" and _is_in_loop(nodes, node)
        return TrueRole.LOOP_DRIVER if of_loop else TrueRole.DAG_DRIVER
    if template == "system-container-driver":
        has_executor = name != values["task-name"]
        return TrueRole.CONTAINER_DRIVER if has_executor else TrueRole.CLAIM_STEP
    is_importer = template.startswith("system-importer")
    return TrueRole.IMPORTER if is_importer else TrueRole.EXECUTOR


def _levels(nodes: Mapping[str, Json], node: Json) -> list[tuple[str, int | None]]:
    """Names of the groups, and the step, around a node, with loop indexes; outermost first."""
    levels: list[tuple[str, int | None]] = []
    index: int | None = None
    while node.get("boundaryID") in nodes:
        node = nodes[node["boundaryID"]]
        match = _ITERATION.match(node["displayName"])
        if match and _is_in_loop(nodes, node):
            index = int(match[1])
        elif node["templateName"] not in ("entrypoint", "root") and not _is_hook(node):
            levels.append((_own_name(node), index))
            index = None
    return levels[::-1]


def _is_in_loop(nodes: Mapping[str, Json], node: Json) -> bool:
    """Whether the template around a node is that of a loop."""
    return str(nodes[node["boundaryID"]]["templateName"]).endswith("-iterator")


def _is_hook(node: Json) -> bool:
    return str(node["templateName"]).startswith("exit-hook-")


def _own_name(node: Json) -> str:
    return _ATTEMPT.sub("", str(node["displayName"]))
