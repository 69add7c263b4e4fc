"""A reader of plain Argo Workflows: DAG and steps templates with our labels on their pods."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError
from kfp_placement_engine.model.notices import RECURSIVE_TEMPLATE, Notice
from kfp_placement_engine.model.run_graph import WITHOUT_POD, StepKind
from kfp_placement_engine.readers.argo.keys import SOURCE
from kfp_placement_engine.readers.argo.plain.leaves import inside, template_defaults, template_leaf
from kfp_placement_engine.readers.argo.plain.limits import (
    locks,
    parallelism,
    refused_limits,
    renamed_locks,
    task_notices,
    workflow_notices,
)
from kfp_placement_engine.readers.argo.pod_settings import POD_KINDS, with_defaults
from kfp_placement_engine.readers.argo.references.template_library import (
    TemplateLibrary,
    TemplateSource,
)
from kfp_placement_engine.readers.argo.references.workflow_spec import GIVE_TEMPLATES
from kfp_placement_engine.readers.argo.tags import TagReader, output_tasks
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.formulas.depends_condition import read_depends
from kfp_placement_engine.readers.formulas.when_condition import WhenCondition
from kfp_placement_engine.readers.kfp.arguments import missing_notices, unknown_parameter
from kfp_placement_engine.readers.kubernetes.start_limits import run_limit
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, scalar_text
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expressions,
    NumberSequence,
    Runtime,
    TaskOutput,
)
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import (
    Condition,
    Dag,
    Leaf,
    Loop,
    Names,
    Nesting,
    OutputKind,
    Outputs,
    OutputSources,
    Task,
    TaskTree,
)
from kfp_placement_engine.readers.unused.walk import UnusedFields

_DEPENDENCY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]*)(?:\.[A-Za-z]+)?")

_LOOPS = ("withItems", "withParam", "withSequence")


def plain_workflow_tree(
    spec: Fields, metadata: Fields, library: TemplateLibrary, options: ReadOptions
) -> TaskTree:
    """Read a Workflow that was not made by KFP.

    Args:
        spec: the Workflow's spec, at the place of its file.
        metadata: the Workflow's metadata.
        library: templates outside of the Workflow.
        options: settings, of which the arguments are used.

    Raises:
        ArgumentError: the Workflow does not take one of the arguments.
        InputError: the Workflow is malformed.
        LimitError: the Workflow is nested too deeply.
    """
    workflow, generated = metadata.text("name"), metadata.text("generateName")
    namespace = metadata.text("namespace")
    parameters, missing = _parameters(spec, options)
    variables = {"workflow.name": workflow, "workflow.namespace": namespace}
    named = {key: text for key, text in variables.items() if text}
    reader = _PlainReader(spec, library, TagReader(parameters, named))
    root = reader.root(parameters)
    return TaskTree(
        name=generated.rstrip("-") or workflow or spec.place.spelled,
        source=SOURCE,
        root=root,
        # Argo hands the Workflow's parameters to the entrypoint as its inputs.
        arguments=parameters,
        missing_arguments=tuple(missing),
        parallelism=parallelism(spec),
        run_claims=run_claims(spec),
        end_limit=run_limit(spec),
        notices=(
            *missing_notices(missing),
            *workflow_notices(spec),
            *dict.fromkeys(reader.notices),
            *reader.unused.notices(),
        ),
        workflow=workflow,
        namespace=namespace,
    )


def _parameters(spec: Fields, options: ReadOptions) -> tuple[dict[str, str], list[str]]:
    names = [entry.name("name") for entry in spec.fields("arguments").each("parameters")]
    values = named_parameters(spec)
    if options.entrypoint:
        # A template for others says in its inputs what it takes.
        inputs = _entry_inputs(spec)
        names += [name for name in inputs if name not in names]
        values = {**{name: text for name, text in inputs.items() if text is not None}, **values}
    for given in options.arguments:
        if given not in names:
            raise spec.place.error(unknown_parameter(str(given), names), ArgumentError)
    values.update({key: scalar_text(value) for key, value in options.arguments.items()})
    return values, [key for key in names if key not in values]


def _entry_inputs(spec: Fields) -> dict[str, str | None]:
    """Return the values of the entrypoint's input parameters by name; None = it has none."""
    entry = WorkflowTemplates(spec).template(spec.text("entrypoint"))
    values = dict[str, str | None]()
    for each in entry.fields("inputs").each("parameters"):
        value = each.get("value", each.get("default"))
        values[each.name("name")] = None if value is None else scalar_text(value)
    return values


class _PlainReader:
    """Reader of the templates of one run.

    A template is read with the templates of the object that it is in: those are `_templates` then.
    """

    def __init__(self, spec: Fields, library: TemplateLibrary, tags: TagReader) -> None:
        self._spec = spec
        self._library = library
        self._tags = tags
        self._defaults = spec.mapping("templateDefaults")
        self._templates = WorkflowTemplates(spec)
        self._bodies: dict[tuple[WorkflowTemplates, str, Fields], Leaf | Dag | None] = {}
        self._nesting = Nesting()
        self.notices: list[Notice] = []
        self.unused = UnusedFields(spec)

    def root(self, parameters: Mapping[str, str]) -> Dag:
        """Return the outermost DAG; that of a Workflow of a single pod has a single task."""
        place = self._spec.where("entrypoint")
        entrypoint = place.name(self._tags.plain(self._spec.get("entrypoint")))
        body = self._named(entrypoint, place, self._spec)
        inputs = {name: Constant(text) for name, text in parameters.items()}
        lone = {entrypoint: Task(entrypoint, body, inputs=inputs)}
        tasks = dict(body.tasks) if isinstance(body, Dag) else lone
        handler = _exit_hook(self._spec)
        if handler is not None:
            tasks["onExit"] = self._exit_task("onExit", handler, self._spec, tuple(tasks))
        if isinstance(body, Dag):
            return replace(body, tasks=tasks, outputs={}, place=self._spec.place)
        return Dag(tasks, place=self._spec.place)

    def _named(self, template: str, place: Place, spec: Fields) -> Leaf | Dag | None:
        """Return the leaf or DAG that a template runs, or None where it runs no pod.

        Args:
            template: name of the template.
            place: place that names the template.
            spec: the Workflow's spec, as it is for pods of the template that names this one.
        """
        named = (self._templates, template)
        if named in self._nesting:
            message = f"{place.spelled}: template {template:.80} calls itself; it is planned once"
            self.notices.append(Notice(RECURSIVE_TEMPLATE, message))
            return None
        if template not in self._templates:
            raise place.error(f"template {template!r:.80} does not exist")
        fields = self._templates.template(template)
        # Who calls a DAG does not matter to its pods, and reading it once for each way would take
        # time without end.
        key = (*named, self._spec if _is_dag(fields) else spec)
        if key not in self._bodies:
            with self._nesting.inside(named, self._templates.place(template)):
                within = inside(self._spec, fields)
                self._bodies[key] = self._body(fields, spec, within)
        return self._bodies[key]

    def _body(self, template: Fields, spec: Fields, within: Fields) -> Leaf | Dag | None:
        """Return what a template runs.

        Args:
            template: the template.
            spec: the Workflow's spec, as it is for the template's own pod.
            within: the Workflow's spec, as it is for pods of the template's tasks.
        """
        self.unused.look_at_template(template)
        merged = with_defaults(self._defaults, template)
        self.notices += renamed_locks(merged)
        if _is_dag(merged):
            self.notices += refused_limits(template)
            return self._dag(merged, within)
        if any(merged.get(kind) is not None for kind in POD_KINDS):
            leaf = template_leaf(merged, spec, self._tags)
            return replace(leaf, locks=locks(merged, self._tags))
        for kind in WITHOUT_POD:
            if merged.get(kind) is not None:
                pause = merged.fields(kind).get("duration") if kind is StepKind.SUSPEND else None
                duration = Constant("") if pause is None else self._tags.text(pause)
                return Leaf(
                    kind,
                    duration=duration,
                    locks=locks(merged, self._tags),
                    defaults=template_defaults(merged, self._tags),
                    place=merged.place,
                )
        raise merged.error("has no container, script, dag, steps or other kind known here")

    def _dag(self, template: Fields, spec: Fields) -> Dag:
        tasks: dict[str, Task] = {}
        if template.get("dag") is not None:
            entries = list(template.fields("dag").each("tasks"))
            siblings = {entry.name("name"): entry for entry in entries}
            for entry in entries:
                depends_on = self._dag_dependencies(entry, siblings.keys())
                self._add_task(tasks, entry, depends_on, spec, _trigger(entry, siblings))
        else:
            before: Names = ()
            for group in template.entries("steps"):
                steps = Fields(
                    {"steps": group if isinstance(group, list) else [group]}, template.place
                )
                entries = list(steps.each("steps"))
                for entry in entries:
                    self._add_task(tasks, entry, before, spec)
                before = tuple(entry.name("name") for entry in entries) or before
        return Dag(
            self._awaiting_hooks(self._targeted(template, tasks)),
            self._outputs(template),
            template_defaults(template, self._tags),
            template=template.text("name"),
            parallelism=parallelism(template),
            locks=locks(template, self._tags),
            place=template.place,
        )

    def _targeted(self, template: Fields, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """Return the tasks that a DAG runs: its targets and what they wait for, else all."""
        dag = template.fields("dag")
        target = self._tags.plain(dag.get("target"))
        if not target:
            return dict(tasks)
        if "{{" in target:
            problem = "which of its tasks run is known only at run time (target); all are planned"
            self.notices.append(Notice("dag-target", f"{template.place.spelled}: {problem}"))
            return dict(tasks)
        open_names = [name for name in target.split(" ") if name]
        kept: set[str] = set()
        while open_names:
            name = open_names.pop()
            if name not in tasks:
                raise dag.where("target").error(f"there is no task {name!r:.80}")
            if name not in kept:
                kept.add(name)
                open_names += tasks[name].depends_on
        return {
            name: task
            for name, task in tasks.items()
            if name in kept or not kept.isdisjoint(task.exit_of)
        }

    def _awaiting_hooks(self, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """Return tasks that wait for the exit hooks of what they wait for, as in Argo."""
        hooks = {name: task.name for task in tasks.values() for name in task.exit_of}
        if not hooks:
            return dict(tasks)
        return {
            name: replace(
                task,
                depends_on=(
                    *task.depends_on,
                    *(hooks[before] for before in task.depends_on if before in hooks),
                ),
            )
            for name, task in tasks.items()
        }

    def _dag_dependencies(self, entry: Fields, names: Collection[str]) -> Names:
        task = entry.at(": task {:.80}", entry.text("name"))
        listed = list(task.texts("dependencies"))
        listed.extend(_DEPENDENCY.findall(task.text("depends")))
        inputs, artifacts = self._arguments(task)
        loop = self._loop(task)
        read = [*inputs.values(), *artifacts.values(), *([loop.items] if loop else [])]
        listed.extend(name for each in read for name in output_tasks(each) if name in names)
        return tuple(dict.fromkeys(listed))

    def _add_task(
        self,
        tasks: dict[str, Task],
        entry: Fields,
        depends_on: Names,
        spec: Fields,
        trigger: Condition | None = None,
    ) -> None:
        name = entry.name("name")
        task = entry.at(": task {:.80}", name)
        if name in tasks:
            raise entry.error(f"two tasks are called {name:.80}")
        inputs, artifacts = self._arguments(task)
        body, when = self._task_body(task, spec), task.text("when")
        tasks[name] = Task(
            name=name,
            body=body,
            depends_on=depends_on,
            inputs=inputs,
            artifacts={**self._outside_artifacts(task), **artifacts},
            condition=WhenCondition(when, self._tags.text(when)) if when else None,
            trigger=trigger,
            continues_after=_continues_after(task),
            loop=self._loop(task),
        )
        self.notices.extend(task_notices(task))
        handler = _exit_hook(task)
        if handler is not None:
            hook = self._exit_task(f"{name}.onExit", handler, spec, (name,))
            tasks[hook.name] = replace(hook, is_awaited=True)

    def _exit_task(self, name: str, hook: Fields, spec: Fields, after: Names) -> Task:
        """Return the task of an exit hook, which runs if the hook's expression is true."""
        expression, condition = hook.text("expression"), None
        if expression:
            condition = WhenCondition(expression, self._tags.text(f"{{{{={expression}}}}}"))
        return Task(name, self._task_body(hook, spec), condition=condition, exit_of=after)

    def _task_body(self, task: Fields, spec: Fields) -> Leaf | Dag | None:
        if task.get("inline") is not None:
            # Argo finds the calling template by its name, which an inline one does not have.
            return self._body(task.fields("inline"), spec, within=self._spec)
        templates, name = self._target(task)
        if "{{" in name:
            return self._unknown(task, "which template it runs is known only at run time")
        if templates is None:
            return self._unknown(task, name, f"; {GIVE_TEMPLATES}")
        here, self._templates = self._templates, templates
        try:
            return self._named(name, task.place, spec)
        finally:
            self._templates = here

    def _target(self, task: Fields) -> tuple[WorkflowTemplates | None, str]:
        """Return the templates among which that of a task is, and its name there.

        None = its object is not known; then a sentence about that is in place of the name.
        """
        if task.get("templateRef") is None:
            return self._templates, self._tags.plain(task.name("template"))
        reference = task.fields("templateRef")
        named = {key: self._tags.plain(reference.name(key)) for key in ("name", "template")}
        source, template = TemplateSource.of({**reference.raw, **named}), named["template"]
        if "{{" in source.name:
            return None, source.name
        templates = self._library.templates(source)
        if template in templates or "{{" in template:
            return templates, template
        if self._library.holds(source):
            raise reference.error(f"{source} has no template {template!r:.80}")
        return None, self._library.problem(source)

    def _unknown(self, task: Fields, problem: str, remedy: str = "") -> Leaf:
        message = f"{task.place.spelled}: {problem}: the task counts as one step{remedy}"
        self.notices.append(Notice("template-elsewhere", message))
        return Leaf(place=task.place)

    def _arguments(self, task: Fields) -> tuple[Expressions, Expressions]:
        arguments = task.fields("arguments")
        inputs: Expressions = {}
        for fields in arguments.each("parameters"):
            name = fields.name("name")
            value = fields.get("value")
            inputs[name] = Runtime() if value is None else self._tags.text(value)
        artifacts: Expressions = {}
        for fields in arguments.each("artifacts"):
            name = fields.name("name")
            source = fields.get("from")
            artifacts[name] = self._tags.text(source) if isinstance(source, str) else Runtime()
        return inputs, artifacts

    def _outside_artifacts(self, task: Fields) -> Expressions:
        """Return input artifacts that the task's template takes from a place outside of the run."""
        if task.get("inline") is not None:
            return {}
        templates, name = self._target(task)
        template = None if templates is None else templates.template(name)
        if template is None or not template.get("inputs"):
            return {}
        inside = {"name", "path", "mode", "optional", "archive", "globalName"}
        return {
            fields.name("name"): Runtime()
            for fields in template.fields("inputs").each("artifacts")
            if set(fields.raw) - inside
        }

    def _loop(self, task: Fields) -> Loop | None:
        if task.get("withItems") is not None:
            return Loop(self._tags.structure(task.entries("withItems")))
        if task.get("withParam") is not None:
            return Loop(self._tags.text(task.get("withParam")))
        if task.get("withSequence") is not None:
            fields = task.fields("withSequence")
            return Loop(
                NumberSequence(
                    self._tags.text(fields.get("start", "0")),
                    self._tags.text(fields.get("end")),
                    self._tags.text(fields.get("count")),
                    formatted=bool(fields.get("format")),
                )
            )
        return None

    def _outputs(self, template: Fields) -> Outputs:
        listed = template.fields("outputs")
        outputs: dict[tuple[OutputKind, str], OutputSources] = {}
        for fields in listed.each("parameters"):
            source = fields.fields("valueFrom").get("parameter")
            outputs["parameters", fields.text("name")] = self._output(source)
        for fields in listed.each("artifacts"):
            outputs["artifacts", fields.text("name")] = self._output(fields.get("from"))
        return outputs

    def _output(self, source: Any) -> OutputSources:
        expression = self._tags.text(source)
        return ((expression.task, expression.key),) if isinstance(expression, TaskOutput) else ()


def _exit_hook(holder: Fields) -> Fields | None:
    """Return what runs when a Workflow or task has ended, with its template; None = nothing does.

    The hook `exit` wins over `onExit`.
    """
    hook = holder.fields("hooks").fields("exit")
    handler = Fields(hook.raw or {"template": holder.get("onExit")}, holder.place)
    return handler if handler.get("template") or handler.get("templateRef") else None


def _is_dag(template: Fields) -> bool:
    return template.get("dag") is not None or template.get("steps") is not None


def _trigger(entry: Fields, siblings: Mapping[str, Fields]) -> Condition | None:
    """Return the condition on the ends of other tasks; None = all of them, as usual."""

    def continues_after(task: str) -> frozenset[str]:
        return _continues_after(siblings[task]) if task in siblings else frozenset()

    def is_loop(task: str) -> bool:
        return task in siblings and any(key in siblings[task] for key in _LOOPS)

    return read_depends(entry.text("depends"), continues_after, is_loop, entry.where("depends"))


def _continues_after(task: Fields) -> frozenset[str]:
    """Return the phases of failures after which Argo still goes on."""
    if "continueOn" not in task:
        return frozenset()
    goes_on = task.fields("continueOn")
    phases = {"failed": "Failed", "error": "Error"}
    return frozenset(phase for key, phase in phases.items() if goes_on.get(key))
