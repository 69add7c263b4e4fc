"""KFP 3's own Workflows: our stand-in for its compiler makes the same of their packages.

Compared is all but what nothing here reads: images of KFP, variables, most volumes, and options of
the drivers such as proxies.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.kubelet.drivers import read_arguments
from tests.engine.readers.test_workflow_emitter import load_all, sorted_deep
from tests.support.data import data_path
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.run_data import data_files

WORKFLOWS = data_files("kfp-3-draft/workflows", "*.yaml")


def comparable(workflow: dict[str, Any]) -> dict[str, Any]:
    """The Workflow without what is not compared, in a form that order does not matter to."""
    spec = workflow["spec"]
    arguments = {
        each["name"]: sorted_deep(json.loads(each["value"]))
        for each in spec["arguments"].get("parameters", [])
    }
    claims = [
        {"name": each["metadata"]["name"], "spec": each["spec"]}
        for each in spec.get("volumeClaimTemplates", [])
    ]
    templates = {each["name"]: _template(each) for each in spec["templates"]}
    return {
        **{key: entry for key, entry in spec.items() if key != "securityContext"},
        "annotations": workflow["metadata"]["annotations"],
        "arguments": arguments,
        "volumeClaimTemplates": claims,
        "templates": templates,
    }


def _template(template: dict[str, Any]) -> dict[str, Any]:
    kept = {key: entry for key, entry in template.items() if entry and key not in _LEFT_OUT}
    if "dag" in kept:
        kept["dag"] = {task["name"]: _task(task) for task in template["dag"]["tasks"]}
    if "container" in kept:
        kept["container"] = _container(template["container"])
    if "inputs" in kept:
        kept["inputs"] = _by_name(template["inputs"]["parameters"])
    return kept


_LEFT_OUT = ("volumes", "initContainers", "securityContext")


def _container(container: dict[str, Any]) -> dict[str, Any]:
    given = read_arguments(container.get("args", []))
    return {
        "command": container["command"],
        "resources": container["resources"],
        "arguments": {name: value for name, value in given.items() if "inputs." in value},
    }


def _task(task: dict[str, Any]) -> dict[str, Any]:
    arguments = _by_name(task["arguments"]["parameters"])
    if "runtime-config" in arguments:
        text = arguments["runtime-config"]["value"]
        arguments["runtime-config"] = sorted_deep(json.loads(text))
    depends = sorted(task.get("depends", "").split(" && "))
    return {**task, "arguments": arguments, "depends": depends}


def _by_name(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["name"]: each for each in entries}


@pytest.mark.parametrize("path", WORKFLOWS)
def test_it_makes_what_the_compiler_made(path: Path) -> None:
    made = emit_kfp3_workflow(*load_all(data_path("kfp-2.17.0", "pipelines", path.name)))
    assert comparable(made) == comparable(load_all(path)[0])
