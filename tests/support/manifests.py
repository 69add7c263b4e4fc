"""The installation as kustomize renders it, and how it gets into a cluster and out again."""

import functools
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.api import Api
from tests.controlplane.build import kustomize
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.housekeeping import delete_pods
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT
from tests.support.custom_resources import DEFINITION, is_served, remove_crds

DEPLOY = ROOT / "deploy"
GROUP = "kfp-placement.dev"
NAMESPACE = "kfp-placement"
"""Namespace in which our processes run."""


def rendered(*features: str, **overlay: Any) -> list[JsonObject]:
    """The base with features, as `kubectl apply -k` would send it, in that order.

    Args:
        features: names of folders in `deploy/features`, in the order of an overlay.
        overlay: other fields of the overlay, as in its file.

    Raises:
        ControlPlaneError: kustomize cannot render it.
    """
    return list(yaml.load_all(_build(features, yaml.safe_dump(overlay)), yaml.CSafeLoader))


@functools.cache
def _build(features: Sequence[str], more: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # kustomize takes no absolute paths.
        to_deploy = os.path.relpath(DEPLOY, os.path.realpath(folder))
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{to_deploy}/base"],
            "components": [f"{to_deploy}/features/{name}" for name in features],
            "sortOptions": {"order": "fifo"},
            **yaml.safe_load(more),
        }
        Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        command = [str(kustomize()), "build", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ControlPlaneError(f"kustomize cannot render {overlay}: {done.stderr}")
    return done.stdout


def a_queue(namespace: str, name: str = "default", **spec: Any) -> JsonObject:
    """A RunQueue."""
    return an_object(API_VERSION, "RunQueue", name, namespace, spec=spec)


def of_kind(items: Iterable[JsonObject], kind: str) -> Iterator[JsonObject]:
    """Return the objects of one kind."""
    return (item for item in items if item["kind"] == kind)


def shipped_variables(items: Iterable[JsonObject], container: str) -> dict[str, str]:
    """Return what the Deployments set for a container, except for what only a pod has."""
    return {
        variable["name"]: variable["value"]
        for deployment in of_kind(items, "Deployment")
        for each in deployment["spec"]["template"]["spec"]["containers"]
        if each["name"] == container
        for variable in each["env"]
        if "value" in variable
    }


def apply(api: Api, items: Iterable[JsonObject]) -> None:
    """Apply objects one after another; a definition is waited for."""
    for item in items:
        api.patch(item, item, how="apply")
        if item["kind"] == DEFINITION:
            wait_until(partial(is_served, api, item), f"{item['metadata']['name']} to be served")


def remove(api: Api, items: Sequence[JsonObject]) -> None:
    """Delete objects in reverse order, and wait until the definitions and namespaces are gone."""
    definitions = list(of_kind(items, DEFINITION))
    for item in reversed(items):
        if item not in definitions:
            api.delete(item)
    # Nodes that are gone end no pods.
    delete_pods(api, NAMESPACE)
    remove_crds(api, definitions)
    for item in of_kind(items, "Namespace"):
        name = item["metadata"]["name"]
        wait_until(partial(_is_gone, api, item), f"namespace {name} to be gone")


def _is_gone(api: Api, item: JsonObject) -> bool:
    return api.find(item["apiVersion"], item["kind"], item["metadata"]["name"]) is None
