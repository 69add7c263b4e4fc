"""A reader of Argo Workflows that KFP's API server has made, before any pod of them exists."""

from collections.abc import Mapping
from itertools import pairwise

from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.readers.argo.keys import SOURCE
from kfp_placement_engine.readers.argo.kfp.defaults import WorkflowDefaults
from kfp_placement_engine.readers.argo.kfp.parts import (
    ArgumentParts,
    OutlineParts,
    PackageParts,
    PartsReader,
    TaskParts,
)
from kfp_placement_engine.readers.argo.kfp.tasks import DrivenTask, loop_tasks, with_drivers
from kfp_placement_engine.readers.argo.kfp_dialect import (
    CONTAINER_DRIVER,
    DAG_DRIVER,
    IMPORTER,
    Dialect,
    is_executor,
)
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import container_leaf, importer_leaf, input_defaults
from kfp_placement_engine.readers.kfp.tasks import dag_outputs, dependencies, read_task
from kfp_placement_engine.readers.kubernetes.start_limits import run_limit
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.tree.expressions import Expression
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.tasks import Dag, Drivers, Names, Nesting, Task, TaskTree
from kfp_placement_engine.readers.unused.walk import unused_in_workflow


def kfp_workflow_tree(
    spec: Fields, metadata: Fields, dialect: Dialect, package: RawMapping | None = None
) -> TaskTree:
    """Read a Workflow made by KFP.

    Args:
        spec: the Workflow's spec, at the place of its file.
        metadata: the Workflow's metadata.
        dialect: KFP that has made it.
        package: pipeline spec of a run of KFP 3; None = only the outline of the run is read.

    Raises:
        InputError: Workflow or package is malformed, or the package is of another run.
        LimitError: the Workflow is nested too deeply.
    """
    templates = WorkflowTemplates(spec)
    parts: PartsReader = ArgumentParts(templates)
    if dialect is Dialect.KFP_3:
        name = pipeline_name(templates)
        parts = OutlineParts() if package is None else PackageParts(package, name)
    reader = _WorkflowReader(spec, templates, dialect, parts)
    component, runtime, template = reader.entry()
    file = spec.place
    values = Fields(runtime.raw, file).mapping("parameterValues")
    defaults, missing = pipeline_arguments(Fields(component.raw, file), {}, file)
    root = reader.dag(template, component)
    missing = [parameter for parameter in missing if parameter not in values]
    return TaskTree(
        name=pipeline_name(templates)
        or metadata.text("generateName").rstrip("-")
        or metadata.text("name")
        or file.spelled,
        source=SOURCE,
        root=root,
        arguments={**defaults, **values},
        missing_arguments=tuple(missing),
        drivers=Drivers.PER_LOOP if dialect is Dialect.KFP_3 else Drivers.PER_ITERATION,
        run_claims=run_claims(spec),
        end_limit=run_limit(spec),
        notices=(*missing_notices(missing), *unused_in_workflow(spec)),
        workflow=metadata.text("name"),
        namespace=metadata.text("namespace"),
        run_id=metadata.fields("labels").text(RUN_ID_LABEL),
        is_outline=parts.is_outline,
    )


def pipeline_name(templates: WorkflowTemplates) -> str:
    """Return the pipeline's own name from the drivers' options; "" = they have none."""
    options = pairwise(templates.command_line(DAG_DRIVER, CONTAINER_DRIVER))
    return next((value for option, value in options if option == "--pipeline_name"), "")


class _WorkflowReader:
    def __init__(
        self, spec: Fields, templates: WorkflowTemplates, dialect: Dialect, parts: PartsReader
    ) -> None:
        self._entrypoint = spec.name("entrypoint")
        self._templates = templates
        self._dialect = dialect
        self._parts = parts
        self._defaults = WorkflowDefaults(spec, self._templates)
        options = self._templates.command_line(DAG_DRIVER, CONTAINER_DRIVER)
        # A bare flag up to KFP 2.17, later always with a value.
        off = ("--cache_disabled", "--cache_disabled=true")
        self._caching = not any(option in off for option in options)
        self._dags: dict[str, Dag] = {}
        self._nesting = Nesting()

    def entry(self) -> tuple[Fields, Fields, str]:
        """Return the root component, the runtime config and the root DAG's template."""
        tasks = self._templates.dag_tasks(self._entrypoint)
        place = self._templates.place(self._entrypoint)
        drivers = [task for task in tasks.values() if task.get("template") == DAG_DRIVER]
        others = [task for task in tasks.values() if task.get("template") != DAG_DRIVER]
        if len(drivers) != 1 or len(others) != 1:
            raise place.error("must hold the root driver and the root DAG")
        arguments = named_parameters(drivers[0])
        runtime = self._templates.json_argument(arguments, "runtime-config", place)
        template = others[0].name("template")
        return self._parts.root(drivers[0], place), runtime, template

    def dag(self, template: str, component: Fields) -> Dag:
        """Return the DAG of a template, as one object however often it is used."""
        if template in self._dags:
            return self._dags[template]
        place = self._templates.place(template)
        component = Fields(component.raw, place)
        if template in self._templates and "dag" not in self._templates.template(template):
            raise place.error("must be a DAG, as KFP makes it of every pipeline and loop")
        with self._nesting.inside(template, place):
            tasks = self._tasks(template, component)
        dag = Dag(tasks, dag_outputs(component), input_defaults(component), place=place)
        self._dags[template] = dag
        return dag

    def _tasks(self, template: str, component: Fields) -> dict[str, Task]:
        own = with_drivers(self._templates.dag_tasks(template))
        exits: dict[str, list[str]] = {}
        for name, each in own.items():
            hook = each.task.fields("hooks").fields("exit").text("template")
            if hook:
                exits.setdefault(hook, []).append(name)
        groups: list[tuple[dict[str, DrivenTask], Names]] = [(own, ())]
        for hook, after in exits.items():
            inside = with_drivers(self._templates.dag_tasks(hook))
            groups.append((inside, tuple(sorted(after))))
        names = {name for group, _ in groups for name in group}
        exit_of_each = {name: exit_of for group, exit_of in groups for name in group}
        self._parts.check_tasks(exit_of_each, component)
        tasks: dict[str, Task] = {}
        for group, exit_of in groups:
            for name, each in group.items():
                if name in tasks:
                    raise component.error(f"two tasks are called {name:.80}")
                tasks[name] = self._task(name, each, component, names, exit_of)
        return tasks

    def _task(
        self, name: str, driven: DrivenTask, dag: Fields, names: set[str], exit_of: Names
    ) -> Task:
        loop = loop_tasks(driven.task, self._templates, self._dialect)
        parts = self._parts.of(name, driven, loop, dag)
        body, inputs = self._body(driven if loop is None else loop.body, parts)
        spec = parts.spec
        if loop is not None and loop.parallelism:
            # Argo obeys this limit, should it differ from the pipeline's own.
            policy = {"iteratorPolicy": {"parallelismLimit": loop.parallelism}}
            spec = Fields({**spec.raw, **policy}, spec.place)
        waits = (*driven.waits(name), *(each for each in dependencies(spec) if each in names))
        return read_task(
            name,
            spec,
            body,
            depends_on=() if exit_of else tuple(dict.fromkeys(waits)),
            exit_of=exit_of,
            extra_inputs=inputs,
            dag=dag,
        )

    def _body(
        self, driven: DrivenTask, parts: TaskParts
    ) -> tuple[Leaf | Dag, Mapping[str, Expression]]:
        """Return the leaf or DAG that a task runs, with all its fields at the place of the task."""
        template, place = driven.task.name("template"), parts.spec.place
        arguments = named_parameters(driven.first)
        if template.startswith(IMPORTER):
            importer = self._templates.json_argument(arguments, "importer", place)
            if template != IMPORTER:
                importer = Fields({**importer.raw, "downloadToWorkspace": True}, place)
            leaf = importer_leaf(importer, parts.component)
            return self._defaults.under(leaf, template), {}
        if template != CONTAINER_DRIVER and not is_executor(template):
            return self.dag(template, parts.component), {}
        config = self._templates.json_argument(arguments, "kubernetes-config", place)
        metadata = driven.pod_metadata()
        if metadata:
            config = Fields({**config.raw, "podMetadata": metadata}, place)
        spec = parts.spec
        if not self._caching:
            spec = Fields({**spec.raw, "cachingOptions": {}}, place)
        leaf, inputs = container_leaf(parts.container, config, parts.component, spec)
        return self._defaults.under(leaf, template), inputs
