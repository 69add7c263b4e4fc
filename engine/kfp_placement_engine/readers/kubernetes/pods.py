"""A Pod object as the API server prints it -> what it requests, and what kube-scheduler sees.

The request is `max(sum of containers and sidecars, peak of the init containers) + overhead`
(`component-helpers/resource/helpers.go`, PodRequests), with the API server's defaults applied: a
limit without a request is a request.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kfp_placement_engine.model.pod import (
    ANY_ADDRESS,
    DEFAULT_CPU_REQUEST_MILLI,
    DEFAULT_MEMORY_REQUEST_BYTES,
    HostPort,
    Pod,
)
from kfp_placement_engine.model.resources import Resources, add_to, raise_to
from kfp_placement_engine.readers.fields import (
    as_count,
    as_list,
    as_mapping,
    as_text,
    as_text_mapping,
)
from kfp_placement_engine.readers.kubernetes.constraints import read_node_affinity, read_tolerations
from kfp_placement_engine.readers.kubernetes.pod_terms import read_pod_affinity, read_spread
from kfp_placement_engine.readers.kubernetes.resource_lists import as_resources

_SCORED_DEFAULTS: Mapping[str, int] = {
    "cpu": DEFAULT_CPU_REQUEST_MILLI,
    "memory": DEFAULT_MEMORY_REQUEST_BYTES,
}
_PLAIN_NAMES = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = ("cpu", "memory")


class PodRequests(NamedTuple):
    """What a pod requests.

    Attributes:
        real: in truth.
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


def read_requests(pod: Mapping[str, Any], place: str) -> PodRequests:
    """Read what a pod requests; of a running pod, also what a resize in place has given it.

    Raises:
        InputError: the object has another form, or an amount is malformed.
    """
    spec = as_mapping(pod.get("spec"), f"{place}: spec")
    containers = _containers(spec, as_mapping(pod.get("status"), f"{place}: status"), place)
    pod_level = _requested(spec.get("resources"), f"{place}: spec.resources")
    pod_level = {name: each for name, each in pod_level.items() if _is_pod_level(name)}
    overhead = as_resources(spec.get("overhead"), f"{place}: spec.overhead")
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


def read_pod(pod: Mapping[str, Any], place: str) -> Pod:
    """Read a pod with all that kube-scheduler's stock profile looks at.

    Raises:
        InputError: the object has another form.
    """
    metadata = as_mapping(pod.get("metadata"), f"{place}: metadata")
    spec = as_mapping(pod.get("spec"), f"{place}: spec")
    namespace = as_text(metadata.get("namespace"), f"{place}: namespace") or "default"
    labels = as_text_mapping(metadata.get("labels"), f"{place}: labels")
    affinity = as_mapping(spec.get("affinity"), f"{place}: affinity")
    init = as_list(spec.get("initContainers"), f"{place}: initContainers")
    main = as_list(spec.get("containers"), f"{place}: containers")
    requests = read_requests(pod, place)
    return Pod(
        name=as_text(metadata.get("name"), f"{place}: name"),
        namespace=namespace,
        labels=labels,
        requests=requests.real,
        scored_requests=requests.scored,
        arrival_requests=requests.arrival,
        node_name=as_text(spec.get("nodeName"), f"{place}: nodeName"),
        node_selector=as_text_mapping(spec.get("nodeSelector"), f"{place}: nodeSelector"),
        affinity=read_node_affinity(affinity.get("nodeAffinity"), f"{place}: nodeAffinity"),
        tolerations=read_tolerations(spec.get("tolerations"), f"{place}: tolerations"),
        images=tuple(
            as_text(as_mapping(each, place).get("image"), f"{place}: image")
            for each in (*init, *main)
        ),
        image_volumes=_image_volumes(spec, place),
        containers=len(init) + len(main),
        host_ports=_host_ports(init, main, place),
        spread=read_spread(spec.get("topologySpreadConstraints"), labels, f"{place}: spread"),
        pod_affinity=read_pod_affinity(
            affinity.get("podAffinity"), namespace, f"{place}: podAffinity"
        ),
        pod_anti_affinity=read_pod_affinity(
            affinity.get("podAntiAffinity"), namespace, f"{place}: podAntiAffinity"
        ),
        terminating=metadata.get("deletionTimestamp") is not None,
    )


def is_schedulable(name: str) -> bool:
    """Whether kube-scheduler counts a resource of this name (`util.IsScalarResourceName`)."""
    return (
        name in _PLAIN_NAMES
        or "/" in name
        or name.startswith(("hugepages-", "attachable-volumes-"))
    )


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _containers(spec: Mapping[str, Any], status: Mapping[str, Any], place: str) -> list[_Container]:
    reported = {
        str(each.get("name")): each
        for kind in ("containerStatuses", "initContainerStatuses")
        for each in (as_mapping(item, place) for item in as_list(status.get(kind), place))
        if each.get("resources") is not None
    }
    infeasible = _resize_infeasible(status, place)
    found = []
    for kind in ("containers", "initContainers"):
        for item in as_list(spec.get(kind), f"{place}: {kind}"):
            raw = as_mapping(item, f"{place}: {kind}")
            name = str(raw.get("name"))
            here = f"{place}: container {name:.80}"
            requests = _requested(raw.get("resources"), here)
            is_init = kind == "initContainers"
            is_sidecar = is_init and raw.get("restartPolicy") == "Always"
            if name in reported and (is_sidecar or not is_init):
                requests = _resized(requests, reported[name], infeasible, here)
            found.append(_Container(requests, is_init, is_sidecar))
    return found


def _requested(value: object, place: str) -> dict[str, int]:
    raw = as_mapping(value, place)
    limits = as_resources(raw.get("limits"), f"{place}: limits")
    return {**limits, **as_resources(raw.get("requests"), f"{place}: requests")}


def _resized(
    requests: Mapping[str, int], status: Mapping[str, Any], infeasible: bool, place: str
) -> dict[str, int]:
    """The larger of what is asked for, allocated and in force (determineEffectiveRequests)."""
    actual = as_mapping(status.get("resources"), place).get("requests")
    lists = [as_resources(actual, place), as_resources(status.get("allocatedResources"), place)]
    if not infeasible:
        lists.append(dict(requests))
    largest: dict[str, int] = {}
    for each in lists:
        raise_to(largest, each)
    return largest


def _resize_infeasible(status: Mapping[str, Any], place: str) -> bool:
    for item in as_list(status.get("conditions"), place):
        condition = as_mapping(item, place)
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


def _image_volumes(spec: Mapping[str, Any], place: str) -> tuple[str, ...]:
    found = []
    for item in as_list(spec.get("volumes"), f"{place}: volumes"):
        image = as_mapping(item, f"{place}: volumes").get("image")
        if image is not None:
            found.append(as_text(as_mapping(image, place).get("reference"), f"{place}: image"))
    return tuple(found)


def _host_ports(init: Iterable[object], main: Iterable[object], place: str) -> tuple[HostPort, ...]:
    sidecars = [each for each in init if as_mapping(each, place).get("restartPolicy") == "Always"]
    found = []
    for container in (*sidecars, *main):
        for item in as_list(as_mapping(container, place).get("ports"), f"{place}: ports"):
            raw = as_mapping(item, f"{place}: ports")
            port = as_count(raw.get("hostPort"), f"{place}: hostPort")
            if port > 0:
                protocol = as_text(raw.get("protocol"), place) or "TCP"
                found.append(
                    HostPort(port, protocol, as_text(raw.get("hostIP"), place) or ANY_ADDRESS)
                )
    return tuple(found)
