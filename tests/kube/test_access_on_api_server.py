"""The check at the start: kinds that are missing, and rights."""

import pytest

from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.exceptions import AccessError
from kfp_placement_kube.kinds import LEASES, NODES, PODS, Kind
from tests.controlplane.housekeeping import account_token
from tests.support.api_client import a_client


@pytest.fixture
def nobody(control_plane, namespace):
    """The client of an account without rights."""
    token = account_token(control_plane.api, namespace, "default")
    return a_client(control_plane.kubeconfig_for("nobody", token))


def test_an_account_with_all_rights_passes(client):
    check_access(client, [Need(NODES), Need(PODS, ("list", "watch", "delete"))])


def test_kinds_that_are_missing_are_all_named(client):
    thing = Kind("example.com/v1", "things", "Thing")
    with pytest.raises(AccessError) as error:
        check_access(client, [Need(thing), Need(NODES), Need(WORKFLOWS)])
    assert "things, example.com/v1" in str(error.value)
    assert "Workflow" in str(error.value)
    assert "nodes" not in str(error.value)


def test_rights_that_are_missing_are_named_with_verb_and_place(nobody, namespace):
    with pytest.raises(AccessError) as error:
        check_access(nobody, [Need(NODES), Need(LEASES, ("get", "update"), namespace)])
    assert "may not list, watch nodes in the whole cluster" in str(error.value)
    assert f"may not get, update leases in namespace {namespace}" in str(error.value)


def test_a_right_that_is_given_is_seen(nobody, api, namespace):
    meta = {"name": "reader", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    group = "rbac.authorization.k8s.io"
    version = {"apiVersion": f"{group}/v1"}
    api.create({**version, "kind": "Role", "metadata": meta, "rules": [rule]})
    api.create(
        {
            **version,
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        }
    )
    with pytest.raises(AccessError, match="may not watch pods in namespace"):
        check_access(nobody, [Need(PODS, namespace=namespace)])
