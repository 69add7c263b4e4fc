"""The parts of a task by KFP: its task spec, its component and its container spec.

In a Workflow of KFP 2 these three are arguments of the driver. KFP 3 keeps them in the package; a
Workflow without its package says only what its structure shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import NamedTuple

from typing_extensions import override

from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.argo.kfp_dialect import CONTAINER_DRIVER, IMPORTER, is_executor
from kfp_placement_engine.readers.argo.kfp_tasks import DrivenTask, LoopTasks, retry_limit
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
)
from kfp_placement_engine.readers.kfp.leaves import DRIVER_ONLY_IMAGES
from kfp_placement_engine.readers.kfp.tasks import dependencies, is_exit_task
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place

_NAMED = 3
"""Number of tasks that a message names."""


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

    @abstractmethod
    def check_tasks(self, names: Collection[str], dag: Fields) -> None:
        """Refuse a DAG whose tasks are not those of its component.

        Args:
            names: names of the tasks in the Workflow.
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
    def check_tasks(self, names: Collection[str], dag: Fields) -> None:
        """Accept every DAG: there is no package to compare it with."""

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
    def check_tasks(self, names: Collection[str], dag: Fields) -> None:
        """Accept every DAG: there is no package to compare it with."""

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
            spec["triggerPolicy"] = {"condition": "known at run time"}
        container: RawMapping = {}
        if driven.task.get("template") == CONTAINER_DRIVER:
            # KFP names these tasks after their components, `createpvc` and `deletepvc`.
            is_deleted = name.startswith(StepKind.DELETE_PVC)
            kind = StepKind.DELETE_PVC if is_deleted else StepKind.CREATE_PVC
            image = next(image for image, each in DRIVER_ONLY_IMAGES.items() if each is kind)
            container = {"image": image}
        return TaskParts(Fields(spec, place), Fields({}, place), Fields(container, place))


class PackageParts(PartsReader):
    """Reader of the parts in the package, for a KFP 3 Workflow.

    A package with other tasks or dependencies is not the package of this run.
    """

    def __init__(self, package: RawMapping) -> None:
        """Index a package.

        Args:
            package: the pipeline spec.

        Raises:
            InputError: the package is malformed.
        """
        self._file = Place("package")
        fields = Fields(package, self._file)
        self._root = fields.fields("root")
        self._components = fields.mapping("components")
        self._executors = fields.fields("deploymentSpec").mapping("executors")

    @override
    def root(self, driver: Fields, place: Place) -> Fields:
        """Return the root component of the package."""
        return Fields(self._root.raw, place)

    @override
    def check_tasks(self, names: Collection[str], dag: Fields) -> None:
        """Refuse a DAG whose tasks are not those of its component, except for lost exit tasks."""
        tasks = dag.fields("dag").fields("tasks")
        added = [name for name in names if name not in tasks]
        if added:
            raise dag.error(f"the package has no task {listed(added, _NAMED)}")
        # KFP never runs some exit tasks, and leaves them out of the Workflow.
        gone = [name for name in tasks.raw if name not in names]
        gone = [name for name in gone if not is_exit_task(tasks.fields(name))]
        if gone:
            raise dag.error(
                f"the Workflow has no task {listed(gone, _NAMED)}, which the package has"
            )

    @override
    def of(self, name: str, driven: DrivenTask, loop: LoopTasks | None, dag: Fields) -> TaskParts:
        """Return the parts of a task that fits the package."""
        place = driven.task.place
        tasks = dag.fields("dag").fields("tasks")
        spec = Fields(tasks.mapping(name), place)
        component = self._named(self._components, spec.fields("componentRef").text("name"), place)
        executor = self._named(self._executors, component.text("executorLabel"), place)
        parts = TaskParts(spec, component, Fields(executor.mapping("container"), place))
        in_workflow = _kind(driven, loop)
        in_package = _package_kind(parts, executor)
        if in_workflow != in_package:
            raise spec.error(f"is {in_workflow}, but {in_package} in the package")
        # KFP gives importers and exit tasks no dependencies.
        if in_workflow != "an importer" and not is_exit_task(spec):
            stated = {other for other in dependencies(spec) if other in tasks}
            waits = set(driven.waits(name))
            if waits != stated:
                differing = listed(sorted(waits ^ stated), _NAMED)
                raise spec.error(f"only one of Workflow and package lets it wait for {differing}")
        return parts

    def _named(self, holder: RawMapping, name: str, place: Place) -> Fields:
        """Return an entry of the package, at the place of the task; empty for an empty name."""
        if not name:
            return Fields({}, place)
        if name not in holder:
            raise place.error(f"the package has no {name!r:.80}, which this task needs")
        return Fields(self._file.then(": {:.80}", name).mapping(holder[name]), place)


def _kind(driven: DrivenTask, loop: LoopTasks | None) -> str:
    """Return what a task is in the Workflow, as text for people."""
    if loop is not None:
        return "a loop"
    template = driven.task.text("template")
    if template.startswith(IMPORTER):
        return "an importer"
    if template == CONTAINER_DRIVER:
        return "a volume claim"
    return "a container" if is_executor(template) else "a pipeline"


def _package_kind(parts: TaskParts, executor: Fields) -> str:
    """Return what a task is in the package, as text for people."""
    if parts.spec.get("parameterIterator") or parts.spec.get("artifactIterator"):
        return "a loop"
    if "dag" in parts.component:
        return "a pipeline"
    if "importer" in executor:
        return "an importer"
    return "a volume claim" if parts.container.get("image") in DRIVER_ONLY_IMAGES else "a container"
