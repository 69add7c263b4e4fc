"""Marks on the steps of a Workflow of KFP's, as KFP writes them had the pipeline carried them.

KFP hands labels and annotations of a step to its executor as arguments, to a template made for
their numbers (`metadata-1-2-...`), and to its driver with the step's other Kubernetes settings.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    HINTS_ANNOTATION,
    SCHEDULER_LABEL,
    TYPE_LABEL,
)
from kfp_placement_kube.kinds import JsonObject

_EXECUTOR = re.compile(r"(?:metadata-\d+-\d+-)?((?:retry-)?system-container-)executor")
_KEY = re.compile(r"pod-metadata-(label|annotation)-key((?:-\d+)?)")
_PREFIX = "pod-metadata-"


@dataclass(frozen=True)
class Mark:
    """Marks of a step.

    Attributes:
        duration: duration as authors write it, for a node of speed 1.
        type: type of the step.
    """

    duration: str
    type: str = "Transform"


def with_marks(workflow: Mapping[str, Any], mark_of: Callable[[str], Mark]) -> JsonObject:
    """The Workflow with marks on every step that runs a container.

    Args:
        workflow: Workflow as KFP's API server submits it.
        mark_of: task name -> its marks.
    """
    marked = copy.deepcopy(dict(workflow))
    spec = marked["spec"]
    made = {template["name"]: template for template in spec["templates"]}
    given = dict(made)
    parameters = {each["name"]: each for each in spec["arguments"].get("parameters", ())}
    for template in given.values():
        tasks = {task["name"]: task for task in (template.get("dag") or {}).get("tasks", ())}
        for task in tasks.values():
            if _EXECUTOR.fullmatch(task["template"]):
                _mark(task, tasks[f"{task['name']}-driver"], mark_of, given, made, parameters)
    spec["templates"] = list(made.values())
    spec["arguments"]["parameters"] = list(parameters.values())
    return marked


def _mark(
    task: JsonObject,
    driver: JsonObject,
    mark_of: Callable[[str], Mark],
    given: Mapping[str, JsonObject],
    made: dict[str, JsonObject],
    parameters: dict[str, JsonObject],
) -> None:
    """Mark one step: its executor's arguments and template, its driver's settings."""
    mark = mark_of(task["name"])
    metadata = _metadata_of(task)
    metadata["label"] |= {SCHEDULER_LABEL: DEFAULT_SCHEDULER, TYPE_LABEL: mark.type}
    metadata["annotation"][HINTS_ANNOTATION] = json.dumps({"v": 1, "duration": mark.duration})
    arguments = _others(task["arguments"]["parameters"])
    for key, value, name, text in _numbered(metadata):
        arguments += [{"name": key, "value": name}, {"name": value, "value": text}]
    task["arguments"]["parameters"] = arguments
    match = _EXECUTOR.fullmatch(task["template"])
    assert match
    counts = f"metadata-{len(metadata['annotation'])}-{len(metadata['label'])}-"
    for kind in ("executor", "impl"):
        name = f"{counts}{match[1]}{kind}"
        if name not in made:
            base = given[task["template"].removesuffix("executor") + kind]
            made[name] = _template(base, name, metadata)
    task["template"] = f"{counts}{match[1]}executor"
    _tell_driver(driver, metadata, f"kubernetes-marked-{len(parameters)}", parameters)


def _metadata_of(task: JsonObject) -> dict[str, dict[str, str]]:
    """Annotations and labels that a step has already."""
    values = {each["name"]: each.get("value", "") for each in task["arguments"]["parameters"]}
    metadata: dict[str, dict[str, str]] = {"annotation": {}, "label": {}}
    for name, key in values.items():
        if match := _KEY.fullmatch(name):
            metadata[match[1]][key] = values[f"{_PREFIX}{match[1]}-val{match[2]}"]
    return metadata


def _numbered(metadata: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Parameter of the key, parameter of the value, key, value; one of a kind has no number."""
    for kind, entries in metadata.items():
        for number, (key, value) in enumerate(entries.items(), 1):
            suffix = f"-{number}" if len(entries) > 1 else ""
            yield f"{_PREFIX}{kind}-key{suffix}", f"{_PREFIX}{kind}-val{suffix}", key, value


def _others(parameters: list[JsonObject]) -> list[JsonObject]:
    return [each for each in parameters if not each["name"].startswith(_PREFIX)]


def _template(base: JsonObject, name: str, metadata: Mapping[str, Mapping[str, str]]) -> JsonObject:
    """The template of an executor or its pod for this many annotations and labels."""
    template = {**copy.deepcopy(base), "name": name}
    names = [each for key, value, _, _ in _numbered(metadata) for each in (key, value)]
    inputs = template["inputs"]
    inputs["parameters"] = [*_others(inputs["parameters"]), *({"name": each} for each in names)]
    for call in (template.get("dag") or {}).get("tasks", ()):
        arguments = call["arguments"]
        handed = [{"name": each, "value": _given(each)} for each in names]
        arguments["parameters"] = [*_others(arguments["parameters"]), *handed]
        call["template"] = name.removesuffix("executor") + "impl"
    if "dag" not in template:
        _write_metadata(template, metadata)
    return template


def _write_metadata(template: JsonObject, metadata: Mapping[str, Mapping[str, str]]) -> None:
    written = template.setdefault("metadata", {})
    for kind in ("annotation", "label"):
        entries = written.get(f"{kind}s") or {}
        fixed = {key: text for key, text in entries.items() if not key.startswith("{{")}
        pairs = _numbered({kind: metadata[kind]})
        written[f"{kind}s"] = fixed | {_given(key): _given(value) for key, value, _, _ in pairs}


def _tell_driver(
    driver: JsonObject,
    metadata: Mapping[str, Mapping[str, str]],
    name: str,
    parameters: dict[str, JsonObject],
) -> None:
    """Settings of the step's own: those it had, with the marks."""
    arguments = {each["name"]: each for each in driver["arguments"]["parameters"]}
    config: JsonObject = {}
    if before := arguments.get("kubernetes-config"):
        referred = before["value"].removeprefix("{{workflow.parameters.").removesuffix("}}")
        config = json.loads(parameters[referred]["value"])
    config["podMetadata"] = {f"{kind}s": dict(entries) for kind, entries in metadata.items()}
    parameters[name] = {"name": name, "value": json.dumps(config)}
    arguments["kubernetes-config"] = {
        "name": "kubernetes-config",
        "value": f"{{{{workflow.parameters.{name}}}}}",
    }
    driver["arguments"]["parameters"] = list(arguments.values())


def _given(name: str) -> str:
    return f"{{{{inputs.parameters.{name}}}}}"
