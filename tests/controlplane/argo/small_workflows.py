"""Workflows small enough to know by hand how Argo executes them."""

from typing import Any

from tests.controlplane.argo.settings import ControllerSettings

Json = dict[str, Any]

NO_DEFAULTS = ControllerSettings(workflow_defaults={})
"""A controller as before KFP 2.17: no retries unless a template asks for them."""


def step(name: str = "work", **fields: Any) -> Json:
    """A template of one container."""
    return {"name": name, "container": {"image": "busybox:1", "command": ["true"]}, **fields}


def dag(name: str, *tasks: Json, **fields: Any) -> Json:
    """A template of tasks."""
    return {"name": name, "dag": {"tasks": list(tasks)}, **fields}


def task(name: str, template: str = "work", **fields: Any) -> Json:
    """A task of a DAG."""
    return {"name": name, "template": template, **fields}


def arguments(**values: str) -> Json:
    """Arguments of a task."""
    return {"parameters": [{"name": name, "value": value} for name, value in values.items()]}


def workflow(*templates: Json, entrypoint: str = "main", **spec: Any) -> Json:
    """A Workflow as an API server holds it before the controller has seen it."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": "wf",
            "namespace": "default",
            "uid": "11111111-2222-3333-4444-555555555555",
            "creationTimestamp": "2026-01-05T08:00:00Z",
        },
        "spec": {"entrypoint": entrypoint, "templates": list(templates), **spec},
        "status": {},
    }
