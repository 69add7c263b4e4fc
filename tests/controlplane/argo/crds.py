"""The kinds of Argo that a run needs, without their schemas."""

from typing import Any

Json = dict[str, Any]

VERSION = "argoproj.io/v1alpha1"


def custom_resource_definitions() -> list[Json]:
    """Workflow and the like: any field may be written, the status like all others."""
    return [
        free_definition(VERSION, "Workflow", "workflows"),
        free_definition(VERSION, "WorkflowTaskResult", "workflowtaskresults"),
        free_definition(VERSION, "WorkflowTemplate", "workflowtemplates"),
        free_definition(
            VERSION, "ClusterWorkflowTemplate", "clusterworkflowtemplates", namespaced=False
        ),
    ]


def free_definition(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Json:
    """The definition of a kind in which any field may be written."""
    group, name = api_version.split("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [version],
        },
    }
