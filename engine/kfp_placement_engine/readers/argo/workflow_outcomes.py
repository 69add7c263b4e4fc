"""A reader of outcomes from a Workflow's nodes: of steps, with cache hits, and of loops' widths.

A step has several nodes: `train` (Retry), `train(0)` (DAG), `train(0).executor`,
`train(0).executor(0)` (Pod). The outermost tells how the step ended, the innermost when its pod
ran. A skipped executor inside a task that succeeded is a cache hit; a skipped or omitted group is a
branch that was not taken.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.step_names import enclosing
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.readers.argo.workflow_nodes import ArgoNode
from kfp_placement_engine.readers.tree.run_outcomes import (
    PodIdentity,
    PodRole,
    RunIndex,
    RunOutcome,
    StepOutcome,
    loop_indexes,
)

_LEFT_OUT = ("Skipped", "Omitted")
_FAILED = ("Failed", "Error")
_ENDED = ("Succeeded", *_FAILED)
_WITHOUT_POD = ("Suspend", "HTTP", "Plugin")
_MAX_WIDTH = 1_000_000
_LOOP_DRIVER = re.compile(r"\.iteration-driver(\([0-9]+\))?$")


@dataclass
class _StepNodes:
    """Nodes of one step."""

    outermost: ArgoNode | None = None
    pods: dict[str, tuple[int, ArgoNode]] = field(default_factory=dict)
    executor_skipped: bool = False
    driver: ArgoNode | None = None
    driver_says_cached: bool = False


class _Widths:
    """Widths of loops: from the output of a driver, or counted once the loop has ended."""

    def __init__(self) -> None:
        self._by_driver: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._ended: set[str] = set()

    def note(self, node: ArgoNode, identity: PodIdentity) -> None:
        """Note what one node tells of its own loop and of the loops around it."""
        for loop, index in loop_indexes(identity.name, identity.iteration):
            self._counted[loop] = max(self._counted.get(loop, 0), index + 1)
        if _LOOP_DRIVER.search(node.name):
            text = node.outputs.get("iteration-count", "")
            if text.isascii() and text.isdecimal() and int(text) <= _MAX_WIDTH:
                self._by_driver[identity.name] = int(text)
        elif node.phase in _ENDED:
            self._ended.add(identity.name)

    def certain_and_seen(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return widths that are certain, and the iterations seen of the other loops."""
        certain = {loop: n for loop, n in self._counted.items() if loop in self._ended}
        seen = {loop: n for loop, n in self._counted.items() if loop not in self._ended}
        for loop in self._by_driver:
            seen.pop(loop, None)
        return {**certain, **self._by_driver}, seen


class OutcomeReader:
    """Reader of one run's outcomes, used repeatedly while the run goes on."""

    def __init__(self, graph: RunGraph, index: RunIndex) -> None:
        """Prepare for a graph.

        Args:
            graph: graph of the run.
            index: index of the pods of the same graph.
        """
        self._index = index
        self._step_names = {step.name for step in graph.steps}

    def read(self, nodes: Iterable[ArgoNode]) -> RunOutcome:
        """Read the outcomes from a Workflow's nodes."""
        collected: dict[str, _StepNodes] = {}
        left_out: list[str] = []
        widths = _Widths()
        for node in nodes:
            identity = self._index.identify(node.name)
            if identity is None:
                continue
            widths.note(node, identity)
            if identity.name in self._step_names:
                _collect(collected.setdefault(identity.name, _StepNodes()), node, identity)
            elif node.phase in _LEFT_OUT and identity.role is not PodRole.DRIVER and identity.name:
                left_out.append(identity.name)
        steps = {name: _outcome(step_nodes) for name, step_nodes in collected.items()}
        self._leave_out(left_out, steps)
        return RunOutcome(steps, *widths.certain_and_seen())

    def _leave_out(self, groups: Iterable[str], steps: dict[str, StepOutcome]) -> None:
        """Count the steps of skipped groups as skipped, unless they have nodes of their own."""
        prefixes = {group for group in groups if group not in self._step_names}
        if not prefixes:
            return
        for name in self._step_names:
            if name not in steps and not prefixes.isdisjoint(enclosing(name)):
                steps[name] = StepOutcome(StepState.SKIPPED)


def _collect(step_nodes: _StepNodes, node: ArgoNode, identity: PodIdentity) -> None:
    if identity.role is PodRole.DRIVER:
        if step_nodes.driver is None or len(node.name) < len(step_nodes.driver.name):
            step_nodes.driver = node
        if node.outputs.get("cached-decision", "").lower() == "true":
            step_nodes.driver_says_cached = True
        return
    if step_nodes.outermost is None or len(node.name) < len(step_nodes.outermost.name):
        step_nodes.outermost = node
    if node.phase == "Skipped" and _is_executor(node.name):
        step_nodes.executor_skipped = True
    if node.type == "Pod":
        step_nodes.pods[node.name] = (identity.attempt, node)


def _is_executor(name: str) -> bool:
    return name.endswith((".executor", ".executor(0)"))


def _outcome(step_nodes: _StepNodes) -> StepOutcome:
    pods = sorted(step_nodes.pods.values(), key=lambda pod: (pod[0], pod[1].name))
    state = _state(step_nodes)
    if not pods:
        outer = step_nodes.outermost
        message = "" if outer is None else outer.message
        finished = None if outer is None or state is StepState.PENDING else outer.finished_at
        started = outer.started_at if outer is not None and outer.type in _WITHOUT_POD else None
        return StepOutcome(state, started_at=started, finished_at=finished, message=message)
    _, last = pods[-1]
    return StepOutcome(state, len(pods), last.started_at, last.finished_at, last.host, last.message)


def _state(step_nodes: _StepNodes) -> StepState:
    outer, driver = step_nodes.outermost, step_nodes.driver
    driver_failed = driver is not None and driver.phase in _FAILED
    if outer is None:
        return StepState.FAILED if driver_failed else StepState.PENDING
    if outer.phase in _LEFT_OUT:
        if _is_executor(outer.name):
            return StepState.CACHED
        return StepState.FAILED if driver_failed else StepState.SKIPPED
    if outer.phase in _FAILED:
        return StepState.FAILED
    if step_nodes.executor_skipped or (step_nodes.driver_says_cached and not step_nodes.pods):
        return StepState.CACHED
    if outer.phase == "Succeeded":
        return StepState.SUCCEEDED
    nodes = [node for _, node in step_nodes.pods.values()]
    if outer.type in _WITHOUT_POD:
        nodes.append(outer)
    running = any(node.phase == "Running" for node in nodes)
    return StepState.RUNNING if running else StepState.PENDING
