"""Deleting pods that nobody has bound, on a real API server."""

import pytest

from kfp_placement_controller.actuators.plan_actions import delete_unbound
from kfp_placement_kube.kinds import PODS
from tests.controlplane import objects
from tests.controlplane.waiting import wait_until


@pytest.fixture
def waiting(client, namespace):
    """A pod whose scheduler is dead."""
    created = client.create(PODS, objects.pod("p", namespace, schedulerName="dead"))
    return created["metadata"]["uid"]


def bind(api, namespace, node):
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    path = f"{api.path('v1', 'Pod', namespace, 'p')}/binding"
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    api.request("POST", path, body)


def test_a_pod_that_waits_is_deleted(client, namespace, waiting):
    assert delete_unbound(client, namespace, "p", waiting)
    wait_until(lambda: client.get(PODS, "p", namespace) is None, "the pod to be gone")
    assert not delete_unbound(client, namespace, "p", waiting)


def test_another_pod_of_the_same_name_is_left_alone(client, namespace, waiting):
    assert not delete_unbound(client, namespace, "p", "another-uid")
    assert client.get(PODS, "p", namespace) is not None


def test_a_pod_that_is_bound_at_the_last_moment_stays(client, api, namespace, add_nodes, waiting):
    add_nodes(objects.node("late-node"))
    delete = client.delete
    tries: list[int] = []

    def after_binding(*arguments, **options):
        if not tries:
            bind(api, namespace, "late-node")
        tries.append(1)
        return delete(*arguments, **options)

    client.delete = after_binding
    assert not delete_unbound(client, namespace, "p", waiting)
    assert tries == [1]
    pod = client.get(PODS, "p", namespace)
    assert pod["spec"]["nodeName"] == "late-node"
    assert "deletionTimestamp" not in pod["metadata"]
