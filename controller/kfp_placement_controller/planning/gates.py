"""Rules that decide when the gate of a pod comes off, and which node the pod then prefers.

A pod waits for its turn on its planned node, and for room there (the engine's `node_queue` decides
whose turn it is). No pod waits beyond its deadline, and a pod that no plan has a node for waits
only while the first plan of its run may still come.
The gate controller applies hard latency limits afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kfp_placement_controller.observed.gate_deadlines import StartWindow, is_overdue
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep, steps_to_start
from kfp_placement_engine.units.resources import free_room, least


@dataclass(frozen=True)
class UnboundStep:
    """A step of a planned run that is not bound yet.

    Attributes:
        run, step: key of the run, and name of the step.
        node: planned node.
        queued: the step in the queue of that node; its times are seconds since the epoch.
        window: time within which its pod must run; None = any time.
    """

    run: RunKey
    step: str
    node: str
    queued: QueuedStep
    window: StartWindow | None = None

    @property
    def key(self) -> tuple[RunKey, str]:
        """Key of the step among the steps of all runs."""
        return self.run, self.step

    def for_pod(self, pod: ObservedPod | None) -> QueuedStep:
        """Return the step as queued, ready to start with the requests of its pod if it has one.

        No more room than planned is kept from others, however much the pod requests.
        """
        if pod is None:
            return self.queued
        kept = least(self.queued.requests, pod.requests)
        return self.queued._replace(requests=kept, pod_requests=pod.requests, is_ready=True)


@dataclass(frozen=True)
class GatedPod:
    """A pod that has our gate.

    Attributes:
        pod: the pod as observed.
        run: key of its run; None = the run is not planned.
        step: name of its step; "" = the step is not planned.
        window: time within which it must run; None = as far as the pod itself says it.
        awaits_plan: whether it is so new that the first plan of its run may still come.
    """

    pod: ObservedPod
    run: RunKey | None = None
    step: str = ""
    window: StartWindow | None = None
    awaits_plan: bool = False


class Cause(StrEnum):
    """Cause for which a gate comes off."""

    TURN = "turn"
    """The turn of the pod on its planned node has come."""

    OVERDUE = "overdue"
    """The deadline of the gate has passed, or the pod must run soon."""

    PAUSED = "paused"
    """The policy is paused."""

    NOT_PLANNED = "not-planned"
    """The step has no plan, or no node in its plan."""

    NODE_GONE = "node-gone"
    """The planned node is gone."""

    BY_OTHERS = "by-others"
    """The gate was removed by somebody other than this planner."""


@dataclass(frozen=True)
class OpenGate:
    """Action that removes our gate from a pod.

    Attributes:
        pod: the pod.
        cause: cause for which the gate comes off.
        node: node that the pod prefers from now on; "" = none.
        hosts: host labels of the nodes that the pod is restricted to; empty = any node.
    """

    pod: ObservedPod
    cause: Cause
    node: str = ""
    hosts: tuple[str, ...] = ()


def releases(
    gated: Iterable[GatedPod],
    planned_steps: Sequence[UnboundStep],
    nodes: Mapping[str, Node],
    now: datetime,
    deadline_seconds: float,
    running: Mapping[str, Sequence[RunningStep]],
) -> list[OpenGate]:
    """Return the gates to remove now; those on the same node are in the plan's order.

    Args:
        gated: pods with our gate, without those that are being deleted.
        planned_steps: steps of planned runs that have a node and are not bound yet, whether or not
            they have a pod.
        nodes: nodes by name, with the room that bound pods take now.
        now: the time.
        deadline_seconds: age at which a pod loses its gate, planned or not; one that must run
            within a short time loses it earlier.
        running: steps that run, whose ends are expected, by node.
    """
    released: list[OpenGate] = []
    waiting: dict[tuple[RunKey | None, str], ObservedPod] = {}
    for entry in gated:
        if is_overdue(entry.pod, now, deadline_seconds, entry.window):
            released.append(OpenGate(entry.pod, Cause.OVERDUE))
        elif not entry.step and not entry.awaits_plan:
            released.append(OpenGate(entry.pod, Cause.NOT_PLANNED))
        elif entry.step:
            waiting[entry.run, entry.step] = entry.pod
    planned_keys = {step.key for step in planned_steps}
    released += [
        OpenGate(pod, Cause.NOT_PLANNED) for key, pod in waiting.items() if key not in planned_keys
    ]
    for name, steps in _queues(planned_steps).items():
        pods = [waiting.get(step.key) for step in steps]
        node = nodes.get(name)
        if node is None:
            # The node is gone: the pods gain nothing by waiting for it.
            released += [OpenGate(pod, Cause.NODE_GONE) for pod in pods if pod is not None]
            continue
        queue = [step.for_pod(pod) for step, pod in zip(steps, pods, strict=True)]
        free = free_room(node.allocatable, node.used)
        turns = steps_to_start(queue, running.get(name, ()), free, now.timestamp())
        started = [pods[position] for position in turns]
        released += [OpenGate(pod, Cause.TURN, name) for pod in started if pod is not None]
    return released


def _queues(planned_steps: Iterable[UnboundStep]) -> Mapping[str, Sequence[UnboundStep]]:
    """Return the steps by node, in the plan's order."""
    queues: dict[str, list[UnboundStep]] = {}
    for step in planned_steps:
        queues.setdefault(step.node, []).append(step)
    for queue in queues.values():
        queue.sort(key=lambda step: (step.queued.start_seconds, step.key))
    return queues
