"""The control plane behaves like a cluster: versions, rights, nodes, pods, claims, leases."""

import pytest

from tests.controlplane import objects, stages
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError
from tests.controlplane.housekeeping import account_token, bind_role, is_ready
from tests.controlplane.waiting import wait_until


def pod_field(api: Api, namespace: str, name: str, part: str, field: str):
    return api.get("v1", "Pod", name, namespace)[part].get(field)


def test_an_account_may_do_only_what_a_role_allows(api, namespace):
    api.create(objects.an_object("v1", "ServiceAccount", "reader", namespace))
    path = api.path("v1", "Pod", namespace)
    reader = api.acting_as(account_token(api, namespace, "reader"))
    with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:reader") as refused:
        reader.request("GET", path)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")

    bind_role(api, namespace, "reader", role="view", role_kind="ClusterRole")

    def allowed() -> bool:
        try:
            return reader.request("GET", path)["items"] == []
        except ApiError:
            return False

    # The authorizer learns of a binding by a watch.
    wait_until(allowed, "the binding to count")
    with pytest.raises(ApiError, match="cannot delete"):
        reader.request("DELETE", path)


def test_a_node_becomes_ready_and_pods_run_there(api, namespace, add_nodes):
    name = f"{namespace}-node"
    add_nodes(objects.node(name, {"cpu": "2"}))
    node = api.get("v1", "Node", name)
    assert is_ready(node)
    assert node["status"]["allocatable"]["cpu"] == "2"
    lease = api.get("coordination.k8s.io/v1", "Lease", name, "kube-node-lease")
    assert lease["spec"]["holderIdentity"]

    api.create(objects.pod("p", namespace, nodeSelector={"kubernetes.io/hostname": name}))
    wait_until(
        lambda: pod_field(api, namespace, "p", "status", "phase") == "Running", "the pod to run"
    )
    assert pod_field(api, namespace, "p", "spec", "nodeName") == name
    api.delete(api.get("v1", "Pod", "p", namespace))
    wait_until(lambda: api.find("v1", "Pod", "p", namespace) is None, "the pod to go")


@pytest.mark.parametrize("storage_class", [stages.STORAGE_CLASS, stages.LOCAL_STORAGE_CLASS])
def test_a_claim_gets_a_volume(api, namespace, add_nodes, storage_class):
    name = f"{namespace}-node"
    add_nodes(objects.node(name))
    api.create(objects.claim("data", namespace, storage_class))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    pod = objects.pod(
        "p", namespace, volumes=[volume], nodeSelector={"kubernetes.io/hostname": name}
    )
    api.create(pod)
    wait_until(
        lambda: pod_field(api, namespace, "p", "status", "phase") == "Running", "the pod to run"
    )
    claim = api.get("v1", "PersistentVolumeClaim", "data", namespace)
    assert claim["status"]["phase"] == "Bound"
    volume = api.get("v1", "PersistentVolume", claim["spec"]["volumeName"])
    tied_to_node = name in str(volume["spec"].get("nodeAffinity", ""))
    assert tied_to_node == (storage_class == stages.LOCAL_STORAGE_CLASS)


def test_a_watch_tells_what_happens(api, namespace):
    item = api.create(objects.an_object("v1", "ConfigMap", "watched", namespace))
    version = {"resourceVersion": item["metadata"]["resourceVersion"]}
    api.patch(item, {"data": {"a": "1"}})
    api.delete(item)
    only = {"fieldSelector": "metadata.name=watched"}
    events = api.watch("v1", "ConfigMap", namespace, **version, **only)
    assert next(events)[1]["data"] == {"a": "1"}
    assert next(events)[0] == "DELETED"
    events.close()
    stranger = api.acting_as(account_token(api, namespace, "default"))
    with pytest.raises(ApiError, match="cannot watch") as refused:
        next(stranger.watch("v1", "ConfigMap", namespace))
    assert refused.value.status == 403


def test_everything_survives_a_restart_of_the_server(control_plane, api, namespace, add_nodes):
    name = f"{namespace}-node"
    add_nodes(objects.node(name))
    kept = api.create(objects.an_object("v1", "ConfigMap", "kept", namespace))

    control_plane.restart("kube-apiserver")

    assert api.get("v1", "ConfigMap", "kept", namespace) == kept
    api.create(objects.pod("p", namespace, nodeSelector={"kubernetes.io/hostname": name}))
    wait_until(
        lambda: pod_field(api, namespace, "p", "status", "phase") == "Running",
        "a pod to be scheduled and run after the restart",
    )
    for process in control_plane.processes.values():
        process.check()
