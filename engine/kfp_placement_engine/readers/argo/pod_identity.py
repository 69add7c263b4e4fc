"""From a pod to its step: Argo's node name, read along the run graph.

By the grammar alone a task called `iteration` or `x-driver` would be misread; along the graph
each name is what the DAG at that place says. The grammar remains for pods of runs without a graph.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, Step, StepKind
from kfp_placement_engine.readers.argo.node_names import Segment, split_node_name
from kfp_placement_engine.readers.run_outcomes import PodIdentity, PodRole

_INDEX = re.compile(r"\[[0-9]+\]")
_DRIVER = "-driver"
_EXECUTOR = "executor"
_EXIT = "onExit"
_ROOT = "root"
_ITERATIONS = "iteration-iterations"
_MACHINERY = ("iteration", "iteration-item", _ITERATIONS)


def identify_by_grammar(node_name: str, workflow: str) -> PodIdentity | None:
    """What a pod is, as far as its node name alone tells; None = not of KFP's form.

    Args:
        node_name: annotation `workflows.argoproj.io/node-name`.
        workflow: the Workflow's name.
    """
    parts = split_node_name(node_name, workflow)
    if parts is None or not parts[1]:
        return None
    segments = parts[1]
    names: list[str] = []
    iteration: list[int] = []
    for segment in segments[:-1]:
        _collect(segment, names, iteration)
    last = segments[-1]
    if last.name == _EXECUTOR:
        role = PodRole.EXECUTOR
    elif last.name.endswith(_DRIVER):
        role = PodRole.DRIVER
        base = last.name.removesuffix(_DRIVER)
        _collect(Segment(base, last.index), names, iteration)
    else:
        role = PodRole.SINGLE
        _collect(last, names, iteration)
    path = names[1:] if names[:1] == [_ROOT] else names
    is_group = None if role is PodRole.DRIVER else False
    return PodIdentity(".".join(path), role, is_group, tuple(iteration), last.retry or 0)


def _collect(segment: Segment, names: list[str], iteration: list[int]) -> None:
    if segment.name == _EXIT:
        del names[-1:]
    elif segment.name not in _MACHINERY:
        names.append(segment.name)
    if segment.index is not None:
        iteration.append(segment.index)
        if names:
            names[-1] += f"[{segment.index}]"


class PodIndex:
    """Finds what the pods of one run are; made once per graph."""

    def __init__(self, graph: RunGraph, workflow: str = "") -> None:
        """Index a graph.

        Args:
            graph: the run.
            workflow: the Workflow's name, where the graph was read before it had one.
        """
        self._workflow = workflow or graph.workflow
        self._steps = {step.name: step for step in graph.steps}
        self._tasks: dict[str, Step] = {}
        for step in graph.steps:
            self._tasks.setdefault(step.task, step)
        self._groups = {group.name for group in graph.groups}
        self._group_kinds = {_INDEX.sub("[*]", group.name): group.kind for group in graph.groups}
        self._has_drivers = bool(graph.groups)
        self._known: dict[str, PodIdentity | None] = {}

    def identify(self, node_name: str) -> PodIdentity | None:
        """What the pod with this node name is; None = not a pod of this run.

        Every name is read once: the nodes of a run that goes on are asked for repeatedly.

        Args:
            node_name: annotation `workflows.argoproj.io/node-name`.
        """
        if node_name not in self._known:
            self._known[node_name] = self._read(node_name)
        return self._known[node_name]

    def _read(self, node_name: str) -> PodIdentity | None:
        parts = split_node_name(node_name, self._workflow)
        if parts is None:
            return None
        retry, segments = parts
        identity = self._walk(segments) if self._has_drivers else self._plain(segments, retry or 0)
        if identity is not None:
            return identity
        guess = identify_by_grammar(node_name, self._workflow)
        if guess is None:
            return None
        warning = f"{guess.name!r:.120} is not a step or group of the run's graph"
        return PodIdentity(
            guess.name, guess.role, guess.is_group, guess.iteration, guess.attempt, warning
        )

    def _plain(self, segments: Sequence[Segment], retry: int) -> PodIdentity | None:
        """In a plain Workflow the node name is the path itself."""
        if not segments:
            lone = [step for step in self._tasks.values() if not step.exit_task]
            if len(lone) != 1:
                return None
            return PodIdentity(lone[0].name, PodRole.EXECUTOR, False, (), retry)
        path = _Path()
        for segment in segments:
            path = path.down(segment.name)
            if segment.index is not None:
                path = path.item(segment.index)
        return self._step(path, PodRole.EXECUTOR, segments[-1].retry)

    def _walk(self, segments: Sequence[Segment]) -> PodIdentity | None:
        if len(segments) == 1 and segments[0].name == _ROOT + _DRIVER:
            return self._group(_Path(), segments[0].retry)
        if not segments or segments[0].name != _ROOT:
            return None
        path, rest = _Path(), list(segments[1:])
        while rest:
            child = path.down(rest[0].name)
            exact = self._tasks.get(child.task)
            if len(rest) == 1:
                return self._last(path, rest[0], exact)
            if rest[1].name == _EXIT:
                # Its exit task is beside it in the pipeline.
                rest = rest[2:]
            elif exact is not None and len(rest) == 2 and rest[1].name == _EXECUTOR:
                return self._step(child, PodRole.EXECUTOR, rest[1].retry)
            elif self._group_kinds.get(child.task) is GroupKind.LOOP:
                inside = self._loop(child, rest[1:])
                if not isinstance(inside, tuple):
                    return inside
                path, rest = inside
            elif child.task in self._group_kinds:
                path, rest = child, rest[1:]
            else:
                return None
        return None

    def _loop(
        self, loop: "_Path", rest: list[Segment]
    ) -> "tuple[_Path, list[Segment]] | PodIdentity | None":
        """Past a loop's own levels: the iteration and what follows, or the pod if it is theirs."""
        first = rest[0]
        if len(rest) == 1 and first.name == "iteration-driver":
            return self._group(loop, first.retry)
        if len(rest) < 2 or first.name != _ITERATIONS or first.index is None:
            return None
        item = loop.item(first.index)
        second = rest[1]
        is_step = item.task in self._tasks
        if len(rest) == 2 and second.name == "iteration-item-driver":
            if is_step:
                return self._step(item, PodRole.DRIVER, second.retry)
            return self._group(item, second.retry)
        if second.name != "iteration-item":
            return None
        if not is_step:
            return item, rest[2:]
        if len(rest) == 3 and rest[2].name == _EXECUTOR:
            return self._step(item, PodRole.EXECUTOR, rest[2].retry)
        return self._step(item, _lone_role(self._tasks[item.task]), second.retry)

    def _last(self, path: "_Path", segment: Segment, exact: Step | None) -> PodIdentity | None:
        """The last name of a node name that is neither an executor nor a loop's own."""
        lone = exact is not None and exact.kind is not StepKind.CONTAINER
        if segment.name.endswith(_DRIVER) and not lone:
            base = path.down(segment.name.removesuffix(_DRIVER))
            if base.task in self._tasks:
                return self._step(base, PodRole.DRIVER, segment.retry)
            if base.task in self._group_kinds:
                return self._group(base, segment.retry)
        if exact is None:
            return None
        return self._step(path.down(segment.name), _lone_role(exact), segment.retry)

    def _step(self, path: "_Path", role: PodRole, retry: int | None) -> PodIdentity | None:
        if path.task not in self._tasks:
            return None
        name, warning = path.name, ""
        if name not in self._steps:
            name = path.task
            warning = f"{path.name:.120}: the plan has fewer iterations; it counts for {name:.120}"
        return PodIdentity(name, role, False, path.iteration, retry or 0, warning)

    def _group(self, path: "_Path", retry: int | None) -> PodIdentity | None:
        if path.task not in self._group_kinds:
            return None
        name, warning = path.name, ""
        if name not in self._groups:
            name = path.task
            warning = f"{path.name:.120}: the plan has fewer iterations; it counts for {name:.120}"
        return PodIdentity(name, PodRole.DRIVER, True, path.iteration, retry or 0, warning)


@dataclass(frozen=True)
class _Path:
    """Where in the graph a node name has led: with concrete indexes, and with `[*]`."""

    name: str = ""
    task: str = ""
    iteration: tuple[int, ...] = ()

    def down(self, name: str) -> "_Path":
        """A task of the DAG here."""
        dot = "." if self.name else ""
        return _Path(f"{self.name}{dot}{name}", f"{self.task}{dot}{name}", self.iteration)

    def item(self, index: int) -> "_Path":
        """An iteration of the loop here."""
        return _Path(f"{self.name}[{index}]", f"{self.task}[*]", (*self.iteration, index))


def _lone_role(step: Step) -> PodRole:
    roles = {
        StepKind.IMPORTER: PodRole.IMPORTER,
        StepKind.CREATE_PVC: PodRole.DRIVER_ONLY,
        StepKind.DELETE_PVC: PodRole.DRIVER_ONLY,
        StepKind.CONTAINER: PodRole.EXECUTOR,
    }
    return roles[step.kind]
