"""Pods of KFP 3's runs: each is recognised by its node's name, with the graph of the package."""

from dataclasses import replace

import pytest

from kfp_placement_engine import read_run_file
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole
from tests.controlplane.argo.kfp3_runs import TruePod, TrueRole, true_pods
from tests.controlplane.argo.test_kfp3_runs import WORKFLOWS, completed, package_of

ROLES = {TrueRole.EXECUTOR: PodRole.EXECUTOR} | dict.fromkeys(
    (TrueRole.IMPORTER, TrueRole.CLAIM_STEP), PodRole.OTHER
)
"""Roles of the pods that steps have; the other pods are drivers."""


def expected(pod: TruePod) -> PodIdentity:
    role = ROLES.get(pod.role, PodRole.DRIVER)
    return PodIdentity(pod.name, role, pod.is_group, pod.iteration, attempt=0)


@pytest.mark.parametrize("path", WORKFLOWS)
def test_each_pod_is_identified(path):
    graph = replace(read_run_file(package_of(path)), workflow="wf")
    index = PodIndex(graph)
    for pod in true_pods(completed(path)):
        assert index.identify(pod.node_name) == expected(pod), pod.node_name


@pytest.mark.parametrize("path", WORKFLOWS)
def test_each_executor_has_its_step_and_no_other_pod_has_one(path):
    """Importers, and steps that the driver does itself, are not pods that the extender places."""
    steps = {step.name for step in read_run_file(package_of(path)).steps}
    for pod in true_pods(completed(path)):
        name = pod.name if pod.role is TrueRole.EXECUTOR else None
        assert step_of_executor(pod.node_name, "wf", steps) == name, pod.node_name
