"""A reader of the pods of a run's steps: nodes, gates, limits, and messages of Kubernetes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kfp_placement_engine.contract.hints import max_latency_ms_in
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    KUBERNETES_SCHEDULER,
    LOCATION_LABEL,
    PLACED_ELSEWHERE,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.executors import step_of_executor
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.kubernetes.gates import read_gates
from kfp_placement_engine.readers.kubernetes.required_hosts import requires_hosts
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place

MAX_TEXT_CHARACTERS = 1024
"""Longest text of a pod that is kept, in characters; the rest is cut off."""

_POD = Place("pod")
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class StepPod:
    """Pod of a step.

    Attributes:
        name: name of the pod.
        node: node to which the pod is bound; "" = none.
        phase: phase of the pod.
        gates: scheduling gates, ours and others'.
        message: Kubernetes' message on what keeps the pod from running; "" = none.
        deviation: message of the event about a pod that is off its planned node; "" = none.
        created_at: time of creation, as Kubernetes writes it.
        scheduler: scheduler that places the pod.
        mark: scheduler that the step asks for; "" = none.
        location: location of the step's users; "" = not known.
        max_latency_ms: hard limit of the round trip to the location; None = no limit.
        requires_hosts: whether the pod requires hosts by name, as pods with a latency limit do once
            their gate is off.
    """

    name: str
    node: str
    phase: str
    gates: tuple[str, ...]
    message: str
    deviation: str
    created_at: str
    scheduler: str
    mark: str
    location: str
    max_latency_ms: float | None
    requires_hosts: bool


def pods_by_step(
    pods: Iterable[RawMapping], events: Iterable[RawMapping], workflow: str, steps: Iterable[str]
) -> dict[str, StepPod]:
    """Return the latest pod of each step that has one; skip pods that cannot be read.

    Args:
        pods: pods of the run, as the API server prints them.
        events: events of the reason `PlacedElsewhere`, as the API server prints them.
        workflow: name of the Workflow.
        steps: names of the plan's steps.
    """
    names = frozenset(steps)
    deviations = _messages(events)
    latest: dict[str, StepPod] = {}
    for raw in pods:
        try:
            step = _step(raw, workflow, names)
            if step is None:
                continue
            pod = _read(raw, deviations)
        except InputError:
            continue
        before = latest.get(step)
        if before is None or before.created_at <= pod.created_at:
            latest[step] = pod
    return latest


def _step(raw: RawMapping, workflow: str, names: frozenset[str]) -> str | None:
    annotations = Fields(raw, _POD).flat("metadata").flat("annotations")
    node_name = annotations.text(NODE_NAME_ANNOTATION)
    return step_of_executor(node_name, workflow, names) if node_name else None


def _read(raw: RawMapping, deviations: Mapping[str, str]) -> StepPod:
    pod = Fields(raw, _POD)
    metadata, spec, status = pod.flat("metadata"), pod.flat("spec"), pod.flat("status")
    labels, annotations = metadata.flat("labels"), metadata.flat("annotations")
    return StepPod(
        name=_text(metadata, "name"),
        node=_text(spec, "nodeName"),
        phase=_text(status, "phase") or "Pending",
        gates=tuple(_text(Fields(gate, _POD), "name") for gate in read_gates(raw)),
        message=_message(status),
        deviation=deviations.get(_text(metadata, "uid"), ""),
        created_at=_text(metadata, "creationTimestamp"),
        scheduler=_text(spec, "schedulerName") or KUBERNETES_SCHEDULER,
        mark=_text(labels, SCHEDULER_LABEL),
        location=_text(labels, LOCATION_LABEL),
        max_latency_ms=max_latency_ms_in(annotations.text(HINTS_ANNOTATION)),
        requires_hosts=requires_hosts(pod),
    )


def _message(status: Fields) -> str:
    """Return why a pod failed, else why it has no node, else why a container does not start."""
    if status.get("phase") in _ENDED:
        return ": ".join(filter(None, (_text(status, "reason"), _text(status, "message"))))
    for condition in status.each_flat("conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _text(condition, "message") or _text(condition, "reason")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.each_flat(kind):
            waiting = container.flat("state").flat("waiting")
            if waiting:
                parts = (_text(waiting, "reason"), _text(waiting, "message"))
                return ": ".join(filter(None, parts))
    return ""


def _messages(events: Iterable[RawMapping]) -> dict[str, str]:
    """Return the latest `PlacedElsewhere` message about each pod, by the pod's uid."""
    latest: dict[str, tuple[str, str]] = {}
    for raw in events:
        try:
            event = Fields(raw, Place("event"))
            uid = _text(event.flat("involvedObject"), "uid")
            message = _text(event, "message")
            at = max(_text(event, "eventTime"), _text(event, "lastTimestamp"))
        except InputError:
            continue
        if uid and raw.get("reason") == PLACED_ELSEWHERE:
            latest[uid] = max(latest.get(uid, ("", "")), (at, message))
    return {uid: message for uid, (_, message) in latest.items()}


def _text(fields: Fields, key: str) -> str:
    return fields.text(key)[:MAX_TEXT_CHARACTERS]
