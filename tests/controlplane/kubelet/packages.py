"""The package of a run, as drivers of KFP 3 read it: their command line has no more than names.

Drivers of KFP 2.x are handed task and container on their command line. Those of KFP 3 ask KFP's API
for the run's package and find their task in it. Here the name of their node says where it is.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.kubelet.drivers import PARENT_TASK, Json, read_arguments

Package = Sequence[Json]
"""The documents of a package: the pipeline, and Kubernetes' settings if there are any."""

_BRACKETS = re.compile(r"\([^)]*\)")


def driver_arguments(
    command_line: Sequence[str], node_name: str, packages: Mapping[str, Package]
) -> dict[str, str]:
    """Return the arguments of a driver; one of KFP 3 gets task and container from its package.

    Args:
        command_line: arguments of its container.
        node_name: name of its node in the Workflow.
        packages: packages by the name of a Workflow, or by that of a pipeline for all Workflows of
            the pipeline; drivers of others get nothing.
    """
    arguments = read_arguments(command_line)
    names = (arguments.get("run_name", ""), arguments.get("pipeline_name", ""))
    package = next((packages[name] for name in names if name in packages), None)
    if PARENT_TASK not in arguments or package is None:
        return arguments
    levels = levels_of_driver(package[0], node_name)
    return arguments | {
        "task": json.dumps(_with_items(package[0], levels)),
        "container": json.dumps(_container(package[0], levels[-1])),
    }


def levels_of_driver(pipeline: Json, node_name: str) -> list[Json]:
    """Return the task whose driver has this node name, after the tasks that it is in.

    The first is the run itself, whose driver is the only one with a single level.
    """
    names = _BRACKETS.sub("", node_name).split(".")[1:]
    levels: list[Json] = [{}]
    for name in names[1:]:
        if name == "onExit":
            # An exit task is beside the task that it follows.
            levels.pop()
        elif "parameterIterator" not in levels[-1] or name not in _OF_LOOPS:
            tasks = _component(pipeline, levels[-1])["dag"]["tasks"]
            levels.append(tasks[name if name in tasks else name.removesuffix("-driver")])
    return levels


_OF_LOOPS = ("iteration-driver", "iteration-iterations")


def _component(pipeline: Json, task: Json) -> Json:
    component: Json = pipeline["root"]
    if task:
        component = pipeline["components"][task["componentRef"]["name"]]
    return component


def _container(pipeline: Json, task: Json) -> Json:
    executors: Any = pipeline.get("deploymentSpec", {}).get("executors", {})
    label = _component(pipeline, task).get("executorLabel")
    container: Json = executors.get(label, {}).get("container", {})
    return container


def _with_items(pipeline: Json, levels: list[Json]) -> Json:
    """The task; if it loops over a parameter with a default, with the items of this default."""
    task = levels[-1]
    iterator = task.get("parameterIterator", {})
    name = iterator.get("items", {}).get("inputParameter")
    items: Any = None
    for level in reversed(levels):
        given = level.get("inputs", {}).get("parameters", {}).get(name)
        if given is None:
            definitions = _component(pipeline, level).get("inputDefinitions", {})
            items = definitions.get("parameters", {}).get(name, {}).get("defaultValue")
            break
        items = given.get("runtimeValue", {}).get("constant")
        name = given.get("componentInputParameter")
    if not isinstance(items, list):
        return task
    return {**task, "parameterIterator": {**iterator, "items": {"raw": json.dumps(items)}}}
