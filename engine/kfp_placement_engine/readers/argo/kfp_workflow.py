"""Argo Workflows as KFP's API server makes them -> task tree, before any pod exists.

Every KFP task is a driver task and a task of its own; what it runs stands in arguments of the
driver. Container specs are shared by hash, so the way leads through the driver's arguments, never
through component names.
"""

import re
from itertools import pairwise
from typing import Any

from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.readers.argo.workflow_defaults import WorkflowDefaults
from kfp_placement_engine.readers.argo.workflow_templates import (
    Arguments,
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.fields import (
    as_count,
    as_mapping,
    as_name,
    as_text,
)
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import container_leaf, importer_leaf, input_defaults
from kfp_placement_engine.readers.kfp.tasks import dag_outputs, dependencies, read_task
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


def is_kfp_workflow(spec: dict[str, Any]) -> bool:
    """Whether a Workflow spec was made by KFP's compiler."""
    arguments = spec.get("arguments")
    parameters = arguments.get("parameters") if isinstance(arguments, dict) else None
    return isinstance(parameters, list) and any(
        isinstance(entry, dict) and entry.get("name") == "components-root" for entry in parameters
    )


def is_older_kfp_workflow(metadata: dict[str, Any]) -> bool:
    """Whether a Workflow comes from KFP before 2.3: components in annotations, not in arguments."""
    annotations = metadata.get("annotations")
    return isinstance(annotations, dict) and _OLD_ROOT in annotations


def kfp_workflow_tree(spec: dict[str, Any], metadata: dict[str, Any], name: str) -> TaskTree:
    """Read a Workflow made by KFP.

    Args:
        spec: the Workflow's spec.
        metadata: the Workflow's metadata.
        name: the file's name, for messages.

    Raises:
        InputError: malformed.
        LimitError: nested too deep.
    """
    reader = _WorkflowReader(spec, name)
    component, runtime, template = reader.entry()
    values = as_mapping(runtime.get("parameterValues"), f"{name}: runtime-config")
    defaults, missing = pipeline_arguments(component, {}, name)
    root = reader.dag(template, component)
    labels = as_mapping(metadata.get("labels"), f"{name}: metadata.labels")
    missing = [parameter for parameter in missing if parameter not in values]
    return TaskTree(
        name=reader.pipeline_name() or _display_name(metadata, name),
        source=SOURCE,
        root=root,
        arguments={**defaults, **values},
        missing_arguments=tuple(missing),
        has_drivers=True,
        run_claims=run_claims(spec, name),
        notices=tuple(missing_notices(missing)),
        workflow=as_text(metadata.get("name"), f"{name}: metadata.name"),
        namespace=as_text(metadata.get("namespace"), f"{name}: metadata.namespace"),
        run_id=as_text(labels.get(RUN_ID_LABEL), f"{name}: metadata.labels"),
    )


def _display_name(metadata: dict[str, Any], name: str) -> str:
    generated = as_text(metadata.get("generateName"), f"{name}: metadata.generateName")
    return generated.rstrip("-") or as_text(metadata.get("name"), name) or name


class _WorkflowReader:
    def __init__(self, spec: dict[str, Any], name: str) -> None:
        self._name = name
        self._entrypoint = as_name(spec.get("entrypoint"), f"{name}: spec.entrypoint")
        self._templates = WorkflowTemplates(spec, name)
        self._defaults = WorkflowDefaults(spec, self._templates, name)
        options = self._templates.command_line(DAG_DRIVER, CONTAINER_DRIVER)
        self._driver_options = options
        # A bare flag up to KFP 2.17, later always with a value.
        off = ("--cache_disabled", "--cache_disabled=true")
        self._caching = not any(option in off for option in options)
        self._dags: dict[str, Dag] = {}
        self._open: list[str] = []

    def entry(self) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The root component, the runtime config and the root DAG's template."""
        tasks = self._templates.dag_tasks(self._entrypoint)
        place = f"{self._name}: template {self._entrypoint:.80}"
        drivers = [task for task in tasks.values() if task.get("template") == DAG_DRIVER]
        others = [task for task in tasks.values() if task.get("template") != DAG_DRIVER]
        if len(drivers) != 1 or len(others) != 1:
            raise InputError(f"{place}: must hold the root driver and the root DAG")
        arguments = named_parameters(drivers[0].get("arguments"), place)
        runtime = self._templates.json_value(arguments.get("runtime-config", "{}") or "{}", place)
        template = as_name(others[0].get("template"), f"{place}: template")
        return (
            self._templates.json_value(arguments.get("component", "{}"), place),
            runtime,
            template,
        )

    def pipeline_name(self) -> str:
        """The pipeline's own name, which the drivers are told."""
        for option, value in pairwise(self._driver_options):
            if option == "--pipeline_name":
                return value
        return ""

    def dag(self, template: str, component: dict[str, Any]) -> Dag:
        """The DAG of a template; one object however often it is used."""
        if template in self._dags:
            return self._dags[template]
        place = f"{self._name}: template {template:.80}"
        if template in self._open:
            raise InputError(f"{place}: contains itself")
        if len(self._open) > MAX_TREE_DEPTH:
            raise LimitError(f"{self._name}: pipelines nested deeper than {MAX_TREE_DEPTH} levels")
        self._open.append(template)
        parameters, artifacts = dag_outputs(component, place)
        defaults = input_defaults(component, place)
        dag = Dag(self._tasks(template, place), parameters, artifacts, defaults, place)
        self._dags[template] = dag
        self._open.pop()
        return dag

    def _tasks(self, template: str, place: str) -> dict[str, Task]:
        found = self._templates.dag_tasks(template)
        drivers = _drivers(found)
        exits: dict[str, list[str]] = {}
        tasks: dict[str, Task] = {}
        names = [name for name in found if name not in drivers]
        for name in names:
            hook = _exit_hook(found[name], place)
            if hook:
                exits.setdefault(hook, []).append(name)
        exit_names = {key: self._exit_names(key) for key in exits}
        known = {*names, *(name for listed in exit_names.values() for name in listed)}
        for name in names:
            driver = found.get(f"{name}-driver") if f"{name}-driver" in drivers else None
            tasks[name] = self._task(found[name], driver, known, (), place)
        for key, after in exits.items():
            inside = self._templates.dag_tasks(key)
            for name in exit_names[key]:
                driver = inside.get(f"{name}-driver")
                targets = tuple(sorted(after))
                if name in tasks:
                    raise InputError(f"{place}: two tasks are called {name:.80}")
                tasks[name] = self._task(inside[name], driver, known, targets, place)
        return tasks

    def _exit_names(self, template: str) -> list[str]:
        found = self._templates.dag_tasks(template)
        drivers = _drivers(found)
        return [name for name in found if name not in drivers]

    def _task(
        self,
        task: dict[str, Any],
        driver: dict[str, Any] | None,
        known: set[str],
        exit_of: tuple[str, ...],
        dag_place: str,
    ) -> Task:
        name = as_name(task.get("name"), f"{dag_place}: task name")
        place = f"{dag_place}: task {name:.80}"
        waits = _depends((driver or task).get("depends"), place)
        waits = tuple(other for other in waits if other != f"{name}-driver")
        loop = self._loop_tasks(task, place)
        if loop is not None:
            iteration_driver, item, item_driver, parallelism = loop
            arguments = self._task_arguments(iteration_driver, place)
            body, inputs = self._body(item, item_driver, place)
        else:
            parallelism = 0
            arguments = self._task_arguments(driver or task, place)
            body, inputs = self._body(task, driver, place)
        spec = self._templates.json_value(arguments.get("task", "{}"), place)
        if parallelism:
            # What Argo obeys, should it differ from what the pipeline said.
            spec = {**spec, "iteratorPolicy": {"parallelismLimit": parallelism}}
        listed = (other for other in dependencies(spec, place) if other in known)
        return read_task(
            name,
            spec,
            body,
            place,
            depends_on=() if exit_of else tuple(dict.fromkeys((*waits, *listed))),
            exit_of=exit_of,
            extra_inputs=inputs,
        )

    def _body(
        self, task: dict[str, Any], driver: dict[str, Any] | None, place: str
    ) -> tuple[Leaf | Dag, dict[str, Expression]]:
        template = as_name(task.get("template"), f"{place}: template")
        own = named_parameters(task.get("arguments"), place)
        arguments = self._task_arguments(driver or task, place)
        component = self._templates.json_value(arguments.get("component", "{}"), place)
        if template.startswith(IMPORTER):
            importer = self._templates.json_value(arguments.get("importer", "{}"), place)
            if template != IMPORTER:
                importer = {**importer, "downloadToWorkspace": True}
            leaf = importer_leaf(importer, component, place)
            return self._defaults.under(leaf, template), {}
        if template != CONTAINER_DRIVER and not template.endswith(EXECUTOR):
            return self.dag(template, component), {}
        container = self._templates.json_value(arguments.get("container", "{}"), place)
        config = self._templates.json_value(arguments.get("kubernetes-config") or "{}", place)
        metadata = _pod_metadata(own)
        if metadata:
            config = {**config, "podMetadata": metadata}
        spec = self._templates.json_value(arguments.get("task", "{}"), place)
        if not self._caching:
            spec = {**spec, "cachingOptions": {}}
        found = container_leaf(container, config, component, spec, place)
        return self._defaults.under(found.leaf, template), dict(found.inputs)

    def _loop_tasks(
        self, task: dict[str, Any], place: str
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, int] | None:
        """Driver, body task and body driver of a loop's iterations, and its parallelism."""
        template = self._templates.template(as_text(task.get("template"), place))
        if "dag" not in template:
            return None
        tasks = self._templates.dag_tasks(as_text(task.get("template"), place))
        iterations = tasks.get("iteration-iterations")
        if iterations is None or "withSequence" not in iterations:
            return None
        driver = tasks.get("iteration-driver")
        inside = self._templates.dag_tasks(
            as_name(iterations.get("template"), f"{place}: template")
        )
        item = inside.get("iteration-item")
        if driver is None or item is None:
            raise InputError(f"{place}: loop without iteration-driver or iteration-item")
        limit = as_count(template.get("parallelism"), f"{place}: parallelism")
        return driver, item, inside.get("iteration-item-driver"), limit

    def _task_arguments(self, task: dict[str, Any], place: str) -> Arguments:
        return named_parameters(task.get("arguments"), f"{place}: arguments")


def _drivers(tasks: dict[str, dict[str, Any]]) -> set[str]:
    """Names of the tasks that only prepare another one of the same DAG."""
    return {
        name
        for name, task in tasks.items()
        if task.get("template") in (CONTAINER_DRIVER, DAG_DRIVER)
        and name.endswith("-driver")
        and name.removesuffix("-driver") in tasks
    }


def _depends(value: Any, place: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_SUCCEEDED.findall(as_text(value, f"{place}: depends"))))


def _exit_hook(task: dict[str, Any], place: str) -> str:
    hooks = as_mapping(task.get("hooks"), f"{place}: hooks")
    hook = as_mapping(hooks.get("exit"), f"{place}: hooks.exit")
    return as_text(hook.get("template"), f"{place}: hooks.exit")


def _pod_metadata(arguments: Arguments) -> dict[str, dict[str, str]]:
    """Labels and annotations as the executor's arguments carry them."""
    metadata: dict[str, dict[str, str]] = {}
    for name, key in arguments.items():
        match = _METADATA.match(name)
        if match:
            value = arguments.get(name.replace("-key", "-val", 1), "")
            metadata.setdefault(f"{match.group(1)}s", {})[key] = value
    return metadata
