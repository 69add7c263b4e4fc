"""Tasks of a run: a finding is about a task, not about each of its iterations."""

from collections.abc import Iterator, Sequence

from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed

_MAX_NAMES = 5
"""Largest number of names in a message; the JSON report has all names."""


def container_tasks(graph: RunGraph) -> Iterator[Step]:
    """Yield one step of each task that runs in a pod of its own."""
    seen: set[str] = set()
    for step in graph.steps:
        if step.kind is StepKind.CONTAINER and step.task not in seen:
            seen.add(step.task)
            yield step


def task_names(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the names of the tasks of `steps`."""
    return tuple(step.task for step in steps)


def listed_tasks(steps: Sequence[Step]) -> str:
    """Return the names of the tasks for a message: ` (train, predict)`."""
    return f" ({listed(task_names(steps), _MAX_NAMES)})"
