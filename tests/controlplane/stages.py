"""Stages of kwok, which simulates nodes, volumes, and pods if nobody else does."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.exceptions import ControlPlaneError

_FOLDER = Path(__file__).with_name("kwok")
_PARALLELISM = 16

# Volumes that every node can reach, there at once.
STORAGE_CLASS = "kwok-volume"
# Volumes on the node of the first pod that uses them.
LOCAL_STORAGE_CLASS = "kwok-local-volume"


def write(path: Path, names: Iterable[str]) -> Path:
    """Write kwok's configuration with the stages of these files of `kwok/`."""
    # All of them: kwok gives none a default once there is a configuration.
    options = {
        "podPlayStageParallelism": _PARALLELISM,
        "nodePlayStageParallelism": _PARALLELISM,
        "nodeLeaseParallelism": _PARALLELISM,
        "podsOnNodeSyncParallelism": _PARALLELISM,
    }
    documents: list[Any] = [
        {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration"}
        | {"options": options}
    ]
    for name in names:
        documents += _documents(name)
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return path


def storage_classes() -> list[dict[str, Any]]:
    """The storage classes whose claims the stages of volumes serve; the first is the default."""
    return [
        _storage_class(STORAGE_CLASS, "Immediate", default=True),
        _storage_class(LOCAL_STORAGE_CLASS, "WaitForFirstConsumer", default=False),
    ]


def _documents(name: str) -> list[Any]:
    file = _FOLDER / f"{name}.yaml"
    if not file.is_file():
        raise ControlPlaneError(f"no stages {name!r} in {_FOLDER}")
    return list(yaml.safe_load_all(file.read_text()))


def _storage_class(name: str, binding: str, *, default: bool) -> dict[str, Any]:
    annotation = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotation},
        "provisioner": "kwok.x-k8s.io/volume",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
    }
