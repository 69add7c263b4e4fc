"""Templates of a Workflow: found, completed with the defaults, filled with arguments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.strategic_merge import strategic_merge
from tests.controlplane.argo.substitution import substitute

Json = dict[str, Any]


class Templates:
    """The templates of one Workflow; what it returns must not be changed."""

    def __init__(self, spec: Mapping[str, Any], stored: Mapping[str, Json]) -> None:
        own = {entry["name"]: entry for entry in spec.get("templates") or []}
        self._templates = {**stored, **own}
        self._defaults = spec.get("templateDefaults") or {}
        self._metadata = spec.get("podMetadata") or {}
        self._resolved: dict[str, Json] = {}

    def resolve(self, name: str) -> Json:
        """A template as it is executed: with the pods' metadata and the defaults.

        Raises:
            TemplateError: there is none of that name.
        """
        if name not in self._templates:
            raise TemplateError(f"template '{name}' not found")
        if name not in self._resolved:
            self._resolved[name] = self._completed(self._templates[name])
        return self._resolved[name]

    def _completed(self, template: Json) -> Json:
        metadata = dict(template.get("metadata") or {})
        for part in ("annotations", "labels"):
            merged = {**(metadata.get(part) or {}), **(self._metadata.get(part) or {})}
            if merged:
                metadata[part] = merged
        completed: Json = strategic_merge(self._defaults, {**template, "metadata": metadata})
        return completed


def template_name(task: Json) -> str:
    """The name of a task's template; of one in a WorkflowTemplate, the key by which it is kept."""
    named = task.get("templateRef")
    return f"namespaced/{named['name']}/{named['template']}" if named else task["template"]


def as_text(value: Any) -> str:
    """A parameter's value as Argo holds it: text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


def parameters_of(holder: Mapping[str, Any] | None) -> list[Json]:
    """The parameters of inputs, outputs or arguments; none for None."""
    return list((holder or {}).get("parameters") or [])


def fill_template(
    template: Json, arguments: Mapping[str, Any], globals_: Mapping[str, str]
) -> Json:
    """A template with its inputs set from arguments or defaults, and substituted: global names
    first, its own inputs and outputs then.

    Raises:
        TemplateError: an input has neither argument nor default.
    """
    supplied = {entry["name"]: entry for entry in parameters_of(arguments)}
    inputs = []
    for entry in parameters_of(template.get("inputs")):
        filled = dict(entry)
        if filled.get("value") is None and "default" in filled:
            filled["value"] = filled["default"]
        given = supplied.get(entry["name"], {}).get("value")
        if given is not None:
            filled["value"] = given
        if filled.get("value") is None:
            raise TemplateError(f"inputs.parameters.{entry['name']} was not supplied")
        filled["value"] = as_text(filled["value"])
        inputs.append(filled)
    if inputs:
        template = {**template, "inputs": {**template["inputs"], "parameters": inputs}}
    outer: Json = substitute(template, globals_)
    result: Json = substitute(outer, {**globals_, **_own_names(outer)})
    return result


def _own_names(template: Mapping[str, Any]) -> dict[str, str]:
    """A template's inputs, and the paths of its outputs."""
    inputs = parameters_of(template.get("inputs"))
    values = {f"inputs.parameters.{entry['name']}": as_text(entry["value"]) for entry in inputs}
    values["inputs.parameters"] = json.dumps(inputs, separators=(",", ":"))
    return values | _output_paths(parameters_of(template.get("outputs")))


def _output_paths(outputs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    paths = {}
    for entry in outputs:
        path = (entry.get("valueFrom") or {}).get("path")
        if path:
            paths[f"outputs.parameters.{entry['name']}.path"] = path
    return paths


def global_parameters(workflow: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of `{{workflow...}}` in a Workflow."""
    metadata = workflow["metadata"]
    values = {
        "workflow.name": metadata["name"],
        "workflow.uid": metadata.get("uid", ""),
        "workflow.creationTimestamp": metadata.get("creationTimestamp", ""),
    }
    for entry in parameters_of(workflow["spec"].get("arguments")):
        values[f"workflow.parameters.{entry['name']}"] = as_text(entry["value"])
    return values
