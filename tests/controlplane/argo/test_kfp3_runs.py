"""All Workflows that KFP 3 compiles of its own samples, run to their ends."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from kfp_placement_engine import read_run_file
from tests.controlplane.argo.kfp3_runs import (
    TrueRole,
    complete_run,
    read_package,
    true_pods,
)
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.support.data import data_path
from tests.support.generated_pipelines import generate
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.outlines import branches_not_taken
from tests.support.run_data import data_files
from tests.support.true_graphs import true_steps

WORKFLOWS = data_files("kfp-3-draft/workflows", "*.yaml")


def package_of(path: Path) -> Path:
    return data_path("kfp-2.17.0", "pipelines", path.name)


def run_of(path: Path, choices: DriverChoices | None = None) -> SimulatedWorkflow:
    workflow = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    return complete_run(workflow, read_package(package_of(path)), choices)


@cache
def completed(path: Path) -> SimulatedWorkflow:
    return run_of(path)


@pytest.mark.parametrize("path", WORKFLOWS)
def test_it_runs_to_its_end_with_the_pods_of_its_package(path):
    """Each step has its pod, with the image and the requests that the package asks for."""
    run = completed(path)
    assert run.phase == "Succeeded"
    graph = read_run_file(package_of(path))
    # The stand-in for KFP's drivers takes every condition to hold.
    left_out = tuple(f"{name}." for name in branches_not_taken(graph))
    made_pods = (pod for pod in true_pods(run) if not pod.name.startswith(left_out))
    pods = {pod.name: pod for pod in made_pods if pod.role in _OF_STEPS}
    steps = {step.name: step for step in graph.steps}
    assert pods.keys() == steps.keys()
    made = run.cluster.by_node_name()
    for name, pod in pods.items():
        if pod.role is TrueRole.EXECUTOR:
            main = made[pod.node_name]["spec"]["containers"][1]
            assert main["image"] == steps[name].image
            assert main["resources"].get("requests", {}).keys() >= steps[name].requests.keys()


_OF_STEPS = {TrueRole.EXECUTOR, TrueRole.IMPORTER, TrueRole.CLAIM_STEP}


def test_all_roles_occur_as_often_as_they_should():
    """Counted by hand once: no driver for an iteration, one for each task besides."""
    roles = Counter(pod.role for path in _paths() for pod in true_pods(completed(path)))
    assert roles == {
        TrueRole.ROOT_DRIVER: 73,
        TrueRole.DAG_DRIVER: 113,
        TrueRole.LOOP_DRIVER: 52,
        TrueRole.CONTAINER_DRIVER: 367,
        TrueRole.EXECUTOR: 367,
        TrueRole.IMPORTER: 5,
        TrueRole.CLAIM_STEP: 2,
    }


def _paths() -> list[Path]:
    return sorted(data_path("kfp-3-draft", "workflows").glob("*.yaml"))


def _run_named(name: str, choices: DriverChoices) -> SimulatedWorkflow:
    return run_of(data_path("kfp-3-draft", "workflows", f"{name}.yaml"), choices)


def test_a_cached_step_has_a_driver_only():
    run = _run_named("two_step_pipeline", DriverChoices(cached=frozenset({"write-to-gcs"})))
    assert run.phase == "Succeeded"
    nodes = run.nodes()
    assert nodes["(0).root(0).write-to-gcs(0).executor"]["phase"] == "Skipped"
    assert nodes["(0).root(0).write-to-gcs(0)"]["phase"] == "Succeeded"
    assert [pod.name for pod in true_pods(run) if pod.role in _OF_STEPS] == ["read-from-gcs"]


def test_a_loop_over_nothing_has_its_driver_only():
    run = _run_named("pipeline_with_loops", DriverChoices(iteration_counts={"for-loop-2": 0}))
    assert run.phase == "Succeeded"
    pods = [pod for pod in true_pods(run) if pod.name.startswith("for-loop-2")]
    assert [(pod.name, pod.role) for pod in pods] == [("for-loop-2", TrueRole.LOOP_DRIVER)]


@pytest.mark.parametrize("seed", range(12))
def test_generated_pipelines_run_as_kfp_3_too(tmp_path, seed):
    """Their authors know each step; the Workflow is that of our stand-in for KFP's compiler."""
    pipeline = generate(seed, tmp_path)
    package = list(yaml.load_all(pipeline.package, yaml.CSafeLoader))
    run = complete_run(emit_kfp3_workflow(*package), package)
    assert run.phase == "Succeeded"
    executors = sorted(pod.name for pod in true_pods(run) if pod.role is TrueRole.EXECUTOR)
    assert executors == sorted(step.name for step in true_steps(pipeline.truth))


def test_a_branch_that_is_not_taken_has_its_driver_only():
    choices = DriverChoices(conditions={"condition-3": False})
    run = _run_named("if_else_with_oneof_artifacts", choices)
    assert run.phase == "Succeeded"
    pods = [pod for pod in true_pods(run) if "condition-3" in pod.name]
    assert [(pod.name, pod.role) for pod in pods] == [
        ("flip-coin-pipeline.condition-branches-1.condition-3", TrueRole.DAG_DRIVER)
    ]
