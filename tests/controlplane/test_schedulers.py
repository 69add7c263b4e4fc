"""Real schedulers: the stock one decides as our model predicts, a broken one says why it ends."""

import pytest

from benchmarks.kube_scheduler.model import Decision, KubeScheduler
from benchmarks.kube_scheduler.reading import read_pod
from benchmarks.kube_scheduler.state import SchedulerState
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from tests.controlplane import objects
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ProcessEndedError
from tests.controlplane.housekeeping import wait_for_node, wait_until_seen
from tests.controlplane.objects import JsonObject


def predict(api: Api, pod: JsonObject) -> Decision:
    """Return our model's verdict on an admitted pod, in the cluster as it is now."""
    nodes = [read_node(Fields(node, Place("node")))[0] for node in api.list("v1", "Node")]
    pods = [read_pod(Fields(item, Place("pod"))) for item in api.list("v1", "Pod")]
    state = SchedulerState(nodes, [other for other in pods if other.node_name])
    return KubeScheduler().decide(read_pod(Fields(pod, Place("pod"))), state)


def four_nodes(prefix: str) -> list[JsonObject]:
    rooms = (
        {"cpu": "4", "memory": "8Gi"},
        {"cpu": "8", "memory": "16Gi"},
        {"cpu": "16", "memory": "16Gi"},
        {"cpu": "12", "memory": "64Gi", "nvidia.com/gpu": "2"},
    )
    return [objects.node(f"{prefix}-{number}", room) for number, room in enumerate(rooms)]


def test_pods_land_where_our_model_predicts(api, namespace, add_nodes):
    """Twelve different pods, one after the other, each predicted from the objects as they are."""
    nodes = four_nodes(namespace)
    nodes[2]["spec"] = {"taints": [{"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}]}
    add_nodes(*nodes)
    wait_until_seen(api, namespace)
    single = 0
    for number in range(12):
        requests = {"cpu": f"{300 + 350 * (number % 4)}m", "memory": f"{1 + number % 3}Gi"}
        if number % 6 == 5:
            requests["nvidia.com/gpu"] = "1"
        # A first look without the scheduler, so that the model sees the pod as it was admitted.
        gate = [{"name": "test/wait"}]
        pod = api.create(objects.pod(f"p{number}", namespace, requests, schedulingGates=gate))
        decision = predict(api, pod)
        api.patch(pod, {"spec": {"schedulingGates": None}})
        actual = wait_for_node(api, f"p{number}", namespace)
        assert actual in decision.best, (number, decision.totals)
        single += len(decision.best) == 1
    assert single >= 8


def test_a_wrong_configuration_is_shown(control_plane):
    before = list(control_plane.processes)
    with pytest.raises(ProcessEndedError, match="percentageOfNodesToScore"):
        control_plane.add_scheduler("wrong", {"percentageOfNodesToScore": 101})
    assert list(control_plane.processes) == before
