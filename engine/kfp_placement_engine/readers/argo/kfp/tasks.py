"""KFP's tasks in a Workflow: each is one or two Argo tasks, a driver and the task itself.

A loop is a DAG of its driver and of its iterations. In KFP 2 an iteration is a DAG of one task with
a driver of its own; in KFP 3 it is the loop's body itself.
"""

import re
from typing import NamedTuple

from kfp_placement_engine.readers.argo.kfp_dialect import CONTAINER_DRIVER, DAG_DRIVER, Dialect
from kfp_placement_engine.readers.argo.workflow_templates import (
    Arguments,
    WorkflowTemplates,
    named_parameters,
)
from kfp_placement_engine.readers.text.fields import Fields

_DRIVER = "-driver"
_SUCCEEDED = re.compile(r"([A-Za-z0-9_-]+)(?:\.[A-Za-z]+)?")
_METADATA = re.compile(r"^pod-metadata-(label|annotation)-key(-\d+)?$")


class DrivenTask(NamedTuple):
    """Task with its driver task; None = it has no driver."""

    task: Fields
    driver: Fields | None

    @property
    def first(self) -> Fields:
        """The task that runs first; it has KFP's arguments and the dependencies."""
        return self.driver or self.task

    def waits(self, name: str) -> list[str]:
        """Return the tasks that must have ended before the task of this name, in Argo's DAG."""
        names = _SUCCEEDED.findall(self.first.text("depends"))
        return [other for other in names if other != name + _DRIVER]

    def pod_metadata(self) -> dict[str, dict[str, str]]:
        """Return labels and annotations of the pod, which are in the executor's arguments."""
        arguments = named_parameters(self.task)
        metadata: dict[str, dict[str, str]] = {}
        for name, key in arguments.items():
            match = _METADATA.match(name)
            if match:
                value = arguments.get(name.replace("-key", "-val", 1), "")
                metadata.setdefault(f"{match.group(1)}s", {})[key] = value
        return metadata


class LoopTasks(NamedTuple):
    """Tasks of a loop.

    Attributes:
        driver: driver of the loop.
        iterations: task that is made for each item.
        body: body of an iteration.
        parallelism: number of iterations that run at once; 0 = any.
    """

    driver: Fields
    iterations: Fields
    body: DrivenTask
    parallelism: int


def with_drivers(tasks: dict[str, Fields]) -> dict[str, DrivenTask]:
    """Return the tasks of a DAG by name, each with its driver task if it has one."""
    drivers = {
        name
        for name, task in tasks.items()
        if task.get("template") in (CONTAINER_DRIVER, DAG_DRIVER)
        and name.endswith(_DRIVER)
        and name.removesuffix(_DRIVER) in tasks
    }
    return {
        name: DrivenTask(task, tasks[name + _DRIVER] if name + _DRIVER in drivers else None)
        for name, task in tasks.items()
        if name not in drivers
    }


def loop_tasks(task: Fields, templates: WorkflowTemplates, dialect: Dialect) -> LoopTasks | None:
    """Return the tasks of a loop; None for other tasks.

    Args:
        task: Argo task that may be a loop.
        templates: templates of the Workflow.
        dialect: KFP that has made the Workflow.

    Raises:
        InputError: the Workflow is malformed.
    """
    name = task.text("template")
    template = templates.template(name)
    if "dag" not in template:
        return None
    tasks = templates.dag_tasks(name)
    iterations = tasks.get("iteration-iterations")
    if iterations is None or "withSequence" not in iterations:
        return None
    driver, body = tasks.get("iteration-driver"), DrivenTask(iterations, None)
    if dialect is Dialect.KFP_2:
        inside = templates.dag_tasks(iterations.name("template"))
        if "iteration-item" not in inside:
            raise task.error("loop without iteration-item")
        body = DrivenTask(inside["iteration-item"], inside.get("iteration-item-driver"))
    if driver is None:
        raise task.error("loop without iteration-driver")
    return LoopTasks(driver, iterations, body, template.count("parallelism"))


def retry_limit(arguments: Arguments) -> int:
    """Return how often KFP repeats a task that fails, by the arguments of its executor."""
    text = arguments.get("retry-max-count", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
