"""Plain Argo Workflows (DAG and steps templates with our labels on their pods) -> task tree."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError, InputError, LimitError
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.readers.argo.kfp_workflow import SOURCE
from kfp_placement_engine.readers.argo.plain_templates import (
    POD_KINDS,
    merge,
    template_defaults,
    template_leaf,
)
from kfp_placement_engine.readers.argo.plain_text import TagReader, output_tasks
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.fields import (
    as_list,
    as_mapping,
    as_name,
    as_text,
    as_texts,
    scalar_text,
)
from kfp_placement_engine.readers.kfp.arguments import missing_notices
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    NumberSequence,
    Runtime,
)
from kfp_placement_engine.readers.tree.tasks import (
    MAX_TREE_DEPTH,
    Dag,
    Leaf,
    Loop,
    OutputSources,
    Task,
    TaskTree,
)

_DEPENDENCY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]*)(?:\.[A-Za-z]+)?")


def plain_workflow_tree(
    spec: dict[str, Any], metadata: dict[str, Any], name: str, options: ReadOptions
) -> TaskTree:
    """Read a Workflow that was not made by KFP.

    Args:
        spec: the Workflow's spec.
        metadata: the Workflow's metadata.
        name: the file's name, for messages.
        options: arguments are taken from here.

    Raises:
        ArgumentError: an argument that it does not take.
        InputError: malformed.
        LimitError: nested too deep.
    """
    workflow = as_text(metadata.get("name"), f"{name}: metadata.name")
    generated = as_text(metadata.get("generateName"), f"{name}: metadata.generateName")
    namespace = as_text(metadata.get("namespace"), f"{name}: metadata.namespace")
    parameters, missing = _parameters(spec, options, name)
    variables = {"workflow.name": workflow, "workflow.namespace": namespace}
    known = {key: text for key, text in variables.items() if text}
    reader = _PlainReader(spec, TagReader(parameters, known), name)
    root = reader.root(parameters)
    return TaskTree(
        name=generated.rstrip("-") or workflow or name,
        source=SOURCE,
        root=root,
        # Argo hands the Workflow's parameters to the entrypoint as its inputs.
        arguments=parameters,
        missing_arguments=tuple(missing),
        run_claims=run_claims(spec, name),
        notices=(*missing_notices(missing), *dict.fromkeys(reader.notices)),
        workflow=workflow,
        namespace=namespace,
    )


def _parameters(
    spec: dict[str, Any], options: ReadOptions, name: str
) -> tuple[dict[str, str], list[str]]:
    place = f"{name}: spec.arguments"
    listed = as_list(as_mapping(spec.get("arguments"), place).get("parameters"), place)
    names = [as_name(as_mapping(entry, place).get("name"), place) for entry in listed]
    for given in options.arguments:
        if given not in names:
            close = difflib.get_close_matches(str(given), names, 3) or names[:5]
            hint = f"it has {', '.join(close)}" if close else "it has no parameters"
            raise ArgumentError(f"{name}: the Workflow has no parameter {given!r:.80}; {hint}")
    values = named_parameters(spec.get("arguments"), place)
    values.update({key: scalar_text(value) for key, value in options.arguments.items()})
    return values, [key for key in names if key not in values]


class _PlainReader:
    def __init__(self, spec: dict[str, Any], tags: TagReader, name: str) -> None:
        self._spec = spec
        self._tags = tags
        self._name = name
        self._defaults = as_mapping(spec.get("templateDefaults"), f"{name}: templateDefaults")
        self._templates = WorkflowTemplates(spec, name)
        self._bodies: dict[str, Leaf | Dag | None] = {}
        self._open: list[str] = []
        self.notices: list[Notice] = []

    def root(self, parameters: Mapping[str, str]) -> Dag:
        """The outermost DAG; a Workflow of a single pod is one of a single task."""
        entrypoint = as_name(
            self._tags.plain(self._spec.get("entrypoint")), f"{self._name}: spec.entrypoint"
        )
        body = self._named(entrypoint, f"{self._name}: spec.entrypoint")
        inputs = {name: Constant(text) for name, text in parameters.items()}
        lone = {entrypoint: Task(entrypoint, body, inputs=inputs)}
        tasks = dict(body.tasks) if isinstance(body, Dag) else lone
        handler = as_text(self._spec.get("onExit"), f"{self._name}: spec.onExit")
        if handler:
            place = f"{self._name}: spec.onExit"
            tasks["onExit"] = Task("onExit", self._named(handler, place), exit_of=tuple(tasks))
        defaults = body.defaults if isinstance(body, Dag) else {}
        return Dag(tasks, defaults=defaults, place=self._name)

    def _named(self, template: str, place: str) -> Leaf | Dag | None:
        if template in self._open:
            message = f"{place}: template {template:.80} calls itself; it is planned once"
            self.notices.append(Notice("recursive-template", message))
            return None
        if len(self._open) > MAX_TREE_DEPTH:
            raise LimitError(f"{place}: templates nested deeper than {MAX_TREE_DEPTH} levels")
        if template not in self._templates:
            raise InputError(f"{place}: template {template!r:.80} does not exist")
        if template not in self._bodies:
            self._open.append(template)
            where = f"{self._name}: template {template:.80}"
            self._bodies[template] = self._body(self._templates.template(template), where)
            self._open.pop()
        return self._bodies[template]

    def _body(self, template: dict[str, Any], place: str) -> Leaf | Dag | None:
        merged = merge(self._defaults, template)
        if merged.get("dag") is not None or merged.get("steps") is not None:
            return self._dag(merged, place)
        if any(merged.get(kind) is not None for kind in POD_KINDS):
            return template_leaf(merged, self._spec, self._tags, place)
        if any(merged.get(kind) is not None for kind in ("suspend", "http", "plugin")):
            return None
        raise InputError(f"{place}: has no container, script, dag, steps or other kind known here")

    def _dag(self, template: dict[str, Any], place: str) -> Dag:
        tasks: dict[str, Task] = {}
        if template.get("dag") is not None:
            dag = as_mapping(template["dag"], f"{place}: dag")
            listed = as_list(dag.get("tasks"), f"{place}: dag.tasks")
            entries = [as_mapping(entry, f"{place}: dag.tasks") for entry in listed]
            names = {as_name(entry.get("name"), f"{place}: dag.tasks: name") for entry in entries}
            for entry in entries:
                self._add_task(tasks, entry, self._dag_dependencies(entry, names, place), place)
        else:
            before: tuple[str, ...] = ()
            for group in as_list(template["steps"], f"{place}: steps"):
                listed = group if isinstance(group, list) else [group]
                entries = [as_mapping(entry, f"{place}: steps") for entry in listed]
                for entry in entries:
                    self._add_task(tasks, entry, before, place)
                here = tuple(as_name(entry.get("name"), f"{place}: steps") for entry in entries)
                before = here or before
        parameters, artifacts = self._outputs(template, place)
        defaults = template_defaults(template, self._tags, place)
        return Dag(tasks, parameters, artifacts, defaults, place)

    def _dag_dependencies(
        self, entry: dict[str, Any], names: set[str], place: str
    ) -> tuple[str, ...]:
        where = f"{place}: task {as_text(entry.get('name'), place):.80}"
        listed = list(as_texts(entry.get("dependencies"), f"{where}: dependencies"))
        depends = as_text(entry.get("depends"), f"{where}: depends")
        listed.extend(_DEPENDENCY.findall(depends))
        inputs, artifacts = self._arguments(entry, where)
        loop = self._loop(entry, where)
        read = [*inputs.values(), *artifacts.values(), *([loop.items] if loop else [])]
        producers = (name for expression in read for name in output_tasks(expression))
        listed.extend(name for name in producers if name in names)
        return tuple(dict.fromkeys(listed))

    def _add_task(
        self,
        tasks: dict[str, Task],
        entry: dict[str, Any],
        depends_on: tuple[str, ...],
        place: str,
    ) -> None:
        name = as_name(entry.get("name"), f"{place}: task name")
        where = f"{place}: task {name:.80}"
        if name in tasks:
            raise InputError(f"{place}: two tasks are called {name:.80}")
        inputs, artifacts = self._arguments(entry, where)
        body = self._task_body(entry, where)
        tasks[name] = Task(
            name=name,
            body=body,
            depends_on=depends_on,
            inputs=inputs,
            artifacts={**self._outside_artifacts(entry), **artifacts},
            condition=as_text(entry.get("when"), f"{where}: when"),
            loop=self._loop(entry, where),
        )
        hooks = as_mapping(entry.get("hooks"), f"{where}: hooks")
        hook = as_mapping(hooks.get("exit"), f"{where}: hooks.exit")
        handler = as_text(hook.get("template") or entry.get("onExit"), f"{where}: onExit")
        if handler:
            exit_name = f"{name}.onExit"
            tasks[exit_name] = Task(exit_name, self._named(handler, where), exit_of=(name,))

    def _task_body(self, entry: dict[str, Any], place: str) -> Leaf | Dag | None:
        if entry.get("inline") is not None:
            return self._body(as_mapping(entry["inline"], f"{place}: inline"), place)
        if entry.get("templateRef") is not None:
            reference = as_mapping(entry["templateRef"], f"{place}: templateRef")
            target = as_text(reference.get("name"), f"{place}: templateRef.name")
            message = f"{place}: template {target:.80} is not in this file; it counts as one step"
            self.notices.append(Notice("template-elsewhere", message))
            return Leaf(place=place)
        name = self._tags.plain(as_name(entry.get("template"), f"{place}: template"))
        if "{{" in name:
            message = f"{place}: which template it runs is known only at run time"
            self.notices.append(Notice("template-elsewhere", message))
            return Leaf(place=place)
        return self._named(name, place)

    def _arguments(
        self, entry: dict[str, Any], place: str
    ) -> tuple[dict[str, Expression], dict[str, Expression]]:
        arguments = as_mapping(entry.get("arguments"), f"{place}: arguments")
        inputs: dict[str, Expression] = {}
        for item in as_list(arguments.get("parameters"), f"{place}: arguments.parameters"):
            fields = as_mapping(item, f"{place}: arguments.parameters")
            name = as_name(fields.get("name"), f"{place}: arguments.parameters: name")
            has_value = fields.get("value") is not None
            inputs[name] = self._tags.text(fields["value"]) if has_value else Runtime()
        artifacts: dict[str, Expression] = {}
        for item in as_list(arguments.get("artifacts"), f"{place}: arguments.artifacts"):
            fields = as_mapping(item, f"{place}: arguments.artifacts")
            name = as_name(fields.get("name"), f"{place}: arguments.artifacts: name")
            source = fields.get("from")
            artifacts[name] = self._tags.text(source) if isinstance(source, str) else Runtime()
        return inputs, artifacts

    def _outside_artifacts(self, entry: dict[str, Any]) -> dict[str, Expression]:
        """Input artifacts whose place the task's template names itself."""
        template = self._templates.template(str(entry.get("template")))
        place = f"{self._name}: inputs.artifacts"
        inputs = as_mapping(template.get("inputs"), place)
        found: dict[str, Expression] = {}
        for item in as_list(inputs.get("artifacts"), place):
            fields = as_mapping(item, place)
            if set(fields) - {"name", "path", "mode", "optional", "archive", "globalName"}:
                found[as_name(fields.get("name"), place)] = Runtime()
        return found

    def _loop(self, entry: dict[str, Any], place: str) -> Loop | None:
        if entry.get("withItems") is not None:
            return Loop(self._tags.structure(as_list(entry["withItems"], f"{place}: withItems")))
        if entry.get("withParam") is not None:
            return Loop(self._tags.text(entry["withParam"]))
        if entry.get("withSequence") is not None:
            fields = as_mapping(entry["withSequence"], f"{place}: withSequence")
            count = self._tags.text(fields["count"]) if "count" in fields else None
            end = self._tags.text(fields["end"]) if "end" in fields else None
            return Loop(NumberSequence(self._tags.text(fields.get("start", "0")), end, count))
        return None

    def _outputs(
        self, template: dict[str, Any], place: str
    ) -> tuple[Mapping[str, OutputSources], Mapping[str, OutputSources]]:
        outputs = as_mapping(template.get("outputs"), f"{place}: outputs")
        parameters = {}
        for item in as_list(outputs.get("parameters"), f"{place}: outputs.parameters"):
            fields = as_mapping(item, f"{place}: outputs.parameters")
            source = as_mapping(fields.get("valueFrom"), f"{place}: outputs.parameters")
            name = as_text(fields.get("name"), f"{place}: outputs.parameters")
            parameters[name] = self._output(source.get("parameter"))
        artifacts = {}
        for item in as_list(outputs.get("artifacts"), f"{place}: outputs.artifacts"):
            fields = as_mapping(item, f"{place}: outputs.artifacts")
            name = as_text(fields.get("name"), f"{place}: outputs.artifacts")
            artifacts[name] = self._output(fields.get("from"))
        return parameters, artifacts

    def _output(self, source: Any) -> OutputSources:
        expression = self._tags.text(source)
        task, key = getattr(expression, "task", None), getattr(expression, "key", None)
        return ((task, key),) if isinstance(task, str) and isinstance(key, str) else ()
