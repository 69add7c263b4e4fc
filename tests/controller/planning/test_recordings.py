"""The coordinator over whole recorded runs: every event in order, states as they were."""

import json

import pytest

from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_engine.contract.resources import PlacementPolicy
from tests.controller.planning.played_cluster import PlayedCluster
from tests.controlplane.argo.test_recordings import _workflow
from tests.support.data import data_path
from tests.support.kubernetes import node_object

LABELLED = ("control_flow", "fan_out", "shared_volume", "taxi")


def a_policy(**spec):
    spec = {"engine": {"budget": "1ms"}, **spec}
    return PlacementPolicy.model_validate({"spec": spec}).spec


def recorded_workflow(name: str) -> dict:
    recording = json.loads(data_path("labelled", "recordings", f"{name}.json").read_text())
    return _workflow(recording)


def a_cluster(**options) -> PlayedCluster:
    room = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    nodes = [node_object(f"n{number}", allocatable=room) for number in range(3)]
    params = PlanningParams(look_seconds=30)
    policy = a_policy(**options.pop("policy", {}))
    coordinator = Coordinator(policy=policy, params=params)
    return PlayedCluster(*nodes, coordinator=coordinator, **options)


@pytest.mark.parametrize("name", LABELLED)
def test_a_recorded_run_from_its_plan_to_its_end(name):
    cluster = a_cluster()
    workflow = recorded_workflow(name)
    run = workflow["metadata"]["name"]
    cluster.submit(workflow)

    cluster.run()
    cluster.step(lambda: True)

    placement = cluster.placement(run)
    assert placement.status is not None
    assert placement.status.phase == "Succeeded"
    ended = {"succeeded", "skipped", "cached"}
    assert set(cluster.states(run).values()) <= ended
    holds = {each.type: each.status for each in placement.status.conditions}
    assert set(holds.values()) == {"True"}
    assert {"Planned", "Schedulable", "LatencySatisfied", "RowsComplete", "Finished"} == set(holds)
