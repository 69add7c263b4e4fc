"""Answers of KFP's drivers, from nothing but their own command line.

A container driver says whether the step is skipped or cached and how its pod is patched; a DAG
driver gives its id, whether its condition holds, and the width of a loop. What is missing on
the command line of KFP 3's drivers is added before, from the package (`packages.py`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.controlplane.kubelet.placement import placement_of

Json = dict[str, Any]

EXECUTION_ID = "1"

PARENT_TASK = "parent_task_id"
"""Argument that only drivers of KFP 3 have."""


@dataclass(frozen=True)
class DriverChoices:
    """Choices of drivers that their command line does not tell.

    Attributes:
        iteration_count: width of loops whose items are not in the pipeline, or of all loops.
        iteration_counts: task -> width, for loops that have another.
        assume_width: every loop has that width, whatever the pipeline says.
        conditions: task -> outcome, for those that are not true.
        cached: tasks that are found in the cache.
        with_placement: claims, selectors, tolerations and the like become part of the patch.
        parameters: values of inputs, for `{{$.inputs.parameters[...]}}` and for claims they name.
    """

    iteration_count: int = 2
    iteration_counts: Mapping[str, int] = field(default_factory=dict)
    assume_width: bool = False
    conditions: Mapping[str, bool] = field(default_factory=dict)
    cached: frozenset[str] = frozenset()
    with_placement: bool = True
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_arguments(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` pairs of a driver; a flag without a value is ""."""
    values: dict[str, str] = {}
    name = ""
    for text in arguments:
        if text.startswith("--") and not name:
            key, has_value, value = text[2:].partition("=")
            values[key] = value
            name = "" if has_value else key
        elif text.startswith("--") and name and " " not in text and "{" not in text:
            name = text[2:]
            values[name] = ""
        elif name:
            values[name] = text
            name = ""
    return values


def driver_answer(
    arguments: Mapping[str, str], workflow: str, choices: DriverChoices | None = None
) -> dict[str, str]:
    """The outputs of a driver: parameter -> value.

    Args:
        arguments: arguments of its command line, read.
        workflow: the name of its Workflow.
        choices: choices that it makes at run time.
    """
    choices = choices or DriverChoices()
    task = arguments.get("task_name", "")
    condition = str(choices.conditions.get(task, True)).lower()
    if arguments.get("type") == "CONTAINER":
        cached = task in choices.cached
        patch = "" if cached else json.dumps(_patch(arguments, workflow, choices))
        return {
            "pod-spec-patch": patch,
            "cached-decision": str(cached).lower(),
            "condition": condition,
        }
    identity = "parent-dag-task-id-path" if PARENT_TASK in arguments else "execution-id"
    return {
        identity: EXECUTION_ID,
        "iteration-count": str(_width(arguments, choices)),
        "condition": condition,
    }


def read_object(text: str) -> Json:
    """The JSON object of a text; {} if it is none."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _width(arguments: Mapping[str, str], choices: DriverChoices) -> int:
    count = choices.iteration_counts.get(arguments.get("task_name", ""), choices.iteration_count)
    if choices.assume_width:
        return count
    items = read_object(arguments.get("task", "")).get("parameterIterator", {}).get("items", {})
    try:
        listed = json.loads(items.get("raw", ""))
    except (ValueError, RecursionError):
        return count
    return len(listed) if isinstance(listed, list) else count


def _patch(arguments: Mapping[str, str], workflow: str, choices: DriverChoices) -> Json:
    container = read_object(arguments.get("container", ""))
    main = {
        "name": "main",
        "image": container.get("image", ""),
        "command": ["/kfp-launcher/launch"],
        "resources": resources_of(container.get("resources") or {}, choices.parameters),
    }
    patch: Json = {"containers": [main]}
    if choices.with_placement:
        config = read_object(arguments.get("kubernetes_config", ""))
        patch = placement_of(patch, config, container, workflow, choices.parameters)
    return patch


def resources_of(resources: Mapping[str, Any], parameters: Mapping[str, str]) -> Json:
    """A container's resources: the strings where there are any, else the old numbers."""
    limits: Json = {}
    requests: Json = {}
    for kind, divisor in (("Cpu", ""), ("Memory", "G")):
        lower = kind.lower()
        for part, target in (("Limit", limits), ("Request", requests)):
            text = resources.get(f"resource{kind}{part}")
            number = resources.get(f"{lower}{part}")
            if text:
                target[lower] = _filled(text, parameters)
            elif number:
                target[lower] = f"{number:g}{divisor}"
    accelerator = resources.get("accelerator") or {}
    name = accelerator.get("resourceType") or accelerator.get("type")
    count = accelerator.get("resourceCount") or accelerator.get("count")
    if name and count and str(count) != "0":
        limits[_filled(name, parameters)] = _filled(str(count), parameters)
    both = {"limits": limits, "requests": requests}
    return {name: entries for name, entries in both.items() if entries}


def _filled(text: str, parameters: Mapping[str, str]) -> str:
    for name, value in parameters.items():
        text = text.replace(f"{{{{$.inputs.parameters['{name}']}}}}", value)
    return text
