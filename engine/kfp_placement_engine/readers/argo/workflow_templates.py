"""Templates and arguments of an Argo Workflow, checked and by name."""

import re
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import RunClaim, StartLimit
from kfp_placement_engine.readers.kubernetes.claims import made_claim
from kfp_placement_engine.readers.kubernetes.start_limits import SETTINGS, shortest_limit
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, text_or_empty

_PARAMETER = re.compile(r"^\{\{workflow\.parameters\.([^{}]+)\}\}$")

_TEMPLATE = Place("ARGO_TEMPLATE")
_MAX_TEMPLATE_CHARACTERS = 131_072

Arguments = dict[str, str]


def named_parameters(holder: Fields, key: str = "arguments") -> Arguments:
    """Return the parameters in a field by name; those without a value are left out.

    Args:
        holder: a Workflow's spec, a task or a template.
        key: name of the field, `arguments` or `inputs`.

    Raises:
        InputError: the Workflow is malformed.
    """
    arguments: Arguments = {}
    for parameter in holder.fields(key).each("parameters"):
        name = parameter.name("name")
        stated = "value" if "value" in parameter else "default"
        if parameter.get(stated) is not None:
            arguments[name] = parameter.text(stated)
    return arguments


def run_claims(spec: Fields) -> tuple[RunClaim, ...]:
    """Return the claims that Argo makes for the run, with the names of their templates.

    Args:
        spec: the Workflow's spec, at the place of its file.

    Raises:
        InputError: the Workflow is malformed.
    """
    return tuple(
        made_claim(template.fields("metadata").name("name"), template.fields("spec"))
        for template in spec.each("volumeClaimTemplates")
    )


def pod_start_limit(pod: Fields) -> StartLimit | None:
    """Return within which time a pod must run, by the template that Argo gives it.

    Argo writes the template into the environment of the container that prepares the pod. None =
    the template has no limit that can be read, or is not in the pod, as one above 128 KiB is not.

    Raises:
        InputError: the pod is malformed.
    """
    spec = pod.flat("spec")
    for kind in ("initContainers", "containers"):
        for container in spec.each_flat(kind):
            for variable in container.entries("env"):
                match variable:
                    case {"name": "ARGO_TEMPLATE", "value": str(text)}:
                        return _limit_in(text)
                    case _:
                        pass
    return None


def _limit_in(text: str) -> StartLimit | None:
    # Reading JSON takes time, and few templates have a limit.
    if len(text) > _MAX_TEMPLATE_CHARACTERS or not any(f'"{key}"' in text for key in SETTINGS):
        return None
    try:
        template = Fields.of(parse_json(text, place=_TEMPLATE), _TEMPLATE)
    except InputError:
        return None
    given = {setting: text_or_empty(template.get(setting)) for setting in SETTINGS}
    return shortest_limit({setting: value for setting, value in given.items() if value})


class WorkflowTemplates:
    """Templates and arguments of one Workflow spec, by name."""

    def __init__(self, spec: Fields) -> None:
        """Index a spec.

        Args:
            spec: the Workflow's spec, at the place of its file.

        Raises:
            InputError: the spec is malformed, or has two templates of one name.
        """
        self._file = spec.place
        self._arguments = named_parameters(spec)
        self._parsed: dict[str, dict[str, Any]] = {}
        self._templates: dict[str, Fields] = {}
        for template in spec.each("templates"):
            name = template.name("name")
            if name in self._templates:
                raise self._file.error(f"two templates are called {name:.80}")
            self._templates[name] = Fields(template.raw, self.place(name))

    def __contains__(self, template: object) -> bool:
        return template in self._templates

    def place(self, template: str) -> Place:
        """Return the place of a template."""
        return self._file.then(": template {:.80}", template)

    def template(self, name: str) -> Fields:
        """Return a template, without any field if there is none of that name."""
        return self._templates.get(name) or Fields({}, self._file)

    def dag_tasks(self, name: str) -> dict[str, Fields]:
        """Return the tasks of a DAG template by name.

        Raises:
            InputError: there is no such template, or it is malformed.
        """
        place = self.place(name)
        if name not in self._templates:
            raise place.error("does not exist")
        tasks: dict[str, Fields] = {}
        for task in self._templates[name].fields("dag").each("tasks"):
            task_name = task.name("name")
            if task_name in tasks:
                raise place.error(f"two tasks are called {task_name:.80}")
            tasks[task_name] = Fields(task.raw, place.then(": task {:.80}", task_name))
        return tasks

    def json_argument(self, arguments: Arguments, key: str, place: Place) -> Fields:
        """Read a JSON mapping from an argument, or from the Workflow's argument that it names.

        Args:
            arguments: arguments of a task.
            key: name of the argument; a missing argument counts as an empty mapping.
            place: place of the text, and so of the mapping.

        Raises:
            InputError: the text is not a JSON mapping, or the Workflow has no such argument.
        """
        text = arguments.get(key)
        if not text:
            return Fields({}, place)
        match = _PARAMETER.match(text.strip())
        if match is None:
            return Fields.of(parse_json(text, place=place), place)
        name = match.group(1)
        if name not in self._parsed:
            if name not in self._arguments:
                raise place.error(f"Workflow argument {name:.80} does not exist")
            where = self._file.then(": argument {:.80}", name)
            self._parsed[name] = where.mapping(parse_json(self._arguments[name], place=where))
        return Fields(self._parsed[name], place)

    def command_line(self, *templates: str) -> list[str]:
        """Return the container's arguments of the first of these templates that has some."""
        for template in templates:
            container = self.template(template).get("container")
            if isinstance(container, dict) and isinstance(container.get("args"), list):
                return [entry for entry in container["args"] if isinstance(entry, str)]
        return []
