"""The parts of a task by KFP: its task spec, its component and its container spec.

In a Workflow of KFP 2 these three are arguments of the driver. KFP 3 keeps them in the package; a
Workflow without its package says only what its structure shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from typing_extensions import override

from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.argo.kfp.tasks import DrivenTask, LoopTasks, retry_limit
from kfp_placement_engine.readers.argo.kfp_dialect import CONTAINER_DRIVER, IMPORTER, is_executor
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
)
from kfp_placement_engine.readers.kfp.leaves import DRIVER_ONLY_IMAGES
from kfp_placement_engine.readers.kfp.tasks import dependencies, exit_targets, is_exit_task
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.tasks import Names

_NAMED = 3
"""Number of tasks that a message names."""


class _Kind(StrEnum):
    """Kind of a task, as text for people."""

    LOOP = "a loop"
    PIPELINE = "a pipeline"
    CONTAINER = "a container"
    IMPORTER = "an importer"
    VOLUME_CLAIM = "a volume claim"


class TaskParts(NamedTuple):
    """Parts of a task, all at the task's place; a part that KFP does not state is empty.

    Attributes:
        spec: PipelineTaskSpec.
        component: ComponentSpec of what the task runs.
        container: PipelineContainerSpec, if it runs a container.
    """

    spec: Fields
    component: Fields
    container: Fields


class PartsReader(ABC):
    """Reader of the parts of tasks.

    Attributes:
        is_outline: whether images and requests of containers are not among the parts.
    """

    is_outline = False

    @abstractmethod
    def root(self, driver: Fields, place: Place) -> Fields:
        """Return the root component.

        Args:
            driver: Argo task of the root driver.
            place: place of the component.
        """

    # Without a package there is nothing to compare a DAG with.
    def check_tasks(self, exits: Mapping[str, Names], dag: Fields) -> None:  # noqa: B027
        """Refuse a DAG whose tasks are not those of its component.

        Args:
            exits: tasks at whose end a task runs, by its name; empty unless it is an exit task.
            dag: component of the DAG.

        Raises:
            InputError: there are other tasks in the component.
        """

    @abstractmethod
    def of(self, name: str, driven: DrivenTask, loop: LoopTasks | None, dag: Fields) -> TaskParts:
        """Return the parts of a task.

        Args:
            name: name of the task.
            driven: Argo tasks of the task.
            loop: Argo tasks of the loop that it is; None = no loop.
            dag: component of the DAG around it.

        Raises:
            InputError: a part is malformed, or of another task.
        """


class ArgumentParts(PartsReader):
    """Reader of the parts in the drivers' arguments, where KFP 2 keeps them.

    Container specs are shared by hash, so they are read from these arguments and never by the names
    of components.
    """

    def __init__(self, templates: WorkflowTemplates) -> None:
        """Read the arguments of one Workflow."""
        self._templates = templates

    @override
    def root(self, driver: Fields, place: Place) -> Fields:
        """Return the root component."""
        return self._templates.json_argument(named_parameters(driver), "component", place)

    @override
    def of(self, name: str, driven: DrivenTask, loop: LoopTasks | None, dag: Fields) -> TaskParts:
        """Return the parts of a task."""
        stated = named_parameters((driven if loop is None else loop.body).first)
        of_task = stated if loop is None else named_parameters(loop.driver)
        read, place = self._templates.json_argument, driven.task.place
        return TaskParts(
            spec=read(of_task, "task", place),
            component=read(stated, "component", place),
            container=read(stated, "container", place),
        )


class OutlineParts(PartsReader):
    """Reader of what the structure of a KFP 3 Workflow alone shows of a task."""

    is_outline = True

    @override
    def root(self, driver: Fields, place: Place) -> Fields:
        """Return an empty component."""
        return Fields({}, place)

    @override
    def of(self, name: str, driven: DrivenTask, loop: LoopTasks | None, dag: Fields) -> TaskParts:
        """Return the parts that show: retries, loops, conditions, volume claims."""
        place = driven.task.place
        retries = retry_limit(named_parameters(driven.task))
        spec: dict[str, object] = {
            "cachingOptions": {"enableCache": True},
            "retryPolicy": {"maxRetryCount": retries},
        }
        if loop is not None:
            spec["artifactIterator"] = {}
        if (driven.task if loop is None else loop.iterations).text("when"):
            spec["triggerPolicy"] = {"condition": "known_at_run_time"}
        container: RawMapping = {}
        if driven.task.get("template") == CONTAINER_DRIVER:
            # Only the name tells: KFP calls these tasks `createpvc` and `deletepvc`.
            is_deleted = name.startswith(StepKind.DELETE_PVC)
            kind = StepKind.DELETE_PVC if is_deleted else StepKind.CREATE_PVC
            image = next(image for image, each in DRIVER_ONLY_IMAGES.items() if each is kind)
            container = {"image": image}
        return TaskParts(Fields(spec, place), Fields({}, place), Fields(container, place))


class PackageParts(PartsReader):
    """Reader of the parts in the package, for a KFP 3 Workflow.

    A package with other tasks, kinds of tasks or dependencies is not the package of this run.
    """

    def __init__(self, package: RawMapping, pipeline_name: str) -> None:
        """Index a package.

        Args:
            package: the pipeline spec.
            pipeline_name: name of the pipeline by the Workflow; "" = unknown.

        Raises:
            InputError: the package is malformed, or of another pipeline.
        """
        self._file = Place("package")
        fields = Fields(package, self._file)
        name = fields.fields("pipelineInfo").text("name")
        if pipeline_name and name != pipeline_name:
            raise fields.error(f"is of pipeline {name!r:.80}, not of {pipeline_name!r:.80}")
        self._root = fields.fields("root")
        self._components = fields.mapping("components")
        self._executors = fields.fields("deploymentSpec").mapping("executors")

    @override
    def root(self, driver: Fields, place: Place) -> Fields:
        """Return the root component of the package."""
        return Fields(self._root.raw, place)

    @override
    def check_tasks(self, exits: Mapping[str, Names], dag: Fields) -> None:
        """Refuse a DAG whose tasks are not those of its component, except for lost exit tasks."""
        tasks = dag.fields("dag").fields("tasks")
        specs = {name: Fields.of(spec, dag.place) for name, spec in tasks.raw.items()}
        targets = exit_targets(specs, self._can_have_exit, dag.place)
        # An exit task without targets never runs, and KFP leaves it out of the Workflow.
        wanted = {name: targets.get(name, ()) for name in specs if targets.get(name, True)}
        added = sorted(exits.keys() - wanted.keys())
        if added:
            raise dag.error(f"the package has no task {listed(added, _NAMED)} that runs")
        gone = sorted(wanted.keys() - exits.keys())
        if gone:
            raise dag.error(f"has no task {listed(gone, _NAMED)}, which the package has")
        other = sorted(name for name, after in wanted.items() if exits[name] != after)
        if other:
            raise dag.error(f"in the package, {listed(other, _NAMED)} runs at the end of others")

    @override
    def of(self, name: str, driven: DrivenTask, loop: LoopTasks | None, dag: Fields) -> TaskParts:
        """Return the parts of a task that fits the package."""
        place = driven.task.place
        tasks = dag.fields("dag").fields("tasks")
        spec = Fields(tasks.mapping(name), place)
        parts, in_package = self._described(spec)
        in_workflow = _kind(driven, loop)
        if in_workflow is not in_package:
            raise spec.error(f"is {in_workflow}, but {in_package} in the package")
        template = driven.task if loop is None else loop.iterations
        component = spec.fields("componentRef").text("name")
        if "dag" in parts.component and template.text("template") != component:
            raise spec.error(f"does not run {component!r:.80}, as in the package")
        # KFP gives importers and exit tasks no dependencies.
        if in_workflow is not _Kind.IMPORTER and not is_exit_task(spec):
            stated = {other for other in dependencies(spec) if other in tasks}
            differing = sorted(stated ^ set(driven.waits(name)))
            if differing:
                names = listed(differing, _NAMED)
                raise spec.error(f"only one of Workflow and package lets it wait for {names}")
        return parts

    def _described(self, spec: Fields) -> tuple[TaskParts, _Kind]:
        """Return the parts of a task of the package, and its kind there."""
        place = spec.place
        component = self._named(self._components, spec.fields("componentRef").name("name"), place)
        container, kind = Fields({}, place), _Kind.PIPELINE
        if "dag" not in component:
            executor = self._named(self._executors, component.name("executorLabel"), place)
            container, kind = Fields(executor.mapping("container"), place), _Kind.CONTAINER
            if executor.get("importer") is not None:
                kind = _Kind.IMPORTER
            elif not container:
                raise spec.error("runs neither a container nor an importer in the package")
            elif container.text("image") in DRIVER_ONLY_IMAGES:
                kind = _Kind.VOLUME_CLAIM
        if any(spec.get(key) is not None for key in ("parameterIterator", "artifactIterator")):
            kind = _Kind.LOOP
        return TaskParts(spec, component, container), kind

    def _can_have_exit(self, spec: Fields) -> bool:
        """Return whether KFP attaches an exit task to a task: only to containers and DAGs."""
        return self._described(spec)[1] in (_Kind.CONTAINER, _Kind.PIPELINE)

    def _named(self, holder: RawMapping, name: str, place: Place) -> Fields:
        """Return an entry of the package, at the place of the task."""
        if name not in holder:
            raise place.error(f"the package has no {name!r:.80}, which this task needs")
        return Fields(self._file.then(": {:.80}", name).mapping(holder[name]), place)


def _kind(driven: DrivenTask, loop: LoopTasks | None) -> _Kind:
    """Return what a task is in the Workflow."""
    if loop is not None:
        return _Kind.LOOP
    template = driven.task.text("template")
    if template.startswith(IMPORTER):
        return _Kind.IMPORTER
    if template == CONTAINER_DRIVER:
        return _Kind.VOLUME_CLAIM
    return _Kind.CONTAINER if is_executor(template) else _Kind.PIPELINE
