"""Pods of KFP 3's runs: each is recognised by its node's name, whatever the run was read from."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kfp_placement_engine import RunGraph, read_run
from kfp_placement_engine.readers import ReadOptions
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole
from tests.controlplane.argo.kfp3_runs import TruePod, TrueRole, read_package, submitted, true_pods
from tests.controlplane.argo.test_kfp3_runs import WORKFLOWS, completed, package_of
from tests.support.outlines import branches_not_taken

ROLES = {TrueRole.EXECUTOR: PodRole.EXECUTOR} | dict.fromkeys(
    (TrueRole.IMPORTER, TrueRole.CLAIM_STEP), PodRole.OTHER
)
"""Roles of the pods that steps have; the other pods are drivers."""


def expected(pod: TruePod) -> PodIdentity:
    role = ROLES.get(pod.role, PodRole.DRIVER)
    return PodIdentity(pod.name, role, pod.is_group, pod.iteration, attempt=0)


def read_workflow(path: Path, package: Mapping[str, Any] | None = None) -> RunGraph:
    workflow = submitted(yaml.load(path.read_bytes(), yaml.CSafeLoader), "wf")
    text = json.dumps(workflow, default=str).encode()
    return read_run(text, name=path.name, options=ReadOptions(package=package))


def pods_of(path: Path, graph: RunGraph) -> list[TruePod]:
    """Pods of a run in which all conditions were taken to hold, except those of false ones."""
    left_out = tuple(f"{name}." for name in branches_not_taken(graph))
    return [pod for pod in true_pods(completed(path)) if not pod.name.startswith(left_out)]


@pytest.mark.parametrize("path", WORKFLOWS)
def test_each_pod_is_identified_by_the_graph_of_workflow_and_package(path):
    graph = read_workflow(path, package=read_package(package_of(path))[0])
    index = PodIndex(graph)
    for pod in pods_of(path, graph):
        assert index.identify(pod.node_name) == expected(pod), pod.node_name


@pytest.mark.parametrize("path", WORKFLOWS)
def test_each_pod_is_identified_by_the_outline(path):
    """Where more iterations run than are planned, the pod is of the step or group as a whole."""
    index = PodIndex(read_workflow(path))
    for pod in true_pods(completed(path)):
        identity, truth = index.identify(pod.node_name), expected(pod)
        assert identity is not None, pod.node_name
        whole = replace(truth, name=re.sub(r"\[\d+\]", "[*]", truth.name))
        assert identity in (truth, whole), pod.node_name


@pytest.mark.parametrize("path", WORKFLOWS)
def test_each_executor_has_its_step_and_no_other_pod_has_one(path):
    """Importers, and steps that the driver does itself, are not pods that the extender places."""
    package = read_package(package_of(path))[0]
    graph = read_workflow(path, package=package)
    steps = {step.name for step in graph.steps}
    for pod in pods_of(path, graph):
        name = pod.name if pod.role is TrueRole.EXECUTOR else None
        assert step_of_executor(pod.node_name, "wf", steps) == name, pod.node_name
