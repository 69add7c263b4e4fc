"""Kubernetes objects to create, with only what matters to a test."""

from collections.abc import Mapping
from typing import Any

from tests.controlplane.kubelet.amounts import amount

JsonObject = dict[str, Any]


def an_object(
    api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any
) -> JsonObject:
    """An object of any kind.

    Args:
        api_version: group and version.
        kind: the kind.
        name: name of the object.
        namespace: namespace of the object; None where its kind has none.
        fields: beside its metadata, such as `spec`.
    """
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def claim(name: str, namespace: str, storage_class: str) -> JsonObject:
    """A claim for a volume; see `claim_spec`."""
    spec = claim_spec(storage_class)
    return an_object("v1", "PersistentVolumeClaim", name, namespace, spec=spec)


def claim_spec(storage_class: str) -> JsonObject:
    """Return the spec of a claim of 1 GiB for one node at a time."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }


def node(
    name: str,
    allocatable: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    images: Mapping[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """A node of 8 CPU, 16 GiB and 110 pods, not ready yet.

    Args:
        name: name of the node, and of its host.
        allocatable: resources to add to these.
        labels: beside the host name.
        images: reference -> size, of the images that it reports.
        **spec: fields of the spec.
    """
    held = [
        {"names": [image], "sizeBytes": int(amount(size))} for image, size in (images or {}).items()
    ]
    room = {"cpu": "8", "memory": "16Gi", "pods": "110", **(allocatable or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": room, "capacity": room, "images": held},
    }


def pod(
    name: str,
    namespace: str,
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """A pod of one container that requests 1 CPU and 1 GiB unless `requests` says otherwise."""
    wanted = {"cpu": "1", "memory": "1Gi"} if requests is None else dict(requests)
    limited = {key: value for key, value in wanted.items() if "/" in key}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "busybox:1",
                    "resources": {"requests": wanted, "limits": limited},
                }
            ],
            **spec,
        },
    }
