"""Pods as the real Argo made them from labelled pipelines: each is led to its planned node."""

import pytest

from kfp_placement_controller.extender.decisions import DecisionReason, filter_nodes
from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.readers import read_run_file
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import Cluster, plan_object
from tests.support.data import data_json, data_path

NODES = [f"node-{number}" for number in range(7)]


def planned(name: str):
    """A recording, its pods that bear our mark, and a plan that spreads its steps."""
    recording = data_json("labelled/recordings", f"{name}.json")
    graph = read_run_file(data_path("labelled/workflows", f"{name}.yaml"))
    rows = [[step.name, number % len(NODES), 0, 60] for number, step in enumerate(graph.steps)]
    plan = read_plan(plan_object(*rows, nodes=NODES, uid="recorded"))
    pods = [pod for pod in recording["pods"] if SCHEDULER_LABEL in pod["metadata"]["labels"]]
    return recording["workflow"], pods, plan


@pytest.mark.parametrize("name", ["control_flow", "fan_out", "shared_volume", "taxi"])
def test_every_marked_pod_goes_where_its_step_is_planned(name):
    workflow, pods, plan = planned(name)
    cluster = Cluster(*NODES)
    cluster.store.plan_changed(Change(("kubeflow", workflow), None, plan))
    asked = set()
    for pod in pods:
        raw = {**pod, "metadata": {**pod["metadata"], "namespace": "kubeflow"}}
        for owner in raw["metadata"]["ownerReferences"]:
            owner["uid"] = plan.run_uid
        decision = filter_nodes(cluster.knowledge, DEFAULT_SOURCES.observe_pod(raw), NODES)
        if decision.reason is DecisionReason.NOTHING_KNOWN:
            # Loops whose width a plan can only assume.
            assert "iteration-iterations" in str(pod["metadata"]["annotations"])
            continue
        assert decision.reason is DecisionReason.PLAN
        asked.add(decision.nodes[0])
    assert len(pods) >= 3
    assert len(asked) > 1
