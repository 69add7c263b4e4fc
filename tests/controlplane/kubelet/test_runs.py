"""Controller and kubelets together, in memory and on a clock of their own."""

import json

from tests.controlplane.argo.controller import reconcile
from tests.controlplane.argo.simulated_workflow import START, SimulatedWorkflow
from tests.controlplane.argo.test_recordings import recorded_workflow
from tests.controlplane.kubelet.kubelet import Change, Kubelets, Report, StatusChange
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.data import data_json
from tests.support.kubernetes import node_object

MOST_STEPS = 500


def _apply(simulated: SimulatedWorkflow, change: Change) -> None:
    if isinstance(change, Report):
        simulated.cluster.results[change.result["metadata"]["name"]] = change.result
    elif isinstance(change, StatusChange):
        simulated.cluster.pods[change.name]["status"] = change.status


def _run_to_end(simulated: SimulatedWorkflow, kubelets: Kubelets, node: dict) -> None:
    """Bind every pod to the node at once and go from change to change."""
    nodes = {node["metadata"]["name"]: node}
    for _ in range(MOST_STEPS):
        simulated.settle()
        for pod in simulated.cluster.pods.values():
            pod["spec"].setdefault("nodeName", node["metadata"]["name"])
        changes = kubelets.look(simulated.cluster.pods.values(), nodes, simulated.now)
        for change in changes:
            _apply(simulated, change)
        following = kubelets.next_change(simulated.now)
        if following is None and not changes:
            return
        if not changes and following is not None:
            simulated.now = following
    raise AssertionError("the run does not end")


def test_the_taxi_pipeline_takes_as_long_as_its_longest_path():
    """Root driver, then along fetch, train, predict, evaluate: a driver, data in, work, data out.

    Speed 2 and 10 MB/s: fetch 15 + 20.97, train 20.97 + 600 + 5.24, predict 5.24 + 30 (and the
    dropped header's table, which has no size), evaluate 2.5; five drivers of one second.
    """
    recording = data_json("labelled", "recordings", "taxi.json")
    simulated = SimulatedWorkflow(recorded_workflow(recording))
    labels = {"kfp-placement.dev/speed": "2", "kfp-placement.dev/store-bandwidth": "10M"}
    node = node_object(labels=labels, allocatable={"cpu": "64", "memory": "64Gi"})
    settings = WorkloadSettings(driver_seconds=1.0, start_seconds=0.0)

    _run_to_end(simulated, Kubelets(Workload(settings)), node)

    assert simulated.phase == "Succeeded"
    table, model = 200 * 2**20 / 1e7, 50 * 2**20 / 1e7
    path = 15 + table + (table + 600 + model) + (model + 30) + 2.5
    assert (simulated.now - START).total_seconds() == round(path + 5, 6)


def test_a_node_that_is_too_small_ends_the_run_with_the_kubelets_words():
    recording = data_json("labelled", "recordings", "taxi.json")
    simulated = SimulatedWorkflow(recorded_workflow(recording))
    node = node_object(allocatable={"cpu": "2"})

    _run_to_end(simulated, Kubelets(Workload(WorkloadSettings(step_seconds=1))), node)

    assert simulated.phase == "Failed"
    messages = {node.get("message", "") for node in simulated.nodes().values()}
    assert any("Node didn't have enough resource: cpu" in message for message in messages)


def test_a_controller_that_starts_anew_goes_on_where_the_last_one_was():
    """Nothing is kept outside of the Workflow: looking at it once more changes nothing."""
    recording = data_json("labelled", "recordings", "fan_out.json")
    simulated = SimulatedWorkflow(recorded_workflow(recording))
    simulated.settle()
    simulated.complete(*simulated.open_pods())
    written = json.loads(json.dumps(simulated.workflow))

    pods, results = simulated.cluster.pods.values(), simulated.cluster.results.values()
    again = reconcile(written, pods, results, simulated.cluster, simulated.now)

    assert not again.changed
