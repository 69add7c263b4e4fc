"""A reader of the templates of a plain Workflow, each to the leaf or DAG that it becomes."""

from collections.abc import Mapping
from dataclasses import replace

from kfp_placement_engine.model.notices import HIDDEN_DEMAND, RECURSIVE_TEMPLATE, Notice
from kfp_placement_engine.readers.argo.plain.callees import Callee, CalleeFinder
from kfp_placement_engine.readers.argo.plain.hidden_demand import hidden_demand
from kfp_placement_engine.readers.argo.plain.inputs_outputs import (
    input_defaults,
    outputs_of,
    outside_artifacts,
)
from kfp_placement_engine.readers.argo.plain.leaves import template_leaf
from kfp_placement_engine.readers.argo.plain.limits import (
    locks,
    parallelism,
    refused_limits,
    renamed_locks,
    task_notices,
)
from kfp_placement_engine.readers.argo.plain.pod_leaves import inside
from kfp_placement_engine.readers.argo.plain.tasks import (
    awaiting_hooks,
    exit_task,
    listed_tasks,
    of_targets,
    placed,
)
from kfp_placement_engine.readers.argo.pod_settings import with_defaults
from kfp_placement_engine.readers.argo.references.template_library import INLINE, TemplateLibrary
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.argo.workflow_templates import WorkflowTemplates
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Constant, Expressions
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.tasks import Dag, Nesting, Task
from kfp_placement_engine.readers.unused.walk import UnusedFields

_OPEN_TARGET = "which of its tasks run is known only at run time (target); all are planned"


class TemplateReader:
    """Reader of the templates of one run, those of other objects too.

    Attributes:
        notices: notices so far.
        unused: fields that were not used so far.
    """

    def __init__(self, spec: Fields, library: TemplateLibrary, tags: TagReader) -> None:
        """Take what a Workflow says for all of its templates.

        Args:
            spec: the Workflow's spec, at the place of its file.
            library: templates outside of the Workflow.
            tags: reader of tags.

        Raises:
            InputError: the spec is malformed.
        """
        self._spec = spec
        self._templates = WorkflowTemplates(spec)
        self._callees = CalleeFinder(library, tags)
        self._tags = tags
        self._defaults = spec.mapping("templateDefaults")
        self._bodies: dict[tuple[Callee, Fields], Leaf | Dag | None] = {}
        self._nesting = Nesting()
        self._inline: dict[tuple[WorkflowTemplates, str], Fields] = {}
        self.notices: list[Notice] = []
        self.unused = UnusedFields(spec)

    def root(self, parameters: Mapping[str, str]) -> Dag:
        """Return the outermost DAG; that of a Workflow of a single pod has a single task.

        Args:
            parameters: the Workflow's parameters, which its entrypoint has as inputs.

        Raises:
            InputError: the Workflow is malformed.
            LimitError: its templates are nested too deeply.
        """
        templates = self._templates
        place = self._spec.where("entrypoint")
        entrypoint = place.name(self._tags.plain(self._spec.get("entrypoint")))
        callee = Callee(templates, entrypoint)
        for each in callee.template.fields("inputs").each("parameters"):
            # Only here Argo judges defaults, those that the Workflow leaves.
            if each.text("name") not in parameters:
                self._tags.text(each.get("value", each.get("default")))
        body = self._called(callee, place, self._spec)
        if isinstance(body, Dag):
            root = replace(body, outputs={}, place=self._spec.place)
        else:
            inputs = {name: Constant(text) for name, text in parameters.items()}
            root = Dag({entrypoint: Task(entrypoint, body, inputs=inputs)}, place=self._spec.place)
        hook = exit_task(self._spec, "onExit", tuple(root.tasks), self._tags)
        if hook is None:
            return root
        handler, task = hook
        body, _ = self._run_by(handler, templates, self._spec)
        # The exit handler begins when the entrypoint has given its locks back.
        return replace(root, tasks={**root.tasks, task.name: replace(task, body=body)}, locks=())

    def _called(self, callee: Callee, place: Place, spec: Fields) -> Leaf | Dag | None:
        """Return the leaf or DAG that a template runs, or None where it runs no pod.

        Args:
            callee: the template.
            place: place that names it.
            spec: the Workflow's spec, as it is for pods of the template that calls this one.
        """
        if callee in self._nesting:
            message = f"{place.spelled}: template {callee.name:.80} calls itself"
            self.notices.append(Notice(RECURSIVE_TEMPLATE, f"{message}; it is planned once"))
            return None
        if callee.name not in callee.templates:
            raise place.error(f"template {callee.name!r:.80} does not exist")
        template = callee.template
        # Who calls a DAG does not matter to its pods, and reading it once for each way would take
        # time without end.
        key = callee, self._spec if _is_dag(template) else spec
        if key not in self._bodies:
            with self._nesting.inside(callee, template.place):
                within = inside(self._spec, template)
                self._bodies[key] = self._body(template, callee.templates, spec, within)
        return self._bodies[key]

    def _body(
        self, template: Fields, templates: WorkflowTemplates, spec: Fields, within: Fields
    ) -> Leaf | Dag:
        """Return what a template runs.

        Args:
            template: the template.
            templates: templates of the object that it is in.
            spec: the Workflow's spec, as it is for the template's own pod.
            within: the Workflow's spec, as it is for pods of the template's tasks.
        """
        self.unused.look_at_template(template)
        merged = with_defaults(self._defaults, template)
        self.notices += (*renamed_locks(merged), *hidden_demand(merged, spec))
        if not _is_dag(merged):
            return template_leaf(merged, spec, self._tags.at(template.place))
        self.notices += refused_limits(template)
        return Dag(
            self._tasks(merged, templates, within),
            outputs_of(merged, self._tags),
            input_defaults(merged, self._tags),
            template=merged.text("name"),
            # Argo looks up the template of a running DAG without the defaults.
            parallelism=parallelism(template),
            locks=locks(merged, self._tags),
            place=merged.place,
        )

    def _tasks(
        self, template: Fields, templates: WorkflowTemplates, spec: Fields
    ) -> dict[str, Task]:
        tasks: dict[str, Task] = {}
        dag = template.fields("dag")
        for listed, task in listed_tasks(template, self._tags):
            if task.name in tasks:
                raise listed.error(f"two tasks are called {task.name:.80}")
            entry = placed(listed, task.name)
            body, outside = self._run_by(entry, templates, spec)
            tasks[task.name] = replace(task, body=body, artifacts={**outside, **task.artifacts})
            self.notices += task_notices(entry)
            hook = exit_task(entry, f"{task.name}.onExit", (task.name,), self._tags)
            if hook is not None:
                handler, task = hook
                body, _ = self._run_by(handler, templates, spec)
                tasks[task.name] = replace(task, body=body, is_awaited=True, ends_loop=bool(dag))
        target = self._tags.plain(dag.get("target"))
        if "{{" in target:
            self.notices.append(Notice("dag-target", f"{template.place.spelled}: {_OPEN_TARGET}"))
        elif target:
            tasks = of_targets(target, tasks, dag.where("target"))
        return awaiting_hooks(tasks)

    def _run_by(
        self, task: Fields, templates: WorkflowTemplates, spec: Fields
    ) -> tuple[Leaf | Dag | None, Expressions]:
        """Return what a task or hook runs, and its input artifacts from outside of the run.

        Args:
            task: task or hook.
            templates: templates of the object that the task is in.
            spec: the Workflow's spec, as it is for pods of the task's template.
        """
        if task.get("inline") is not None:
            # Argo finds the calling template by its name, which an inline one does not have.
            inline = self._inline_of(task, templates)
            return self._body(inline, templates, spec, within=self._spec), {}
        callee = self._callees.find(task, templates)
        if isinstance(callee, Callee):
            return self._called(callee, task.place, spec), outside_artifacts(callee.template)
        self.notices.append(Notice("template-elsewhere", f"{task.place.spelled}: {callee}"))
        return Leaf(place=task.place), {}

    def _inline_of(self, task: Fields, templates: WorkflowTemplates) -> Fields:
        """Return the inline template of a task, as Argo runs it.

        Within another object, Argo stores the inline template of the first task of a name, and runs
        it for all tasks of that name.
        """
        own, name = task.fields("inline"), task.text("name")
        if templates is self._templates:
            return own
        stored = f"{INLINE}{name}"
        if stored in templates:
            return templates.template(stored)
        if self._inline.setdefault((templates, name), own).raw != own.raw:
            message = f"{task.place.spelled}: another task of its name has another inline template"
            self.notices.append(Notice(HIDDEN_DEMAND, f"{message}, and Argo runs either for both"))
        return own


def _is_dag(template: Fields) -> bool:
    return template.get("dag") is not None or template.get("steps") is not None
