"""A reader of Argo Workflows that KFP's API server has made, before any pod of them exists.

Each KFP task is two Argo tasks: a driver, and the task itself. The component, container and task
spec are arguments of the driver. Container specs are shared by hash, so they are found by these
arguments and never by component names.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.readers.argo.kfp_dialect import (
    CONTAINER_DRIVER,
    CONTAINER_EXECUTOR,
    DAG_DRIVER,
    IMPORTER,
)
from kfp_placement_engine.readers.argo.workflow_defaults import WorkflowDefaults
from kfp_placement_engine.readers.argo.workflow_templates import (
    Arguments,
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import container_leaf, importer_leaf, input_defaults
from kfp_placement_engine.readers.kfp.tasks import dag_outputs, dependencies, read_task
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression
from kfp_placement_engine.readers.tree.tasks import Dag, Leaf, Names, Nesting, Task, TaskTree

SOURCE = "argo-workflow"

_SUCCEEDED = re.compile(r"([A-Za-z0-9_-]+)(?:\.[A-Za-z]+)?")
_METADATA = re.compile(r"^pod-metadata-(label|annotation)-key(-\d+)?$")


def kfp_workflow_tree(spec: Fields, metadata: Fields) -> TaskTree:
    """Read a Workflow made by KFP.

    Args:
        spec: the Workflow's spec, at the place of its file.
        metadata: the Workflow's metadata.

    Raises:
        InputError: the Workflow is malformed.
        LimitError: the Workflow is nested too deeply.
    """
    reader = _WorkflowReader(spec)
    component, runtime, template = reader.entry()
    file = spec.place
    values = Fields(runtime.raw, file).mapping("parameterValues")
    defaults, missing = pipeline_arguments(Fields(component.raw, file), {}, file)
    root = reader.dag(template, component)
    missing = [parameter for parameter in missing if parameter not in values]
    return TaskTree(
        name=reader.pipeline_name()
        or metadata.text("generateName").rstrip("-")
        or metadata.text("name")
        or file.spelled,
        source=SOURCE,
        root=root,
        arguments={**defaults, **values},
        missing_arguments=tuple(missing),
        has_drivers=True,
        run_claims=run_claims(spec),
        notices=tuple(missing_notices(missing)),
        workflow=metadata.text("name"),
        namespace=metadata.text("namespace"),
        run_id=metadata.fields("labels").text(RUN_ID_LABEL),
    )


class _DrivenTask(NamedTuple):
    """Task with its driver task; None = it has no driver."""

    task: Fields
    driver: Fields | None

    @property
    def first(self) -> Fields:
        """The task that runs first; it has KFP's arguments and the dependencies."""
        return self.driver or self.task


class _LoopTasks(NamedTuple):
    """Tasks of a loop.

    Attributes:
        driver: driver of the iterations.
        item: body of an iteration.
        parallelism: number of iterations that run at once; 0 = any.
    """

    driver: Fields
    item: _DrivenTask
    parallelism: int


class _WorkflowReader:
    def __init__(self, spec: Fields) -> None:
        self._file = spec.place
        self._entrypoint = spec.name("entrypoint")
        self._templates = WorkflowTemplates(spec)
        self._defaults = WorkflowDefaults(spec, self._templates)
        options = self._templates.command_line(DAG_DRIVER, CONTAINER_DRIVER)
        self._driver_options = options
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
        component = self._templates.json_argument(arguments, "component", place)
        return component, runtime, template

    def pipeline_name(self) -> str:
        """Return the pipeline's own name from the drivers' options; "" = they have none."""
        options = pairwise(self._driver_options)
        return next((value for option, value in options if option == "--pipeline_name"), "")

    def dag(self, template: str, component: Fields) -> Dag:
        """Return the DAG of a template, as one object however often it is used."""
        if template in self._dags:
            return self._dags[template]
        place = self._templates.place(template)
        component = Fields(component.raw, place)
        with self._nesting.inside(template, place):
            tasks = self._tasks(template, place)
        dag = Dag(tasks, dag_outputs(component), input_defaults(component), place)
        self._dags[template] = dag
        return dag

    def _tasks(self, template: str, place: Place) -> dict[str, Task]:
        own = _with_drivers(self._templates.dag_tasks(template))
        exits: dict[str, list[str]] = {}
        for name, each in own.items():
            hook = each.task.fields("hooks").fields("exit").text("template")
            if hook:
                exits.setdefault(hook, []).append(name)
        groups: list[tuple[dict[str, _DrivenTask], Names]] = [(own, ())]
        for hook, after in exits.items():
            inside = _with_drivers(self._templates.dag_tasks(hook))
            groups.append((inside, tuple(sorted(after))))
        names = {name for group, _ in groups for name in group}
        tasks: dict[str, Task] = {}
        for group, exit_of in groups:
            for name, each in group.items():
                if name in tasks:
                    raise place.error(f"two tasks are called {name:.80}")
                tasks[name] = self._task(name, each, names, exit_of)
        return tasks

    def _task(self, name: str, driven: _DrivenTask, names: set[str], exit_of: Names) -> Task:
        waits = _SUCCEEDED.findall(driven.first.text("depends"))
        waits = [other for other in waits if other != f"{name}-driver"]
        place, loop = driven.task.place, self._loop_tasks(driven.task)
        arguments = named_parameters(driven.first if loop is None else loop.driver)
        body, inputs = self._body(driven if loop is None else loop.item, place)
        spec = self._templates.json_argument(arguments, "task", place)
        if loop is not None and loop.parallelism:
            # Argo obeys this limit, should it differ from the pipeline's own.
            policy = {"iteratorPolicy": {"parallelismLimit": loop.parallelism}}
            spec = Fields({**spec.raw, **policy}, place)
        listed = (other for other in dependencies(spec) if other in names)
        return read_task(
            name,
            spec,
            body,
            depends_on=() if exit_of else tuple(dict.fromkeys((*waits, *listed))),
            exit_of=exit_of,
            extra_inputs=inputs,
        )

    def _body(
        self, driven: _DrivenTask, place: Place
    ) -> tuple[Leaf | Dag, Mapping[str, Expression]]:
        """Return the leaf or DAG that a task runs, with all its fields at the place of the task."""
        template = driven.task.name("template")
        own = named_parameters(driven.task)
        arguments = named_parameters(driven.first)
        component = self._templates.json_argument(arguments, "component", place)
        if template.startswith(IMPORTER):
            importer = self._templates.json_argument(arguments, "importer", place)
            if template != IMPORTER:
                importer = Fields({**importer.raw, "downloadToWorkspace": True}, place)
            return self._defaults.under(importer_leaf(importer, component), template), {}
        if template != CONTAINER_DRIVER and not template.endswith(CONTAINER_EXECUTOR):
            return self.dag(template, component), {}
        container = self._templates.json_argument(arguments, "container", place)
        config = self._templates.json_argument(arguments, "kubernetes-config", place)
        metadata = _pod_metadata(own)
        if metadata:
            config = Fields({**config.raw, "podMetadata": metadata}, place)
        spec = self._templates.json_argument(arguments, "task", place)
        if not self._caching:
            spec = Fields({**spec.raw, "cachingOptions": {}}, place)
        leaf, inputs = container_leaf(container, config, component, spec)
        return self._defaults.under(leaf, template), inputs

    def _loop_tasks(self, task: Fields) -> _LoopTasks | None:
        """Return the tasks of a loop; None for other tasks."""
        name = task.text("template")
        template = self._templates.template(name)
        if "dag" not in template:
            return None
        tasks = self._templates.dag_tasks(name)
        iterations = tasks.get("iteration-iterations")
        if iterations is None or "withSequence" not in iterations:
            return None
        driver = tasks.get("iteration-driver")
        inside = self._templates.dag_tasks(iterations.name("template"))
        item = inside.get("iteration-item")
        if driver is None or item is None:
            raise task.error("loop without iteration-driver or iteration-item")
        driven = _DrivenTask(item, inside.get("iteration-item-driver"))
        return _LoopTasks(driver, driven, template.count("parallelism"))


def _with_drivers(tasks: dict[str, Fields]) -> dict[str, _DrivenTask]:
    """Return the tasks of a DAG by name, each with its driver task if it has one."""
    drivers = {
        name
        for name, task in tasks.items()
        if task.get("template") in (CONTAINER_DRIVER, DAG_DRIVER)
        and name.endswith("-driver")
        and name.removesuffix("-driver") in tasks
    }
    return {
        name: _DrivenTask(task, tasks[f"{name}-driver"] if f"{name}-driver" in drivers else None)
        for name, task in tasks.items()
        if name not in drivers
    }


def _pod_metadata(arguments: Arguments) -> dict[str, dict[str, str]]:
    """Return labels and annotations, which are in the executor's arguments."""
    metadata: dict[str, dict[str, str]] = {}
    for name, key in arguments.items():
        match = _METADATA.match(name)
        if match:
            value = arguments.get(name.replace("-key", "-val", 1), "")
            metadata.setdefault(f"{match.group(1)}s", {})[key] = value
    return metadata
