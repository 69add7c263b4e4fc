"""Which gated pods may go on now, and to which node.

On every node a pod waits for its turn and for room (`node_queue` of the engine says whose turn it
is). Nothing waits beyond its deadline, whatever the plan says; a pod that no plan knows does not
wait at all. Hard latency limits are looked at afterwards, by the gate controller.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kfp_placement_controller.observed.pods import ObservedPod, is_overdue
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep, steps_to_start
from kfp_placement_engine.units.resources import free_room


@dataclass(frozen=True)
class PlannedStep:
    """A step of a planned run that is not bound yet.

    Attributes:
        run, step: names.
        node: where it is planned.
        queued: what matters of it on that node; times in seconds since the epoch.
    """

    run: RunKey
    step: str
    node: str
    queued: QueuedStep

    @property
    def key(self) -> tuple[RunKey, str]:
        """Tells it from all other steps."""
        return self.run, self.step

    def for_pod(self, pod: ObservedPod | None) -> QueuedStep:
        """The step in its queue, with the pod that waits for its turn, if there is one."""
        if pod is None:
            return self.queued
        return self.queued._replace(requests=pod.requests, is_ready=True)


@dataclass(frozen=True)
class GatedPod:
    """A pod that has our gate.

    Attributes:
        pod: as observed.
        run: of which run, where a plan knows it.
        step: its step, or "" where no plan knows it.
    """

    pod: ObservedPod
    run: RunKey | None = None
    step: str = ""


class Cause(StrEnum):
    """Why a gate comes off."""

    TURN = "turn"
    """It is the pod's turn, on its planned node."""

    OVERDUE = "overdue"
    """Its deadline has passed."""

    PAUSED = "paused"
    """The policy is paused."""

    NOT_PLANNED = "not-planned"
    """No plan knows the pod's step, or has a node for it."""

    NODE_GONE = "node-gone"
    """The planned node is gone."""

    BY_OTHERS = "by-others"
    """Somebody else has taken it off."""


@dataclass(frozen=True)
class OpenGate:
    """Take our gate off a pod.

    Attributes:
        pod: the pod.
        cause: why.
        node: where it should go; "" = anywhere.
        hosts: it goes to nodes with one of these host labels only; empty = to any.
    """

    pod: ObservedPod
    cause: Cause
    node: str = ""
    hosts: tuple[str, ...] = ()


def releases(
    gated: Iterable[GatedPod],
    planned_steps: Sequence[PlannedStep],
    nodes: Mapping[str, Node],
    now: datetime,
    deadline_seconds: float,
    running: Mapping[str, Sequence[RunningStep]],
) -> list[OpenGate]:
    """The gates that come off now, on each node in the plan's order.

    Args:
        gated: pods with our gate.
        planned_steps: steps of planned runs that have a node and are not bound yet, whether or not
            they have a pod.
        nodes: with the room that bound pods take now, by name.
        now: the time.
        deadline_seconds: since a pod's creation; then it goes on, planned or not.
        running: steps that run, whose ends are expected, by node.
    """
    released: list[OpenGate] = []
    waiting: dict[tuple[RunKey | None, str], ObservedPod] = {}
    for each in gated:
        if each.pod.deleting:
            continue
        if is_overdue(each.pod, now, deadline_seconds):
            released.append(OpenGate(each.pod, Cause.OVERDUE))
        elif not each.step:
            released.append(OpenGate(each.pod, Cause.NOT_PLANNED))
        else:
            waiting[each.run, each.step] = each.pod
    known = {each.key for each in planned_steps}
    released += [
        OpenGate(pod, Cause.NOT_PLANNED) for key, pod in waiting.items() if key not in known
    ]
    for name, steps in _queues(planned_steps).items():
        pods = [waiting.get(each.key) for each in steps]
        node = nodes.get(name)
        if node is None:
            # It is gone: waiting for it gains nothing.
            released += [OpenGate(pod, Cause.NODE_GONE) for pod in pods if pod is not None]
            continue
        queue = [each.for_pod(pod) for each, pod in zip(steps, pods, strict=True)]
        free = free_room(node.allocatable, node.used)
        turns = steps_to_start(queue, running.get(name, ()), free, now.timestamp())
        started = [pods[position] for position in turns]
        released += [OpenGate(pod, Cause.TURN, name) for pod in started if pod is not None]
    return released


def _queues(planned_steps: Iterable[PlannedStep]) -> Mapping[str, Sequence[PlannedStep]]:
    """By node, in the plan's order."""
    queues: dict[str, list[PlannedStep]] = {}
    for each in planned_steps:
        queues.setdefault(each.node, []).append(each)
    for queue in queues.values():
        queue.sort(key=lambda each: (each.queued.start_seconds, each.key))
    return queues
