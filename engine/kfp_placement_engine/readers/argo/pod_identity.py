"""Finds the step of a pod by Argo's node name and the run graph.

The grammar alone would misread a task called `iteration` or `x-driver`; the graph has all names.
"""

import re
from dataclasses import replace
from functools import partial

from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import enclosing, task_of
from kfp_placement_engine.readers.argo.node_names import (
    EXECUTOR,
    ROOT,
    Segment,
    kfp_path,
    plain_path,
    split_node_name,
)
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole

_INDEX = re.compile(r"\[([0-9]+)\]")
_DRIVER = "-driver"


class PodIndex:
    """Index of the pods of one run, by node name; made once for each graph."""

    def __init__(self, graph: RunGraph, workflow: str = "") -> None:
        """Index a graph.

        Args:
            graph: graph of the run.
            workflow: name of the Workflow, where the graph was read before the Workflow had one.
        """
        self._workflow = workflow or graph.workflow
        self._has_drivers = bool(graph.groups)
        iterations = (each for each in graph.groups if each.kind is GroupKind.ITERATION)
        per_iteration = all(each.has_driver for each in iterations)
        self._kfp_path = partial(kfp_path, per_iteration=per_iteration)
        self._tasks: dict[str, Step] = {}
        for step in graph.steps:
            self._tasks.setdefault(step.task, step)
        self._names = {step.name for step in graph.steps}
        self._known_tasks = set(self._tasks)
        if self._has_drivers:
            self._names.update(group.name for group in graph.groups)
            self._known_tasks.update(task_of(group.name) for group in graph.groups)
        else:
            self._names.update(name for step in graph.steps for name in enclosing(step.name))
            self._known_tasks.update(each for task in self._tasks for each in enclosing(task))
        self._loops = {
            task_of(group.name) for group in graph.groups if group.kind is GroupKind.LOOP
        }
        self._identities: dict[str, PodIdentity | None] = {}

    def identify(self, node_name: str) -> PodIdentity | None:
        """Return the identity of the pod with this node name, or None for a pod of another run.

        Every name is read once: the nodes of a run are looked up repeatedly while it goes on.

        Args:
            node_name: value of the annotation `workflows.argoproj.io/node-name`.
        """
        if node_name not in self._identities:
            if len(self._identities) > 9 * len(self._names):  # Drivers, attempts, and absurd ones.
                self._identities.clear()
            parts = split_node_name(node_name, self._workflow)
            read = self._of_kfp if self._has_drivers else self._plain
            self._identities[node_name] = None if parts is None else read(*parts)
        return self._identities[node_name]

    def _plain(self, retry: int | None, segments: list[Segment]) -> PodIdentity | None:
        """Return a pod of a plain Workflow, whose node name is the path itself."""
        if segments:
            return self._named(plain_path(segments), segments[-1].retry)
        lone = [step for step in self._tasks.values() if not step.exit_task]
        return self._named(lone[0].name, retry) if len(lone) == 1 else None

    def _of_kfp(self, _retry: int | None, segments: list[Segment]) -> PodIdentity | None:
        if len(segments) == 1 and segments[0].name == ROOT + _DRIVER:
            return self._named("", segments[0].retry, PodRole.DRIVER)
        if not segments or segments[0].name != ROOT:
            return None
        around, last = segments[1:-1], segments[-1]
        if last.name == EXECUTOR:
            executor = self._named(self._kfp_path(around), last.retry, PodRole.EXECUTOR)
            if executor is not None and not executor.is_group:
                return executor
        exact = self._named(self._kfp_path(segments[1:]), last.retry)
        is_lone = exact is not None and exact.role is PodRole.OTHER and not exact.is_group
        if is_lone or not last.name.endswith(_DRIVER):
            return exact
        path = self._kfp_path(around)
        if last.name != "iteration" + _DRIVER or task_of(path) not in self._loops:
            driven = replace(last, name=last.name.removesuffix(_DRIVER))
            path = self._kfp_path([*around, driven])
        return self._named(path, last.retry, PodRole.DRIVER) or exact

    def _named(
        self, name: str, retry: int | None, role: PodRole | None = None
    ) -> PodIdentity | None:
        """Return a pod of the step or group of this name, or None for an unknown name.

        Where the graph has fewer iterations, it is a pod of the step or group as a whole.

        Args:
            name: name with loop indexes.
            retry: number of the attempt; None = the only attempt.
            role: role of the pod; None = it is the step's or group's own.
        """
        task = task_of(name)
        if task not in self._known_tasks:
            return None
        step = self._tasks.get(task)
        if role is None:
            is_container = step is not None and step.kind is StepKind.CONTAINER
            role = PodRole.EXECUTOR if is_container else PodRole.OTHER
        iteration = tuple(map(int, _INDEX.findall(name)))
        shown = name if name in self._names else task
        return PodIdentity(shown, role, step is None, iteration, retry or 0)
