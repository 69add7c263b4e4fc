"""A Pod object as the API server prints it -> what it requests, and what kube-scheduler sees.

The request is `max(sum of containers and sidecars, peak of the init containers) + overhead`
(`component-helpers/resource/helpers.go`, PodRequests), with the API server's defaults applied: a
limit without a request is a request.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kfp_placement_engine.model.pod import (
    ANY_ADDRESS,
    HostPort,
    Pod,
)
from kfp_placement_engine.model.resources import (
    DEFAULT_CPU_REQUEST_MILLI,
    DEFAULT_MEMORY_REQUEST_BYTES,
    Resources,
    add_to,
    raise_to,
)
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.constraints import read_node_affinity, read_tolerations
from kfp_placement_engine.readers.kubernetes.pod_terms import read_pod_affinity, read_spread

_SCORED_DEFAULTS: Mapping[str, int] = {
    "cpu": DEFAULT_CPU_REQUEST_MILLI,
    "memory": DEFAULT_MEMORY_REQUEST_BYTES,
}
_PLAIN_NAMES = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = ("cpu", "memory")


class PodRequests(NamedTuple):
    """What a pod requests.

    Attributes:
        real: actual amounts.
        scored: CPU and memory as the resource scores count them once it is bound.
        arrival: the same while the pod itself is being placed: without what is given to the pod as
            a whole, as NodeResourcesFit's scorer is made without it (`noderesources/fit.go`).
    """

    real: dict[str, int]
    scored: dict[str, int]
    arrival: dict[str, int]


class _Container(NamedTuple):
    requests: Mapping[str, int]
    is_init: bool
    is_sidecar: bool


def read_requests(pod: Fields) -> PodRequests:
    """Read what a pod requests; of a running pod, also what a resize in place has given it.

    Raises:
        InputError: the object is malformed, or an amount is malformed.
    """
    spec, status = pod.flat("spec"), pod.flat("status")
    containers = _containers(spec, status)
    pod_level = _pod_level(spec)
    overhead = spec.resources("overhead")
    real = _total(containers, {}, pod_level, overhead)
    missing = _SCORED_DEFAULTS
    if pod_level:
        missing = {name: each for name, each in _SCORED_DEFAULTS.items() if name not in real}
    scored = _total(containers, missing, pod_level, overhead)
    arrival = _total(containers, _SCORED_DEFAULTS, {}, overhead) if pod_level else scored
    return PodRequests(
        {name: amount for name, amount in real.items() if is_schedulable(name)},
        {name: scored.get(name, 0) for name in _SCORED_DEFAULTS},
        {name: arrival.get(name, 0) for name in _SCORED_DEFAULTS},
    )


def read_pod(pod: Fields) -> Pod:
    """Read a pod with all that kube-scheduler's stock profile looks at.

    Raises:
        InputError: the object is malformed.
    """
    metadata, spec = pod.flat("metadata"), pod.flat("spec")
    namespace = metadata.text("namespace") or "default"
    labels = metadata.text_mapping("labels")
    affinity = spec.flat("affinity")
    init, main = spec.entries("initContainers"), spec.entries("containers")
    requests = read_requests(pod)
    containers = [Fields.of(each, pod.place) for each in (*init, *main)]
    return Pod(
        name=metadata.text("name"),
        namespace=namespace,
        labels=labels,
        requests=requests.real,
        scored_requests=requests.scored,
        arrival_requests=requests.arrival,
        node_name=spec.text("nodeName"),
        node_selector=spec.text_mapping("nodeSelector"),
        affinity=read_node_affinity(affinity.fields("nodeAffinity")),
        tolerations=read_tolerations(spec.get("tolerations"), spec.where("tolerations")),
        images=tuple(each.text("image") for each in containers),
        image_volumes=_image_volumes(spec),
        containers=len(containers),
        host_ports=_host_ports(containers[: len(init)], containers[len(init) :]),
        spread=read_spread(spec, labels),
        pod_affinity=read_pod_affinity(affinity.fields("podAffinity"), namespace),
        pod_anti_affinity=read_pod_affinity(affinity.fields("podAntiAffinity"), namespace),
        terminating=metadata.get("deletionTimestamp") is not None,
    )


def is_schedulable(name: str) -> bool:
    """Whether kube-scheduler counts a resource of this name (`util.IsScalarResourceName`)."""
    return (
        name in _PLAIN_NAMES
        or "/" in name
        or name.startswith(("hugepages-", "attachable-volumes-"))
    )


def _pod_level(spec: Fields) -> dict[str, int]:
    """What is given to the pod as a whole."""
    given = spec.mapping("resources")
    if not given:
        return {}
    requested = _requested(Fields(given, spec.place.then(": spec.resources")))
    return {
        name: each
        for name, each in requested.items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }


def _containers(spec: Fields, status: Fields) -> list[_Container]:
    reported = {
        str(each.get("name")): each
        for kind in ("containerStatuses", "initContainerStatuses")
        for each in status.each_flat(kind)
        if each.get("resources") is not None
    }
    infeasible = _resize_infeasible(status)
    containers = []
    for kind in ("containers", "initContainers"):
        for raw in spec.each_flat(kind):
            name = str(raw.get("name"))
            container = raw.at(": container {:.80}", name)
            requests = _requested(container.flat("resources"))
            is_init = kind == "initContainers"
            is_sidecar = is_init and raw.get("restartPolicy") == "Always"
            if name in reported and (is_sidecar or not is_init):
                requests = _resized(
                    requests, Fields(reported[name].raw, container.place), infeasible
                )
            containers.append(_Container(requests, is_init, is_sidecar))
    return containers


def _requested(resources: Fields) -> dict[str, int]:
    limits = resources.resources("limits")
    return {**limits, **resources.resources("requests")}


def _resized(requests: Mapping[str, int], status: Fields, infeasible: bool) -> dict[str, int]:
    """The larger of what is asked for, allocated and in force (determineEffectiveRequests)."""
    actual = status.flat("resources").resources("requests")
    lists = [actual, status.resources("allocatedResources")]
    if not infeasible:
        lists.append(dict(requests))
    largest: dict[str, int] = {}
    for each in lists:
        raise_to(largest, each)
    return largest


def _resize_infeasible(status: Fields) -> bool:
    for condition in status.each_flat("conditions"):
        if condition.get("type") == "PodResizePending":
            return condition.get("reason") == "Infeasible"
    return False


def _total(
    containers: Iterable[_Container],
    missing: Resources,
    pod_level: Resources,
    overhead: Resources,
) -> dict[str, int]:
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        requests = {**missing, **container.requests}
        if container.is_sidecar:
            add_to(total, requests)
            add_to(sidecars, requests)
            raise_to(peak, sidecars)
        elif container.is_init:
            add_to(requests, sidecars)
            raise_to(peak, requests)
        else:
            add_to(total, requests)
    raise_to(total, peak)
    total.update(pod_level)
    add_to(total, overhead)
    return total


def _image_volumes(spec: Fields) -> tuple[str, ...]:
    return tuple(
        volume.flat("image").text("reference")
        for volume in spec.each_flat("volumes")
        if volume.get("image") is not None
    )


def _host_ports(init: Iterable[Fields], main: Iterable[Fields]) -> tuple[HostPort, ...]:
    sidecars = [each for each in init if each.get("restartPolicy") == "Always"]
    ports = []
    for container in (*sidecars, *main):
        for raw in container.each_flat("ports"):
            port = raw.count("hostPort")
            if port > 0:
                protocol = raw.text("protocol") or "TCP"
                ports.append(HostPort(port, protocol, raw.text("hostIP") or ANY_ADDRESS))
    return tuple(ports)
