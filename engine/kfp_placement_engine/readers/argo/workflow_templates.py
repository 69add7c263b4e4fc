"""Templates and arguments of an Argo Workflow, checked and by name."""

import re
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.fields import (
    as_list,
    as_mapping,
    as_name,
    as_text,
    as_texts,
)
from kfp_placement_engine.readers.text.documents import parse_json

_PARAMETER = re.compile(r"^\{\{workflow\.parameters\.([^{}]+)\}\}$")

Arguments = dict[str, str]


def named_parameters(value: Any, place: str) -> Arguments:
    """Argo's list of parameters as name -> text; those without a value are left out.

    Raises:
        InputError: malformed.
    """
    fields = as_mapping(value, place)
    found: Arguments = {}
    for entry in as_list(fields.get("parameters"), place):
        parameter = as_mapping(entry, place)
        name = as_name(parameter.get("name"), f"{place}: parameter name")
        text = parameter.get("value", parameter.get("default"))
        if text is not None:
            found[name] = as_text(text, f"{place}: parameter {name:.80}")
    return found


def run_claims(spec: dict[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    """Claims that Argo makes for the run, by the name of their template, with access modes.

    Raises:
        InputError: malformed.
    """
    place = f"{name}: spec.volumeClaimTemplates"
    found = {}
    for entry in as_list(spec.get("volumeClaimTemplates"), place):
        claim = as_mapping(entry, place)
        key = as_name(as_mapping(claim.get("metadata"), place).get("name"), f"{place}: name")
        claim_spec = as_mapping(claim.get("spec"), place)
        found[key] = as_texts(claim_spec.get("accessModes"), f"{place}: accessModes")
    return found


class WorkflowTemplates:
    """What a Workflow's spec holds by name."""

    def __init__(self, spec: dict[str, Any], name: str) -> None:
        """Index a spec.

        Raises:
            InputError: malformed, or two templates of one name.
        """
        self._name = name
        self._arguments = named_parameters(spec.get("arguments"), f"{name}: spec.arguments")
        self._parsed: dict[str, dict[str, Any]] = {}
        self._templates: dict[str, dict[str, Any]] = {}
        for entry in as_list(spec.get("templates"), f"{name}: spec.templates"):
            template = as_mapping(entry, f"{name}: spec.templates")
            key = as_name(template.get("name"), f"{name}: spec.templates: name")
            if key in self._templates:
                raise InputError(f"{name}: two templates are called {key:.80}")
            self._templates[key] = template

    def __contains__(self, template: object) -> bool:
        return template in self._templates

    def template(self, template: str) -> dict[str, Any]:
        """A template, or {}."""
        return self._templates.get(template, {})

    def dag_tasks(self, template: str) -> dict[str, dict[str, Any]]:
        """The tasks of a DAG template.

        Raises:
            InputError: there is no such template, or it is malformed.
        """
        place = f"{self._name}: template {template:.80}"
        if template not in self._templates:
            raise InputError(f"{place}: does not exist")
        dag = as_mapping(self._templates[template].get("dag"), f"{place}: dag")
        tasks: dict[str, dict[str, Any]] = {}
        for entry in as_list(dag.get("tasks"), f"{place}: tasks"):
            task = as_mapping(entry, f"{place}: tasks")
            name = as_name(task.get("name"), f"{place}: task name")
            if name in tasks:
                raise InputError(f"{place}: two tasks are called {name:.80}")
            tasks[name] = task
        return tasks

    def json_value(self, text: str, place: str) -> dict[str, Any]:
        """A mapping from JSON text, or from that of the Workflow's argument that the text names.

        Raises:
            InputError: no JSON mapping, or no such argument.
        """
        match = _PARAMETER.match(text.strip())
        if match is None:
            return as_mapping(parse_json(text, place=place), place)
        name = match.group(1)
        if name not in self._parsed:
            if name not in self._arguments:
                raise InputError(f"{place}: Workflow argument {name:.80} does not exist")
            where = f"{self._name}: argument {name:.80}"
            value = parse_json(self._arguments[name], place=where)
            self._parsed[name] = as_mapping(value, where)
        return self._parsed[name]

    def command_line(self, *templates: str) -> list[str]:
        """Arguments of the container of the first of these templates that has some."""
        for template in templates:
            container = self.template(template).get("container")
            if isinstance(container, dict) and isinstance(container.get("args"), list):
                return [entry for entry in container["args"] if isinstance(entry, str)]
        return []
