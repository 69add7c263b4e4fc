"""Nodes, namespaces, tokens and tidying up, as nearly every test on a cluster needs them."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.controlplane import objects
from tests.controlplane.api import Api
from tests.controlplane.objects import JsonObject
from tests.controlplane.waiting import TIMEOUT_SECONDS, wait_until

RBAC = "rbac.authorization.k8s.io"
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_LOST = "test.kfp-placement.dev/lost"
"""Label of nodes that kwok makes ready no more; see `kwok/nodes.yaml`."""


def add_nodes(api: Api, *nodes: JsonObject, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
    """Create nodes and wait until kwok has made them ready and pods may go there."""
    for node in nodes:
        api.create(node)
    names = {node["metadata"]["name"] for node in nodes}

    def all_ready() -> bool:
        current = api.list("v1", "Node")
        return names <= {node["metadata"]["name"] for node in current if is_ready(node)}

    wait_until(all_ready, f"nodes {', '.join(sorted(names))} to be ready", timeout_seconds)


def remove_nodes(api: Api, *names: str) -> None:
    """Delete nodes; pods that are still there are left to the garbage collector."""
    for name in names:
        api.delete(objects.an_object("v1", "Node", name))


def lose_node(api: Api, name: str) -> None:
    """A machine is lost, and somebody says so.

    Its status is what the node controller writes of a kubelet that is not heard of; the real
    controllers do the rest. They taint it as unreachable; once it is declared out of service, as
    Kubernetes advises for machines that do not come back, they evict its pods and remove these
    within 20 s, though no kubelet ends them. (Pods of a node that is deleted they remove after 40
    to 80 s.)
    """
    node = api.get("v1", "Node", name)
    api.patch(node, {"metadata": {"labels": {_LOST: "true"}}})
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    api.patch(node, {"status": {"conditions": [unknown]}}, how="strategic", part="status")

    def taints() -> list[JsonObject]:
        node_taints: list[JsonObject] = api.get("v1", "Node", name)["spec"].get("taints", [])
        return node_taints

    def is_unreachable() -> bool:
        return (_UNREACHABLE, "NoExecute") in {(each["key"], each["effect"]) for each in taints()}

    wait_until(is_unreachable, f"node {name} to be tainted as unreachable", state=taints)
    gone = {"key": _OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    api.patch(node, {"spec": {"taints": [*taints(), gone]}})


def is_ready(node: Mapping[str, Any]) -> bool:
    """Return whether a node says that it is ready and the node controller knows of it."""
    conditions = node["status"].get("conditions", ())
    says_so = any(row["type"] == "Ready" and row["status"] == "True" for row in conditions)
    tainted = any(taint["key"] == _NOT_READY for taint in node["spec"].get("taints", ()))
    return says_so and not tainted


def wait_until_seen(api: Api, namespace: str, scheduler: str = "default-scheduler") -> None:
    """Wait until a scheduler has taken note of all nodes as they are now.

    It learns of them by a watch, somewhat later than we do. Asked here by pods that fit nowhere:
    the scheduler says how many nodes are too small. A new pod each time: the scheduler need not
    look at an old one again when another node comes that is too small as well.

    Args:
        api: the server, as someone who may do this.
        namespace: namespace for the pods.
        scheduler: name of the scheduler.
    """
    expected = f" {sum(_is_open(node) for node in api.list('v1', 'Node'))} Insufficient cpu"

    def says() -> str:
        name = f"probe-{uuid.uuid4().hex[:8]}"
        probe = api.create(objects.pod(name, namespace, {"cpu": "100k"}, schedulerName=scheduler))
        conditions: Any = wait_until(
            lambda: api.get("v1", "Pod", name, namespace)["status"].get("conditions"), "an answer"
        )
        api.delete(probe, grace_seconds=0)
        return " ".join(row.get("message", "") for row in conditions)

    wait_until(lambda: expected in says(), f"{scheduler} to find{expected}")


def is_lost(node: Mapping[str, Any]) -> bool:
    """Return whether nobody hears of a node's kubelet."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "Unknown" for row in conditions)


def _is_open(node: Mapping[str, Any]) -> bool:
    """Return whether pods that tolerate nothing may go to a node."""
    return all(
        taint["effect"] == "PreferNoSchedule" for taint in node["spec"].get("taints", ())
    ) and not node["spec"].get("unschedulable")


def delete_pods(api: Api, namespace: str) -> None:
    """Delete all pods of a namespace at once and wait until they are gone."""

    def none_left() -> bool:
        left = api.list("v1", "Pod", namespace)
        for pod in left:
            api.delete(pod, grace_seconds=0)
        return not left

    wait_until(none_left, f"the pods of {namespace} to be gone")


def wait_until_none_is_gated(api: Api, gate: str) -> None:
    """Wait until no pod has a gate: those of tests before go with their namespaces, in time."""

    def gated() -> list[JsonObject]:
        pods = api.list("v1", "Pod")
        return [pod for pod in pods if {"name": gate} in pod["spec"].get("schedulingGates", ())]

    wait_until(lambda: not gated(), f"no pod to have the gate {gate}", state=gated)


@contextlib.contextmanager
def temporary_namespace(
    api: Api, name: str, labels: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A namespace that pods can be created in; it is deleted afterwards, without waiting.

    Args:
        api: the server, as someone who may do this.
        name: name of the namespace.
        labels: labels of the namespace.
    """
    metadata = {"name": name, "labels": dict(labels or {})}
    created = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    wait_for_account(api, name)
    try:
        yield name
    finally:
        api.delete(created)


def wait_for_account(api: Api, namespace: str, name: str = "default") -> None:
    """Wait for a service account; without the default one no pod can be created."""
    wait_until(
        lambda: api.find("v1", "ServiceAccount", name, namespace),
        f"service account {name} of namespace {namespace}",
    )


def wait_for_node(api: Api, name: str, namespace: str) -> str:
    """Wait until a pod is bound, and return the name of its node."""

    def pod() -> JsonObject:
        return api.get("v1", "Pod", name, namespace)

    return str(
        wait_until(lambda: pod()["spec"].get("nodeName"), f"pod {name} to be bound", state=pod)
    )


def new_account(api: Api, namespace: str, name: str, role: str, role_kind: str) -> Api:
    """Make a service account with a role; returns the server as it sees it. See `bind_role`."""
    api.create(objects.an_object("v1", "ServiceAccount", name, namespace))
    bind_role(api, namespace, name, role, role_kind)
    return api.acting_as(account_token(api, namespace, name))


def bind_role(api: Api, namespace: str, name: str, role: str, role_kind: str) -> None:
    """Give a service account a role in its namespace.

    Args:
        api: the server, as someone who may do this.
        namespace: namespace of the account.
        name: name of the account, and of the binding.
        role: the role's name.
        role_kind: `Role` or `ClusterRole`.
    """
    binding = objects.an_object(
        f"{RBAC}/v1",
        "RoleBinding",
        name,
        namespace,
        roleRef={"apiGroup": RBAC, "kind": role_kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    )
    api.create(binding)


def account_token(api: Api, namespace: str, name: str, *audiences: str) -> str:
    """A token for a service account, signed by the server.

    Args:
        api: the server, as someone who may do this.
        namespace: namespace of the account.
        name: name of the account.
        audiences: services that the token is for; none = the API server.
    """
    path = f"{api.path('v1', 'ServiceAccount', namespace, name)}/token"
    spec = {"audiences": audiences} if audiences else {}
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token: str = api.request("POST", path, wanted)["status"]["token"]
    return token
