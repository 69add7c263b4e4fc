"""Kueue beside the project, where somebody has built it.

Nothing of Kueue is part of this project: its program and its manifests are in a folder that whoever
runs the tests names, the sources of a release with `kueue` built in them.
"""

import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.build import kustomize
from tests.controlplane.exceptions import ControlPlaneError, ControlPlaneUnavailableError
from tests.controlplane.objects import an_object

Json = dict[str, Any]

NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
_CONFIGURATION = ("kueue-manager-config", "controller_manager_config.yaml")
_NOT_INSTALLED = {"APIService", "ConfigMap", "Deployment", "Service"}
"""Kinds of its manifests that only matter where it runs in a pod."""


@dataclass(frozen=True)
class KueueProgram:
    """Kueue, built elsewhere.

    Attributes:
        folder: folder with the program `kueue` and `config`, like that of Kueue's sources.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Look whether both are there."""
        if not os.access(self.program, os.X_OK):
            raise ControlPlaneUnavailableError(
                f"{self.program} is not a program: build it with `go build -mod=vendor -o kueue"
                " ./cmd/kueue`"
            )
        if not (self._manifests / "kustomization.yaml").is_file():
            raise ControlPlaneUnavailableError(
                f"no kustomization in {self._manifests}: name the folder with Kueue's sources"
            )

    @property
    def program(self) -> Path:
        """Path of Kueue's program."""
        return self.folder / "kueue"

    @property
    def _manifests(self) -> Path:
        return self.folder / "config" / "default"

    @cached_property
    def _rendered(self) -> list[Json]:
        command = [str(kustomize()), "build", str(self._manifests)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ControlPlaneError(f"kustomize cannot render {self._manifests}: {done.stderr}")
        return list(yaml.load_all(done.stdout, yaml.CSafeLoader))

    def items(self, host: str, port: int) -> list[Json]:
        """Return the objects that Kueue's users apply, in order, with webhooks outside the cluster.

        Its Service is an external name: the API server asks there, and checks the certificate by
        the name of the Service all the same.

        Args:
            host: host of its webhooks.
            port: port of its webhooks.
        """
        items = [item for item in self._rendered if item["kind"] not in _NOT_INSTALLED]
        for item in items:
            for client in _webhook_clients(item):
                client["service"]["port"] = port
        return [*items, _service(host)]

    def configuration(self, changes: Json) -> Json:
        """Return Kueue's configuration as shipped, with other values of some fields."""
        name, file = _CONFIGURATION
        (config_map,) = (
            item
            for item in self._rendered
            if item["kind"] == "ConfigMap" and item["metadata"]["name"] == name
        )
        return {**yaml.safe_load(config_map["data"][file]), **changes}


def _service(host: str) -> Json:
    spec = {"type": "ExternalName", "externalName": host}
    return an_object("v1", "Service", "kueue-webhook-service", NAMESPACE, spec=spec)


def _webhook_clients(item: Json) -> list[Json]:
    """Return where the API server finds the webhooks that an object registers."""
    if item["kind"] == "CustomResourceDefinition":
        webhook = item["spec"].get("conversion", {}).get("webhook")
        return [] if webhook is None else [webhook["clientConfig"]]
    return [each["clientConfig"] for each in item.get("webhooks", ())]
