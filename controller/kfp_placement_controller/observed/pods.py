"""What is kept of a pod: a hundredth of what KFP and Argo write into it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from sys import intern
from typing import Any, NamedTuple

from kfp_placement_controller.kube.times import read_time
from kfp_placement_engine.contract.hints import max_latency_ms_in
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    LOCATION_LABEL,
    SCHEDULER_LABEL,
    TYPE_LABEL,
)
from kfp_placement_engine.model.resources import Resources
from kfp_placement_engine.readers.fields import as_list, as_mapping, as_text
from kfp_placement_engine.readers.kubernetes.claims import mounted_claims
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.kubernetes.required_hosts import is_barred

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
NODE_NAME_ANNOTATION = "workflows.argoproj.io/node-name"

MAIN_CONTAINER = "main"
"""Where Argo runs the step; the others prepare and clean up."""

MAX_MESSAGE_CHARACTERS = 1000
"""Kept of a message; kube-scheduler's names each reason once and is shorter."""

_ENDED = ("Succeeded", "Failed")
_STARTING = ("PodInitializing", "ContainerCreating")


class Said(NamedTuple):
    """Why something is so.

    Attributes:
        reason: one word.
        message: for people.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod, as far as it matters to plans.

    Attributes:
        namespace: where it is.
        name: its name.
        uid: another pod of the same name has another.
        created_at: when.
        deleting: somebody has deleted it; it may still run.
        phase: Pending, Running, Succeeded, Failed or Unknown.
        node_name: where it is bound to; "" = nowhere yet.
        scheduler_name: who places it.
        workflow: name of the Workflow that it belongs to; "" = none.
        workflow_uid: of the Workflow that owns it; "" = none.
        argo_node_name: its place in the Workflow; "" = none.
        step_type: label `typeOfComponent`; "" = none.
        location: label `OurLocation`; "" = none.
        max_latency_ms: hard limit of the round trip to it, from the step's hints; None = none.
        scheduler_mark: label that asks for our scheduler; "" = none: the pod is not marked.
        gates: scheduling gates, ours and others'.
        barred: it requires a host that there is none of, since no node was within its latency
            limit when its gate came off.
        requests: resources by name: milli-CPU, bytes, counts.
        scored_requests: CPU and memory as kube-scheduler's scores count them.
        claims: names of the claims that it mounts, in its namespace.
        started_at: when the kubelet took it; None = not yet.
        running_at: when the main container began; None = not yet.
        finished_at: when the main container ended; None = not yet.
        unscheduled: why it has no node, in the scheduler's words; None = it says nothing.
        prepared: its volumes are mounted and its network is there, so that containers may begin.
        waiting_reason: why a container does not run, such as `ImagePullBackOff`; "" = none waits.
        failure: why the pod as a whole failed, such as `OutOfcpu`; None = nothing is said.
    """

    namespace: str
    name: str
    uid: str
    created_at: datetime | None
    deleting: bool
    phase: str
    node_name: str
    scheduler_name: str
    workflow: str
    workflow_uid: str
    argo_node_name: str
    step_type: str
    location: str
    max_latency_ms: float | None
    scheduler_mark: str
    gates: tuple[str, ...]
    barred: bool
    requests: Resources
    scored_requests: Resources
    claims: tuple[str, ...]
    started_at: datetime | None
    running_at: datetime | None
    finished_at: datetime | None
    unscheduled: Said | None
    prepared: bool
    waiting_reason: str
    failure: Said | None

    @property
    def ended(self) -> bool:
        """Whether it takes no room any more and never will again."""
        return self.phase in _ENDED

    @property
    def holds_room(self) -> bool:
        """Whether it takes room on its node."""
        return bool(self.node_name) and not self.ended


def observe_pod(raw: Mapping[str, Any]) -> ObservedPod:
    """Keep what matters of a pod as the API server prints it.

    Raises:
        InputError: it has another form, or an amount in it is malformed.
    """
    metadata = as_mapping(raw.get("metadata"), "pod: metadata")
    namespace, name = _text(metadata, "namespace"), _text(metadata, "name")
    place = f"pod {namespace:.80}/{name:.80}"
    labels = as_mapping(metadata.get("labels"), f"{place}: labels")
    annotations = as_mapping(metadata.get("annotations"), f"{place}: annotations")
    spec = as_mapping(raw.get("spec"), f"{place}: spec")
    status = as_mapping(raw.get("status"), f"{place}: status")
    main = _main_state(status, place)
    requests = read_requests(raw, place)
    return ObservedPod(
        namespace=intern(namespace),
        name=name,
        uid=_text(metadata, "uid"),
        created_at=read_time(metadata.get("creationTimestamp"), f"{place}: creationTimestamp"),
        deleting=metadata.get("deletionTimestamp") is not None,
        phase=intern(_text(status, "phase") or "Pending"),
        node_name=intern(_text(spec, "nodeName")),
        scheduler_name=intern(_text(spec, "schedulerName")),
        workflow=intern(_text(labels, WORKFLOW_LABEL)),
        workflow_uid=intern(_workflow_uid(metadata, place)),
        argo_node_name=_text(annotations, NODE_NAME_ANNOTATION),
        step_type=intern(_text(labels, TYPE_LABEL)),
        location=intern(_text(labels, LOCATION_LABEL)),
        max_latency_ms=max_latency_ms_in(_text(annotations, HINTS_ANNOTATION)),
        scheduler_mark=intern(_text(labels, SCHEDULER_LABEL)),
        gates=tuple(
            _text(as_mapping(gate, place), "name")
            for gate in as_list(spec.get("schedulingGates"), f"{place}: schedulingGates")
        ),
        barred=is_barred(raw, f"{place}: affinity"),
        requests=requests.real,
        scored_requests=requests.scored,
        claims=tuple(claim for _, claim in mounted_claims(raw, place)),
        started_at=read_time(status.get("startTime"), f"{place}: startTime"),
        running_at=read_time(main.get("startedAt"), f"{place}: startedAt"),
        finished_at=read_time(main.get("finishedAt"), f"{place}: finishedAt"),
        unscheduled=_unscheduled(status, place),
        prepared=_prepared(status, place),
        waiting_reason=_waiting_reason(status, place),
        failure=_said(status) if status.get("phase") == "Failed" else None,
    )


def _workflow_uid(metadata: Mapping[str, Any], place: str) -> str:
    for item in as_list(metadata.get("ownerReferences"), f"{place}: ownerReferences"):
        owner = as_mapping(item, f"{place}: ownerReferences")
        if owner.get("kind") == "Workflow":
            return _text(owner, "uid")
    return ""


def _main_state(status: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """When the main container began and ended."""
    for container in _containers(status, place):
        if container.get("name") == MAIN_CONTAINER:
            state = as_mapping(container.get("state"), f"{place}: state")
            for kind in ("terminated", "running"):
                if state.get(kind) is not None:
                    return as_mapping(state[kind], f"{place}: state")
    return {}


def _waiting_reason(status: Mapping[str, Any], place: str) -> str:
    """The first reason that says more than that the pod is starting, else that it is."""
    reasons = [
        _text(as_mapping(state["waiting"], place), "reason")
        for container in _containers(status, place)
        if (state := as_mapping(container.get("state"), f"{place}: state")).get("waiting")
    ]
    telling = [reason for reason in reasons if reason not in _STARTING]
    return intern((telling or reasons or [""])[0])


def _containers(status: Mapping[str, Any], place: str) -> Iterator[Mapping[str, Any]]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for item in as_list(status.get(kind), f"{place}: {kind}"):
            yield as_mapping(item, f"{place}: {kind}")


def _unscheduled(status: Mapping[str, Any], place: str) -> Said | None:
    scheduled = _condition(status, "PodScheduled", place)
    return _said(scheduled) if scheduled.get("status") == "False" else None


def _prepared(status: Mapping[str, Any], place: str) -> bool:
    """The kubelet says so; before Kubernetes 1.29 the first container to begin shows it."""
    if _condition(status, "PodReadyToStartContainers", place).get("status") == "True":
        return True
    states = (
        as_mapping(container.get("state"), f"{place}: state")
        for container in _containers(status, place)
    )
    return any(state.get("running") or state.get("terminated") for state in states)


def _condition(status: Mapping[str, Any], type_: str, place: str) -> Mapping[str, Any]:
    """The condition of that type; empty = there is none."""
    for item in as_list(status.get("conditions"), f"{place}: conditions"):
        condition = as_mapping(item, f"{place}: conditions")
        if condition.get("type") == type_:
            return condition
    return {}


def _said(fields: Mapping[str, Any]) -> Said | None:
    reason, message = _text(fields, "reason"), _text(fields, "message")[:MAX_MESSAGE_CHARACTERS]
    return Said(intern(reason), message) if reason or message else None


def _text(fields: Mapping[str, Any], name: str) -> str:
    return as_text(fields.get(name), name)
