"""Kubernetes objects and their counterparts in the model, with only what matters to a test."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.kube_scheduler.model import Decision
from benchmarks.kube_scheduler.pod import Pod
from kfp_placement_engine.model.cluster import Node, Taint
from kfp_placement_engine.model.node_rules.constraints import objection
from kfp_placement_engine.model.pod_constraints import NodeAffinity, Toleration
from kfp_placement_engine.model.reasons import reason_text
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL

MEBIBYTE = 2**20
GIBIBYTE = 2**30


def a_node(name: str = "n1", **changes: Any) -> Node:
    """A node of 8 CPU, 16 GiB and 110 pods; `allocatable` adds to these."""
    allocatable = {"cpu": 8_000, "memory": 16 * GIBIBYTE, "pods": 110}
    allocatable |= changes.pop("allocatable", {})
    labels = {"kubernetes.io/hostname": name} | changes.pop("labels", {})
    return Node(name=name, allocatable=allocatable, labels=labels, **changes)


def a_pod(name: str = "p1", **changes: Any) -> Pod:
    """A pod of one container that requests 1 CPU and 1 GiB."""
    requests = changes.pop("requests", {"cpu": 1_000, "memory": GIBIBYTE})
    scored = changes.pop("scored_requests", requests)
    return Pod(name=name, requests=requests, scored_requests=scored, **changes)


def why_not(
    node_selector: Mapping[str, str],
    affinity: NodeAffinity,
    tolerations: Iterable[Toleration],
    node: Node,
) -> str | None:
    """Return why kube-scheduler's static filters keep a pod off the node; None if they do not."""
    reason = objection(node_selector, affinity, tolerations, node)
    return None if reason is None else reason_text(reason)


def a_taint(text: str) -> Taint:
    """A taint from `key=value:Effect` or `key:Effect`."""
    pair, effect = text.rsplit(":", 1)
    key, _, value = pair.partition("=")
    return Taint(key, value, effect)


def workflow_object(name: str = "wf", **parts: Any) -> dict[str, Any]:
    """A Workflow of the namespace `team` as the API server prints it.

    Args:
        name: name of the Workflow.
        parts: parts of the Workflow; `metadata` adds to its metadata.
    """
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        **parts.pop("metadata", {}),
    }
    status = parts.get("status")
    if isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed", "Error"):
        metadata["labels"] = {COMPLETED_LABEL: "true", **(metadata.get("labels") or {})}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": metadata,
        "spec": {},
        **parts,
    }


def node_object(name: str = "n1", **status: Any) -> dict[str, Any]:
    """A Node as the API server prints it; `labels`, `spec` and parts of the status may be given."""
    labels = {"kubernetes.io/hostname": name} | status.pop("labels", {})
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"} | status.pop("allocatable", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": status.pop("spec", {}),
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
            **status,
        },
    }


def container(
    requests: Mapping[str, Any] | None = None, name: str = "main", **fields: Any
) -> dict[str, Any]:
    """A container with these requests, or none."""
    resources = {} if requests is None else {"requests": dict(requests)}
    return {"name": name, "image": "busybox:1", "resources": resources, **fields}


def pod_object(
    name: str = "p1", node: str | None = None, phase: str = "Running", **spec: Any
) -> dict[str, Any]:
    """A Pod as the API server prints it, bound where `node` is given."""
    bound = {} if node is None else {"nodeName": node}
    metadata = {"name": name, "namespace": spec.pop("namespace", "default")}
    metadata["labels"] = spec.pop("labels", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container()], **bound, **spec},
        "status": {"phase": phase},
    }


def a_list(*items: Any) -> dict[str, Any]:
    """Return the List that `kubectl get -o yaml` wraps several objects in."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def plugin_scores(decision: Decision, plugin: str) -> dict[str, int]:
    """Node -> what a plugin of the scheduler model gave it, for the nodes that it scored."""
    return {node: row[plugin] for node, row in decision.scores.items() if plugin in row}
