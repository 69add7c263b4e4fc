"""What the pods of a run say beside its PipelinePlacement: gates, refusals, where they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.contract.hints import max_latency_ms_in
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    KUBERNETES_SCHEDULER,
    LOCATION_LABEL,
    PLACED_ELSEWHERE,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.executor_names import step_of_executor
from kfp_placement_engine.readers.fields import Fields, Place, as_list, as_mapping, as_text
from kfp_placement_engine.readers.kubernetes.required_hosts import requires_hosts

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
NODE_NAME_ANNOTATION = "workflows.argoproj.io/node-name"

MAX_TEXT_CHARACTERS = 1024
"""Kept of any text of a pod."""

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class PodView:
    """A pod of a step.

    Attributes:
        name: of the pod.
        node: where it is bound to; "" = nowhere.
        phase: as Kubernetes says.
        gates: scheduling gates, ours and others'.
        message: what keeps it from running, in Kubernetes' words; "" = nothing is said.
        elsewhere: why it is not on its planned node, from the event; "" = nothing is said.
        created_at: as Kubernetes writes it.
        scheduler: that places it.
        mark: the scheduler that its step asks for; "" = none.
        location: where its users are; "" = not said.
        max_latency_ms: hard limit of the round trip to there; None = none.
        requires_hosts: it goes to hosts that it names, as pods under a limit do once their gate is
            off.
    """

    name: str
    node: str
    phase: str
    gates: tuple[str, ...] = ()
    message: str = ""
    elsewhere: str = ""
    created_at: str = ""
    scheduler: str = ""
    mark: str = ""
    location: str = ""
    max_latency_ms: float | None = None
    requires_hosts: bool = False


def pods_by_step(
    pods: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    workflow: str,
    steps: Iterable[str],
) -> dict[str, PodView]:
    """The latest pod of each step that has one; what cannot be read is passed over.

    Args:
        pods: of the run, as the API server prints them.
        events: of the reason `PlacedElsewhere`, likewise.
        workflow: the Workflow's name.
        steps: names of the plan's steps.
    """
    names = frozenset(steps)
    deviations = _messages(events)
    found: dict[str, PodView] = {}
    for raw in pods:
        try:
            step = _step(raw, workflow, names)
            if step is None:
                continue
            view = _view(raw, deviations)
        except InputError:
            continue
        before = found.get(step)
        if before is None or before.created_at <= view.created_at:
            found[step] = view
    return found


def _step(raw: Mapping[str, Any], workflow: str, names: frozenset[str]) -> str | None:
    metadata = as_mapping(raw.get("metadata"), "pod")
    annotations = as_mapping(metadata.get("annotations"), "pod")
    node_name = as_text(annotations.get(NODE_NAME_ANNOTATION), "pod")
    return step_of_executor(node_name, workflow, names) if node_name else None


def _view(raw: Mapping[str, Any], deviations: Mapping[str, str]) -> PodView:
    metadata = as_mapping(raw.get("metadata"), "pod")
    spec, status = as_mapping(raw.get("spec"), "pod"), as_mapping(raw.get("status"), "pod")
    labels = as_mapping(metadata.get("labels"), "pod")
    annotations = as_mapping(metadata.get("annotations"), "pod")
    return PodView(
        name=_text(metadata, "name"),
        node=_text(spec, "nodeName"),
        phase=_text(status, "phase") or "Pending",
        gates=gates_of(raw),
        message=_message(status),
        elsewhere=deviations.get(_text(metadata, "uid"), ""),
        created_at=_text(metadata, "creationTimestamp"),
        scheduler=_text(spec, "schedulerName") or KUBERNETES_SCHEDULER,
        mark=_text(labels, SCHEDULER_LABEL),
        location=_text(labels, LOCATION_LABEL),
        max_latency_ms=max_latency_ms_in(as_text(annotations.get(HINTS_ANNOTATION), "pod")),
        requires_hosts=requires_hosts(Fields(raw, Place("pod"))),
    )


def gates_of(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The scheduling gates of a pod.

    Raises:
        InputError: it has another form.
    """
    spec = as_mapping(pod.get("spec"), "pod")
    gates = as_list(spec.get("schedulingGates"), "pod: schedulingGates")
    return tuple(_text(as_mapping(gate, "pod: schedulingGates"), "name") for gate in gates)


def _message(status: Mapping[str, Any]) -> str:
    """Why it failed, else why it has no node, else why a container does not start."""
    if status.get("phase") in _ENDED:
        return ": ".join(filter(None, (_text(status, "reason"), _text(status, "message"))))
    for item in as_list(status.get("conditions"), "pod: conditions"):
        condition = as_mapping(item, "pod: conditions")
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _text(condition, "message") or _text(condition, "reason")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for item in as_list(status.get(kind), f"pod: {kind}"):
            state = as_mapping(as_mapping(item, f"pod: {kind}").get("state"), "pod: state")
            waiting = as_mapping(state.get("waiting"), "pod: waiting")
            if waiting:
                parts = (_text(waiting, "reason"), _text(waiting, "message"))
                return ": ".join(filter(None, parts))
    return ""


def _messages(events: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Messages by the uid of the pod that they are about; the last one counts."""
    found: dict[str, tuple[str, str]] = {}
    for raw in events:
        try:
            about = as_mapping(raw.get("involvedObject"), "event")
            uid, message = _text(about, "uid"), _text(raw, "message")
            at = max(_text(raw, "eventTime"), _text(raw, "lastTimestamp"))
        except InputError:
            continue
        if uid and raw.get("reason") == PLACED_ELSEWHERE:
            found[uid] = max(found.get(uid, ("", "")), (at, message))
    return {uid: message for uid, (_, message) in found.items()}


def _text(fields: Mapping[str, Any], key: str) -> str:
    return as_text(fields.get(key), f"pod: {key}")[:MAX_TEXT_CHARACTERS]
