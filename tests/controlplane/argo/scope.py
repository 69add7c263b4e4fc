"""What the tasks of a DAG may refer to."""

import json
from collections.abc import Mapping
from typing import Any

from tests.controlplane.argo.exceptions import TemplateError, UnresolvedError
from tests.controlplane.argo.state import Run
from tests.controlplane.argo.substitution import substitute_text
from tests.controlplane.argo.templates import as_text, parameters_of

Json = dict[str, Any]


def outputs_of(run: Run, prefix: str, node: Json) -> dict[str, str]:
    """The names under which a finished task is known to others."""
    if node["type"] == "Retry":
        attempts = run.attempts(node)
        node = attempts[-1] if attempts else node
    return {
        f"{prefix}.outputs.parameters.{entry['name']}": as_text(entry["value"])
        for entry in parameters_of(node.get("outputs"))
        if entry.get("value") is not None
    }


def empty_outputs(prefix: str, template: Mapping[str, Any]) -> dict[str, str]:
    """What a task that was skipped is taken to have said: its declared outputs, empty."""
    return {
        f"{prefix}.outputs.parameters.{entry['name']}": ""
        for entry in parameters_of(template.get("outputs"))
    }


def collected_outputs(prefix: str, nodes: list[Json]) -> dict[str, str]:
    """The outputs of a loop's iterations as lists, in order of iteration."""
    ordered = sorted(nodes, key=lambda node: int(node["name"].rsplit("(", 1)[1].split(":")[0]))
    lists: dict[str, list[str]] = {}
    for node in ordered:
        for entry in parameters_of(node.get("outputs")):
            lists.setdefault(entry["name"], []).append(as_text(entry.get("value", "")))
    return {
        f"{prefix}.outputs.parameters.{name}": json.dumps(values) for name, values in lists.items()
    }


def declared_outputs(template: Mapping[str, Any], values: Mapping[str, str]) -> Json | None:
    """The outputs of a DAG, from those of its tasks.

    Raises:
        TemplateError: one of them cannot be resolved and has no default.
    """
    declared = parameters_of(template.get("outputs"))
    if not declared:
        return None
    found = []
    for entry in declared:
        source = entry.get("valueFrom")
        if source is None:
            raise TemplateError("output parameters must have a valueFrom specified")
        try:
            text = substitute_text(source.get("parameter", ""), values, ("tasks",))
        except UnresolvedError:
            if "default" not in source:
                raise
            text = as_text(source["default"])
        kept = {key: value for key, value in entry.items() if key != "valueFrom"}
        found.append({**kept, "value": text})
    return {"parameters": found}
