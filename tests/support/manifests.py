"""The installation as kustomize renders it, and how it gets into a cluster and out again."""

import functools
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.api import Api
from tests.controlplane.build import kustomize
from tests.controlplane.exceptions import ApiError, ControlPlaneError
from tests.controlplane.housekeeping import delete_pods
from tests.controlplane.waiting import wait_until

JsonObject = dict[str, Any]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
GROUP = "kfp-placement.dev"
NAMESPACE = "kfp-placement"
"""Where our processes live."""

_DEFINITION = "CustomResourceDefinition"


def rendered(*features: str) -> list[JsonObject]:
    """The base with features, as `kubectl apply -k` would send it, in that order.

    Args:
        features: names of folders in `deploy/features`, in the order of an overlay.
    """
    return list(yaml.load_all(_build(features), yaml.CSafeLoader))


@functools.cache
def _build(features: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # kustomize takes no absolute paths.
        to_deploy = os.path.relpath(DEPLOY, os.path.realpath(folder))
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{to_deploy}/base"],
            "components": [f"{to_deploy}/features/{name}" for name in features],
            "sortOptions": {"order": "fifo"},
        }
        Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        command = [str(kustomize()), "build", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ControlPlaneError(f"kustomize cannot render {overlay}: {done.stderr}")
    return done.stdout


def of_kind(items: Iterable[JsonObject], kind: str) -> Iterator[JsonObject]:
    """Those of one kind."""
    return (item for item in items if item["kind"] == kind)


def apply(api: Api, items: Iterable[JsonObject]) -> None:
    """Apply objects one after the other; a definition is waited for."""
    for item in items:
        api.patch(item, item, how="apply")
        if item["kind"] == _DEFINITION:
            wait_until(partial(_is_served, api, item), f"{item['metadata']['name']} to be served")


def remove(api: Api, items: Sequence[JsonObject]) -> None:
    """Delete objects in reverse order, and wait until the definitions and namespaces are gone."""
    for item in reversed(items):
        api.delete(item)
    # Nodes that are gone end no pods.
    delete_pods(api, NAMESPACE)
    for item in items:
        if item["kind"] in (_DEFINITION, "Namespace"):
            kind, name = item["kind"], item["metadata"]["name"]
            gone = partial(_is_gone, api, item["apiVersion"], kind, name)
            wait_until(gone, f"{kind} {name} to be gone")


def _is_gone(api: Api, api_version: str, kind: str, name: str) -> bool:
    return api.find(api_version, kind, name) is None


def _is_served(api: Api, definition: JsonObject) -> bool:
    """Whether objects can be read; some time after it is established there is no storage yet."""
    spec = definition["spec"]
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    try:
        api.list(version, spec["names"]["kind"])
    except ApiError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS):
            return False
        raise
    return True
