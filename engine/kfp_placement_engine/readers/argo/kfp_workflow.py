"""Argo Workflows as KFP's API server makes them -> task tree, before any pod exists.

Every KFP task is a driver task and a task of its own; what it runs is in arguments of the
driver. Container specs are shared by hash, so the way leads through the driver's arguments, never
through component names.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.readers.argo.workflow_defaults import WorkflowDefaults
from kfp_placement_engine.readers.argo.workflow_templates import (
    Arguments,
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import container_leaf, importer_leaf, input_defaults
from kfp_placement_engine.readers.kfp.tasks import dag_outputs, dependencies, read_task
from kfp_placement_engine.readers.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression
from kfp_placement_engine.readers.tree.tasks import MAX_TREE_DEPTH, Dag, Leaf, Task, TaskTree

SOURCE = "argo-workflow"
CONTAINER_DRIVER = "system-container-driver"
DAG_DRIVER = "system-dag-driver"
EXECUTOR = "system-container-executor"
IMPORTER = "system-importer"

_OLD_ROOT = "pipelines.kubeflow.org/components-root"
_SUCCEEDED = re.compile(r"([A-Za-z0-9_-]+)(?:\.[A-Za-z]+)?")
_METADATA = re.compile(r"^pod-metadata-(label|annotation)-key(-\d+)?$")


def is_kfp_workflow(spec: Mapping[str, Any]) -> bool:
    """Whether a Workflow spec was made by KFP's compiler."""
    arguments = spec.get("arguments")
    parameters = arguments.get("parameters") if isinstance(arguments, dict) else None
    return isinstance(parameters, list) and any(
        isinstance(entry, dict) and entry.get("name") == "components-root" for entry in parameters
    )


def is_older_kfp_workflow(metadata: Mapping[str, Any]) -> bool:
    """Whether a Workflow comes from KFP before 2.3: components in annotations, not in arguments."""
    annotations = metadata.get("annotations")
    return isinstance(annotations, dict) and _OLD_ROOT in annotations


def kfp_workflow_tree(spec: Fields, metadata: Fields) -> TaskTree:
    """Read a Workflow made by KFP.

    Args:
        spec: the Workflow's spec, at the place of its file.
        metadata: the Workflow's metadata.

    Raises:
        InputError: malformed.
        LimitError: nested too deeply.
    """
    reader = _WorkflowReader(spec)
    component, runtime, template = reader.entry()
    file = spec.place
    values = Fields(runtime.raw, file).mapping("parameterValues", at="runtime-config")
    defaults, missing = pipeline_arguments(Fields(component.raw, file), {})
    root = reader.dag(template, component)
    labels = metadata.flat("labels", at="labels")
    missing = [parameter for parameter in missing if parameter not in values]
    return TaskTree(
        name=reader.pipeline_name() or _display_name(metadata, file),
        source=SOURCE,
        root=root,
        arguments={**defaults, **values},
        missing_arguments=tuple(missing),
        has_drivers=True,
        run_claims=run_claims(spec),
        notices=tuple(missing_notices(missing)),
        workflow=metadata.text("name"),
        namespace=metadata.text("namespace"),
        run_id=labels.text(RUN_ID_LABEL, at="labels"),
    )


def _display_name(metadata: Fields, file: Place) -> str:
    generated = metadata.text("generateName")
    return generated.rstrip("-") or Fields(metadata.raw, file).text("name", at="") or file.spelled


class _WorkflowReader:
    def __init__(self, spec: Fields) -> None:
        self._file = spec.place
        self._entrypoint = spec.name("entrypoint", at="spec.entrypoint")
        self._templates = WorkflowTemplates(spec)
        self._defaults = WorkflowDefaults(spec, self._templates)
        options = self._templates.command_line(DAG_DRIVER, CONTAINER_DRIVER)
        self._driver_options = options
        # A bare flag up to KFP 2.17, later always with a value.
        off = ("--cache_disabled", "--cache_disabled=true")
        self._caching = not any(option in off for option in options)
        self._dags: dict[str, Dag] = {}
        self._open: list[str] = []

    def entry(self) -> tuple[Fields, Fields, str]:
        """The root component, the runtime config and the root DAG's template."""
        tasks = self._templates.dag_tasks(self._entrypoint)
        place = self._templates.place(self._entrypoint)
        drivers = [task for task in tasks.values() if task.get("template") == DAG_DRIVER]
        others = [task for task in tasks.values() if task.get("template") != DAG_DRIVER]
        if len(drivers) != 1 or len(others) != 1:
            raise place.error("must hold the root driver and the root DAG")
        arguments = named_parameters(drivers[0].get("arguments"), place)
        runtime = self._templates.json_fields(arguments.get("runtime-config", "{}") or "{}", place)
        template = others[0].name("template")
        component = self._templates.json_fields(arguments.get("component", "{}"), place)
        return component, runtime, template

    def pipeline_name(self) -> str:
        """The pipeline's own name, which the drivers are given."""
        for option, value in pairwise(self._driver_options):
            if option == "--pipeline_name":
                return value
        return ""

    def dag(self, template: str, component: Fields) -> Dag:
        """The DAG of a template; one object however often it is used."""
        if template in self._dags:
            return self._dags[template]
        place = self._templates.place(template)
        if template in self._open:
            raise place.error("contains itself")
        if len(self._open) > MAX_TREE_DEPTH:
            raise self._file.error(
                f"pipelines nested deeper than {MAX_TREE_DEPTH} levels", LimitError
            )
        self._open.append(template)
        component = Fields(component.raw, place)
        parameters, artifacts = dag_outputs(component)
        defaults = input_defaults(component)
        dag = Dag(self._tasks(template, place), parameters, artifacts, defaults, place)
        self._dags[template] = dag
        self._open.pop()
        return dag

    def _tasks(self, template: str, place: Place) -> dict[str, Task]:
        dag_tasks = self._templates.dag_tasks(template)
        drivers = _drivers(dag_tasks)
        exits: dict[str, list[str]] = {}
        tasks: dict[str, Task] = {}
        names = [name for name in dag_tasks if name not in drivers]
        for name in names:
            hook = _exit_hook(dag_tasks[name])
            if hook:
                exits.setdefault(hook, []).append(name)
        exit_names = {key: self._exit_names(key) for key in exits}
        known = {*names, *(name for listed in exit_names.values() for name in listed)}
        for name in names:
            driver = dag_tasks.get(f"{name}-driver") if f"{name}-driver" in drivers else None
            tasks[name] = self._task(dag_tasks[name], driver, known, (), place)
        for key, after in exits.items():
            inside = self._templates.dag_tasks(key)
            for name in exit_names[key]:
                driver = inside.get(f"{name}-driver")
                targets = tuple(sorted(after))
                if name in tasks:
                    raise place.error(f"two tasks are called {name:.80}")
                tasks[name] = self._task(inside[name], driver, known, targets, place)
        return tasks

    def _exit_names(self, template: str) -> list[str]:
        dag_tasks = self._templates.dag_tasks(template)
        drivers = _drivers(dag_tasks)
        return [name for name in dag_tasks if name not in drivers]

    def _task(
        self,
        task: Fields,
        driver: Fields | None,
        known: set[str],
        exit_of: tuple[str, ...],
        dag_place: Place,
    ) -> Task:
        name = Fields(task.raw, dag_place).name("name", at="task name")
        task = Fields(task.raw, dag_place.then(": task {:.80}", name))
        waits = _depends(Fields((driver or task).raw, task.place))
        waits = tuple(other for other in waits if other != f"{name}-driver")
        loop = self._loop_tasks(task)
        if loop is not None:
            iteration_driver, item, item_driver, parallelism = loop
            arguments = self._task_arguments(iteration_driver, task.place)
            body, inputs = self._body(item, item_driver, task.place)
        else:
            parallelism = 0
            arguments = self._task_arguments(driver or task, task.place)
            body, inputs = self._body(task, driver, task.place)
        spec = self._templates.json_fields(arguments.get("task", "{}"), task.place)
        if parallelism:
            # What Argo obeys, should it differ from what the pipeline said.
            policy = {"iteratorPolicy": {"parallelismLimit": parallelism}}
            spec = Fields({**spec.raw, **policy}, task.place)
        listed = (other for other in dependencies(spec) if other in known)
        return read_task(
            name,
            spec,
            body,
            depends_on=() if exit_of else tuple(dict.fromkeys((*waits, *listed))),
            exit_of=exit_of,
            extra_inputs=inputs,
        )

    def _body(
        self, task: Fields, driver: Fields | None, place: Place
    ) -> tuple[Leaf | Dag, Mapping[str, Expression]]:
        """What a task runs; all that is read for it is at one place, that of the task."""
        template = Fields(task.raw, place).name("template")
        own = named_parameters(task.get("arguments"), place)
        arguments = self._task_arguments(driver or task, place)
        component = self._templates.json_fields(arguments.get("component", "{}"), place)
        if template.startswith(IMPORTER):
            importer = self._templates.json_fields(arguments.get("importer", "{}"), place)
            if template != IMPORTER:
                importer = Fields({**importer.raw, "downloadToWorkspace": True}, place)
            return self._defaults.under(importer_leaf(importer, component), template), {}
        if template != CONTAINER_DRIVER and not template.endswith(EXECUTOR):
            return self.dag(template, component), {}
        container = self._templates.json_fields(arguments.get("container", "{}"), place)
        config = self._templates.json_fields(arguments.get("kubernetes-config") or "{}", place)
        metadata = _pod_metadata(own)
        if metadata:
            config = Fields({**config.raw, "podMetadata": metadata}, place)
        spec = self._templates.json_fields(arguments.get("task", "{}"), place)
        if not self._caching:
            spec = Fields({**spec.raw, "cachingOptions": {}}, place)
        leaf_with_inputs = container_leaf(container, config, component, spec)
        return self._defaults.under(leaf_with_inputs.leaf, template), leaf_with_inputs.inputs

    def _loop_tasks(self, task: Fields) -> tuple[Fields, Fields, Fields | None, int] | None:
        """Driver, body task and body driver of a loop's iterations, and its parallelism."""
        name = task.text("template", at="")
        template = self._templates.template(name)
        if "dag" not in template:
            return None
        tasks = self._templates.dag_tasks(name)
        iterations = tasks.get("iteration-iterations")
        if iterations is None or "withSequence" not in iterations:
            return None
        driver = tasks.get("iteration-driver")
        inside = self._templates.dag_tasks(Fields(iterations.raw, task.place).name("template"))
        item = inside.get("iteration-item")
        if driver is None or item is None:
            raise task.error("loop without iteration-driver or iteration-item")
        limit = Fields(template.raw, task.place).count("parallelism")
        return driver, item, inside.get("iteration-item-driver"), limit

    def _task_arguments(self, task: Fields, place: Place) -> Arguments:
        return named_parameters(task.get("arguments"), place.then(": arguments"))


def _drivers(tasks: dict[str, Fields]) -> set[str]:
    """Names of the tasks that only prepare another one of the same DAG."""
    return {
        name
        for name, task in tasks.items()
        if task.get("template") in (CONTAINER_DRIVER, DAG_DRIVER)
        and name.endswith("-driver")
        and name.removesuffix("-driver") in tasks
    }


def _depends(task: Fields) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_SUCCEEDED.findall(task.text("depends"))))


def _exit_hook(task: Fields) -> str:
    return task.flat("hooks").flat("exit", at="hooks.exit").text("template", at="hooks.exit")


def _pod_metadata(arguments: Arguments) -> dict[str, dict[str, str]]:
    """Labels and annotations as the executor's arguments carry them."""
    metadata: dict[str, dict[str, str]] = {}
    for name, key in arguments.items():
        match = _METADATA.match(name)
        if match:
            value = arguments.get(name.replace("-key", "-val", 1), "")
            metadata.setdefault(f"{match.group(1)}s", {})[key] = value
    return metadata
