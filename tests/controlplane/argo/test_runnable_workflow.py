"""Workflows that we make ourselves are executed like those of KFP's own compiler."""

import pytest
import yaml

from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.argo.test_recordings import admit, as_recorded, as_submitted, node_name
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.support.data import data_json, data_path
from tests.support.runnable_workflow import read_package, runnable_workflow
from tests.support.samples import SAMPLES


def test_the_pods_are_those_of_the_recorded_run():
    """The real controller with the Workflow of the real compiler had the same pods."""
    recording = data_json("labelled", "recordings", "taxi.json")
    run_id = recording["pods"][0]["metadata"]["labels"]["pipeline/runid"]
    workflow = read_package(data_path("labelled", "pipelines", "taxi.yaml"))
    choices = DriverChoices(with_placement=False)
    cluster = MemoryCluster(admit)
    simulated = SimulatedWorkflow(
        as_submitted(workflow, recording["workflow"], run_id), choices=choices, cluster=cluster
    )

    simulated.complete_all()

    assert simulated.phase == "Succeeded"
    made = {key: as_recorded(pod) for key, pod in simulated.cluster.by_node_name().items()}
    assert made == {node_name(pod): pod for pod in recording["pods"]}


def test_the_sample_runs_to_its_end():
    workflow = read_package(SAMPLES / "06_taxi" / "pipeline.yaml")
    simulated = SimulatedWorkflow(as_submitted(workflow, "taxi-1", "run-1"))
    simulated.complete_all()
    assert simulated.phase == "Succeeded"
    executors = [
        pod
        for pod in simulated.cluster.pods.values()
        if "kfp-placement.dev/scheduler" in pod["metadata"]["labels"]
    ]
    assert len(executors) == 7
    assert len(simulated.cluster.pods) == 15


def test_what_cannot_be_executed_is_refused():
    documents = yaml.safe_load_all(data_path("labelled", "pipelines", "fan_out.yaml").read_text())
    with pytest.raises(ValueError, match="only plain steps"):
        runnable_workflow(*documents)
