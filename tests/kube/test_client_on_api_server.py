"""The client on a real API server."""

import pytest
from prometheus_client import REGISTRY

from kfp_placement_kube.exceptions import (
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    UnreachableError,
    WriteConflictError,
)
from kfp_placement_kube.kinds import CLAIMS, LEASES, NODES, PODS, Kind
from tests.controlplane import objects
from tests.controlplane.housekeeping import account_token
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.support.api_client import a_client


def a_lease(namespace, name="l", holder="x"):
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": {"holderIdentity": holder}}


def counted(what, **labels):
    """How often that has happened to Leases."""
    labels["kind"] = "Lease"
    return REGISTRY.get_sample_value(f"kfp_placement_api_{what}_total", labels) or 0


def test_an_object_is_created_read_changed_and_deleted(client, namespace):
    writes = counted("writes", verb="create")
    created = client.create(LEASES, a_lease(namespace))
    assert created["kind"] == "Lease"
    assert counted("writes", verb="create") == writes + 1
    assert client.get(LEASES, "l", namespace) == created
    changed = client.patch(LEASES, "l", namespace, {"spec": {"holderIdentity": "y"}})
    assert changed["spec"]["holderIdentity"] == "y"
    assert client.delete(LEASES, "l", namespace)
    assert client.get(LEASES, "l", namespace) is None
    assert not client.delete(LEASES, "l", namespace)


def test_a_write_that_goes_out_from_an_old_version_is_a_conflict(client, namespace):
    old = client.create(LEASES, a_lease(namespace))
    client.patch(LEASES, "l", namespace, {"spec": {"holderIdentity": "y"}})
    with pytest.raises(WriteConflictError):
        client.replace(LEASES, old)
    version = {"resourceVersion": old["metadata"]["resourceVersion"]}
    with pytest.raises(WriteConflictError):
        client.patch(LEASES, "l", namespace, {"metadata": version})
    with pytest.raises(WriteConflictError):
        client.create(LEASES, a_lease(namespace))


def test_an_object_made_again_under_its_name_is_not_deleted_for_the_old_one(client, namespace):
    client.create(LEASES, a_lease(namespace))
    with pytest.raises(WriteConflictError):
        client.delete(LEASES, "l", namespace, uid="00000000-0000-0000-0000-000000000000")
    uid = client.get(LEASES, "l", namespace)["metadata"]["uid"]
    assert client.delete(LEASES, "l", namespace, uid=uid)


def test_a_list_comes_in_pages_and_says_what_its_items_are(client, namespace):
    for index in range(7):
        client.create(LEASES, a_lease(namespace, f"l{index}"))
    listing = client.list(LEASES, namespace=namespace, limit=3)
    leases = list(listing.items)
    assert [each["metadata"]["name"] for each in leases] == [f"l{index}" for index in range(7)]
    assert {each["kind"] for each in leases} == {"Lease"}
    assert int(listing.resource_version) >= max(
        int(each["metadata"]["resourceVersion"]) for each in leases
    )


def test_selectors_narrow_a_list(client, namespace):
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"})):
        client.create(PODS, objects.pod(name, namespace, labels=labels))
    by_label = client.list(PODS, namespace=namespace, label_selector="x in (2)")
    by_field = client.list(PODS, namespace=namespace, field_selector="metadata.name=a")
    assert [each["metadata"]["name"] for each in by_label.items] == ["b"]
    assert [each["metadata"]["name"] for each in by_field.items] == ["a"]


def test_a_kind_that_is_not_served_is_not_found(client):
    with pytest.raises(NotFoundError):
        client.list(Kind("no.example.com/v1", "things", "Thing"))


def test_a_refusal_says_what_and_why(client, namespace):
    before = counted("errors", verb="create", reason="Invalid")
    with pytest.raises(KubernetesError, match="leaseDurationSeconds") as refused:
        client.create(LEASES, a_lease(namespace) | {"spec": {"leaseDurationSeconds": -1}})
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert counted("errors", verb="create", reason="Invalid") == before + 1


def test_an_account_without_rights_is_forbidden(control_plane, namespace):
    token = account_token(control_plane.api, namespace, "default")
    kubeconfig = control_plane.kubeconfig_for("nobody", token)
    with pytest.raises(ForbiddenError):
        a_client(kubeconfig).list(NODES)


def test_a_token_that_is_too_old_is_read_again(control_plane, namespace):
    kubeconfig = control_plane.kubeconfig_for("renewed", "long gone")
    client = a_client(kubeconfig)
    with pytest.raises(KubernetesError, match="401"):
        client.list(CLAIMS)
    control_plane.kubeconfig_for("renewed", account_token(control_plane.api, namespace, "default"))
    # Known again, though without rights.
    with pytest.raises(ForbiddenError):
        client.list(CLAIMS)


def test_a_server_that_is_not_there_is_unreachable(tmp_path):
    (tmp_path / "ca").touch()
    kubeconfig = write_kubeconfig(tmp_path / "c", "http://127.0.0.1:1", tmp_path / "ca", "t")
    with pytest.raises(UnreachableError, match="no answer"):
        a_client(kubeconfig, 1.0).list(NODES)
