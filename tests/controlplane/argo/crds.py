"""The two kinds of Argo that a run needs, without their schemas."""

from typing import Any

Json = dict[str, Any]

GROUP = "argoproj.io"
VERSION = "argoproj.io/v1alpha1"


def custom_resource_definitions() -> list[Json]:
    """Workflow and WorkflowTaskResult: any field may be written, the status like all others."""
    return [
        _definition("Workflow", "workflows"),
        _definition("WorkflowTaskResult", "workflowtaskresults"),
    ]


def _definition(kind: str, plural: str) -> Json:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
