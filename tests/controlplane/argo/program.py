"""Argo's own controller in place of the stand-in, where somebody has one built.

Nothing of Argo is part of this project: both the program and the definitions of its kinds are named
by whoever runs the tests. Pods end and report their outputs as they do for the stand-in.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane.api import Api
from tests.controlplane.argo.settings import (
    EXECUTOR_IMAGE,
    EXECUTOR_SECURITY_CONTEXT,
    KFP_WORKFLOW_DEFAULTS,
)
from tests.controlplane.exceptions import ControlPlaneUnavailableError
from tests.controlplane.objects import JsonObject, an_object
from tests.controlplane.processes import ManagedProcess

NAME = "argo-controller"
NAMESPACE = "argo"
_ENVIRONMENT = {
    "LEADER_ELECTION_DISABLE": "true",
    # Argo looks at a Workflow this long after a pod of it has changed; 10 s by default.
    "DEFAULT_REQUEUE_TIME": "500ms",
}
_CONFIGURATION: JsonObject = {
    "workflowDefaults": dict(KFP_WORKFLOW_DEFAULTS),
    "executor": {"resources": {}, "securityContext": dict(EXECUTOR_SECURITY_CONTEXT)},
    # Its ports are fixed: two control planes at a time would be in each other's way.
    "metricsConfig": {"enabled": False},
    "telemetryConfig": {"enabled": False},
    # The stand-in's pods keep no logs.
    "nodeEvents": {"enabled": False},
    "workflowEvents": {"enabled": False},
}


@dataclass(frozen=True)
class ArgoProgram:
    """Argo's controller, built elsewhere.

    Attributes:
        controller: the program `workflow-controller`.
        definitions: folder with the definitions of its kinds, such as `manifests/base/crds/minimal`
            of its sources.
    """

    controller: Path
    definitions: Path

    def __post_init__(self) -> None:
        """Look whether they are there."""
        if not os.access(self.controller, os.X_OK):
            raise ControlPlaneUnavailableError(f"{self.controller} is no program")
        if not any(self.custom_resource_definitions()):
            raise ControlPlaneUnavailableError(
                f"no CustomResourceDefinition in {self.definitions}: name the folder with Argo's"
            )

    def custom_resource_definitions(self) -> Iterator[JsonObject]:
        """The definitions of its kinds."""
        for path in sorted(self.definitions.glob("*.yaml")):
            for document in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader):
                if document and document.get("kind") == "CustomResourceDefinition":
                    yield document

    def process(self, api: Api, kubeconfig: Path, log: Path) -> ManagedProcess:
        """Configure it for all namespaces; the process is not started yet.

        Args:
            api: API server to which its configuration is written.
            kubeconfig: kubeconfig of its account.
            log: file that takes its output.
        """
        api.create(an_object("v1", "Namespace", NAMESPACE))
        data = {"config": yaml.safe_dump(_CONFIGURATION)}
        name = "workflow-controller-configmap"
        api.create(an_object("v1", "ConfigMap", name, NAMESPACE, data=data))
        line = (
            *(str(self.controller), "--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE),
            *("--executor-image", EXECUTOR_IMAGE, "--loglevel", "warn"),
            *("--qps", "200", "--burst", "300"),
        )
        return ManagedProcess(NAME, line, log, {**os.environ, **_ENVIRONMENT})
