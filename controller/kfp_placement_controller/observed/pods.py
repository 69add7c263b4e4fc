"""Pods, slimmed to the hundredth part of each that plans need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from sys import intern
from typing import NamedTuple

from kfp_placement_controller.observed.containers import (
    containers,
    image,
    killed_bytes,
    main_state,
    waiting_reason,
)
from kfp_placement_controller.observed.limited_fields import (
    MAX_LISTED,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    text_of,
)
from kfp_placement_engine.contract.hints import max_latency_ms_in
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    LOCATION_LABEL,
    PLAN_GATE,
    SCHEDULER_LABEL,
    TYPE_LABEL,
)
from kfp_placement_engine.model.run_graph import StartLimit
from kfp_placement_engine.readers.kubernetes.claims import mounted_claims
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.kubernetes.required_hosts import is_unsatisfiable
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.resources import Resources
from kfp_placement_kube.kinds import JsonObject

_MAX_ANNOTATION_CHARACTERS = 2048
"""Longest annotation that is kept; Argo's names of nodes have 100, or 1,000 with long items."""

_POD = Place("pod")
_ENDED = ("Succeeded", "Failed")


class ReasonAndMessage(NamedTuple):
    """Reason of a condition or of a failure.

    Attributes:
        reason: reason as one word.
        message: reason for people.
    """

    reason: str
    message: str


class Owner(NamedTuple):
    """The object that controls a pod: the one that made it, and that makes another.

    Attributes:
        kind: kind of the object.
        name: name of the object, which is in the pod's namespace.
        uid: uid of the object.
    """

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodKeys:
    """Keys and names by which a source of runs recognizes its pods, and their runs and steps.

    Attributes:
        labels: keys of the labels; a pod that has a value of one belongs to the source.
        annotations: keys of the annotations.
        containers: names of the containers that run steps; the others prepare and clean up.
        is_unmarked_step: test for pods that execute a step whose author names no scheduler.
        start_limit: function that reads within which time a pod must run; None = it does not say.
    """

    labels: tuple[str, ...]
    annotations: tuple[str, ...]
    containers: tuple[str, ...]
    is_unmarked_step: Callable[[Fields], bool]
    start_limit: Callable[[Fields], StartLimit | None]


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod, slimmed to the fields that plans need.

    Attributes:
        namespace: namespace of the pod.
        name: name of the pod.
        uid: uid of the pod; a later pod of the same name has another uid.
        created_at: creation time; None = the pod does not give it.
        deleting: whether somebody has deleted the pod; it may still run.
        phase: Pending, Running, Succeeded, Failed or Unknown.
        node_name: node that the pod is bound to; "" = none yet.
        scheduler_name: name of the scheduler that places the pod.
        labels: labels that the sources of runs need.
        annotations: annotations that the sources of runs need.
        owner: object that controls the pod; None = no object does.
        step_type: label `typeOfComponent`; "" = none.
        location: label `OurLocation`; "" = none.
        max_latency_ms: hard limit of the round trip to that location, from the step's hints; None =
            there is none.
        scheduler_mark: label that asks for our scheduler; "" = none: the pod is not marked.
        unmarked_step: whether the pod executes a step whose author names no scheduler. It counts as
            marked if its namespace has all pipelines planned.
        gates: names of all scheduling gates, not only ours.
        unsatisfiable: whether the pod requires a host that does not exist, because no node was
            within its latency limit when its gate was removed.
        requests: resources by name: milli-CPU, bytes, counts.
        scored_requests: CPU and memory as kube-scheduler's scores count them.
        claims: names of the claims that the pod mounts, in its namespace.
        started_at: time when the kubelet accepted the pod; None = not yet.
        running_at: start of the main container; None = not yet.
        finished_at: end of the main container; None = not yet.
        unscheduled: reason why the pod has no node, in the scheduler's words; None = the scheduler
            gives none.
        prepared: whether the pod has its volumes and its network, so that containers may start.
        waiting_reason: reason why a container waits, such as `ImagePullBackOff`; "" = none waits.
        failure: reason why the pod as a whole failed, such as `OutOfcpu`; None = none is given.
        killed_bytes: memory limit that the step exceeded when it was killed; None = it was not
            killed for memory, or had no limit.
        image: reference of the image that runs the step; "" = unknown.
        start_limit: limit of the time until the pod runs, by its source; None = there is none, or
            the pod does not wait any more.
    """

    namespace: str
    name: str
    uid: str
    created_at: datetime | None
    deleting: bool
    phase: str
    node_name: str
    scheduler_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner | None
    step_type: str
    location: str
    max_latency_ms: float | None
    scheduler_mark: str
    unmarked_step: bool
    gates: tuple[str, ...]
    unsatisfiable: bool
    requests: Resources
    scored_requests: Resources
    claims: tuple[str, ...]
    started_at: datetime | None
    running_at: datetime | None
    finished_at: datetime | None
    unscheduled: ReasonAndMessage | None
    prepared: bool
    waiting_reason: str
    failure: ReasonAndMessage | None
    killed_bytes: int | None = None
    image: str = ""
    start_limit: StartLimit | None = None

    @property
    def ended(self) -> bool:
        """Return whether the pod has ended, and so takes no resources and never will again."""
        return self.phase in _ENDED

    @property
    def holds_room(self) -> bool:
        """Return whether the pod takes resources on a node."""
        return bool(self.node_name) and not self.ended


def observe_pod(raw: JsonObject, keys: Sequence[PodKeys]) -> ObservedPod:
    """Slim a pod as the API server prints it.

    Args:
        raw: the pod.
        keys: keys of every source, in order. All their labels and annotations are kept; the main
            container is the one that the pod's own source names.

    Raises:
        InputError: the pod, or an amount in it, is malformed.
    """
    pod = Fields(raw, _POD)
    metadata = pod.flat("metadata")
    namespace, name = text_of(metadata, "namespace"), text_of(metadata, "name")
    pod = Fields(raw, Place("pod {:.80}/{:.80}", (namespace, name)))
    metadata, spec, status = pod.flat("metadata"), pod.flat("spec"), pod.flat("status")
    labels, annotations = metadata.flat("labels"), metadata.flat("annotations")
    step_containers = _step_containers(labels, status, keys)
    main = main_state(status, step_containers)
    requests = read_requests(pod)
    conditions = list(status.each_flat("conditions"))
    states = [container.flat("state") for container in containers(status)]
    return ObservedPod(
        namespace=intern(namespace),
        name=name,
        uid=text_of(metadata, "uid"),
        created_at=metadata.moment("creationTimestamp"),
        deleting=metadata.get("deletionTimestamp") is not None,
        phase=intern(text_of(status, "phase") or "Pending"),
        node_name=intern(text_of(spec, "nodeName")),
        scheduler_name=intern(text_of(spec, "schedulerName")),
        labels={k: intern(text_of(labels, k)) for each in keys for k in each.labels if k in labels},
        annotations={
            k: text_of(annotations, k, _MAX_ANNOTATION_CHARACTERS)
            for each in keys
            for k in each.annotations
            if k in annotations
        },
        owner=_owner(metadata),
        step_type=intern(text_of(labels, TYPE_LABEL)),
        location=intern(text_of(labels, LOCATION_LABEL)),
        max_latency_ms=max_latency_ms_in(text_of(annotations, HINTS_ANNOTATION, None)),
        scheduler_mark=intern(text_of(labels, SCHEDULER_LABEL)),
        unmarked_step=any(each.is_unmarked_step(pod) for each in keys),
        gates=_gates(spec),
        unsatisfiable=is_unsatisfiable(pod),
        requests=_kept(requests.real),
        scored_requests=requests.scored,
        claims=tuple(claim for _, claim in islice(mounted_claims(pod), MAX_LISTED)),
        started_at=status.moment("startTime"),
        running_at=main.moment("startedAt"),
        finished_at=main.moment("finishedAt"),
        unscheduled=_unscheduled(conditions),
        prepared=_prepared(conditions, states),
        waiting_reason=waiting_reason(states),
        failure=_reason_and_message(status) if status.get("phase") == "Failed" else None,
        killed_bytes=killed_bytes(spec, status, step_containers),
        image=image(spec, step_containers),
        start_limit=_start_limit(pod, status, keys),
    )


def _gates(spec: Fields) -> tuple[str, ...]:
    """Return the names of the scheduling gates, ours first if there are very many."""
    gates = [
        text_of(Fields.of(each, spec.place), "name") for each in spec.entries("schedulingGates")
    ]
    if len(gates) > MAX_LISTED:
        gates.sort(key=lambda name: name != PLAN_GATE)
    return tuple(gates[:MAX_LISTED])


def _kept(requests: Resources) -> Resources:
    """Return the requests that are kept: of very many, those above 0, CPU and memory first.

    kube-scheduler binds no pod that asks for what no node has, so few matter.
    """
    if len(requests) <= MAX_LISTED:
        return requests
    names = sorted(filter(requests.get, requests), key=lambda name: ("/" in name, name))
    return {name: requests[name] for name in names[:MAX_LISTED]}


def _start_limit(pod: Fields, status: Fields, keys: Sequence[PodKeys]) -> StartLimit | None:
    """Return the limit of the time until a pod runs; None = no limit is known, or none counts."""
    if text_of(status, "phase") not in ("", "Pending"):
        return None
    limits = (each.start_limit(pod) for each in keys)
    return next((limit for limit in limits if limit is not None), None)


def _owner(metadata: Fields) -> Owner | None:
    """Return the object that controls a pod, of which there is one at most; None = no object."""
    for owner in metadata.entries("ownerReferences"):
        match owner:
            case {"controller": True, "kind": str(kind), "name": str(name), "uid": str(uid)}:
                kind, name, uid = (each[:MAX_NAME_CHARACTERS] for each in (kind, name, uid))
                return Owner(intern(kind), intern(name), intern(uid))
            case _:
                pass
    return None


def _step_containers(labels: Fields, status: Fields, keys: Sequence[PodKeys]) -> Sequence[str]:
    """Return the names of the containers that run steps, as the pod's source gives them.

    The pod's source is the first whose label the pod has, else the first whose container it has.
    """
    for each in keys:
        if any(labels.get(key) for key in each.labels):
            return each.containers
    for each in keys:
        if any(container.get("name") in each.containers for container in containers(status)):
            return each.containers
    return ()


def _unscheduled(conditions: Iterable[Fields]) -> ReasonAndMessage | None:
    scheduled = _condition(conditions, "PodScheduled")
    return (
        _reason_and_message(scheduled)
        if scheduled is not None and scheduled.get("status") == "False"
        else None
    )


def _prepared(conditions: Iterable[Fields], states: Iterable[Fields]) -> bool:
    """Return whether the pod has its volumes and its network.

    The kubelet sets a condition; before Kubernetes 1.29, the first container that starts shows it.
    """
    ready = _condition(conditions, "PodReadyToStartContainers")
    if ready is not None and ready.get("status") == "True":
        return True
    return any(state.get("running") or state.get("terminated") for state in states)


def _condition(conditions: Iterable[Fields], type_: str) -> Fields | None:
    """Return the condition of a type, or None if there is none."""
    return next((each for each in conditions if each.get("type") == type_), None)


def _reason_and_message(fields: Fields) -> ReasonAndMessage | None:
    reason = text_of(fields, "reason")
    message = text_of(fields, "message", MAX_TEXT_CHARACTERS)
    return ReasonAndMessage(intern(reason), message) if reason or message else None
