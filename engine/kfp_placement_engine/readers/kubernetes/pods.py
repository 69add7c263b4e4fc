"""A reader of the resources that a Pod object requests.

The request is `max(sum of containers and sidecars, peak of the init containers) + overhead`
(`component-helpers/resource/helpers.go`, PodRequests), with the API server's defaults applied: a
limit without a request is a request.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.units.resources import (
    SCORED_DEFAULTS,
    Amounts,
    Resources,
    add_to,
    raise_to,
)

_PLAIN_NAMES = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = ("cpu", "memory")


class PodRequests(NamedTuple):
    """Requests of a pod, in two counts.

    Attributes:
        real: actual amounts.
        scored: CPU and memory as kube-scheduler's scores count them once the pod is bound.
    """

    real: Amounts
    scored: Amounts


class _Container(NamedTuple):
    requests: Resources
    is_init: bool
    is_sidecar: bool


def read_requests(pod: Fields) -> PodRequests:
    """Read the requests of a pod, including a resize in place of a running pod.

    Raises:
        InputError: the object is malformed, or an amount is malformed.
    """
    spec, status = pod.flat("spec"), pod.flat("status")
    containers = _containers(spec, status)
    pod_level = _pod_level(spec)
    overhead = spec.resources("overhead")
    real = _total(containers, {}, pod_level, overhead)
    missing = SCORED_DEFAULTS
    if pod_level:
        missing = {name: each for name, each in SCORED_DEFAULTS.items() if name not in real}
    scored = _total(containers, missing, pod_level, overhead)
    return PodRequests(
        {name: amount for name, amount in real.items() if is_schedulable(name)},
        {name: scored.get(name, 0) for name in SCORED_DEFAULTS},
    )


def is_schedulable(name: str) -> bool:
    """Return whether kube-scheduler counts a resource (`util.IsScalarResourceName`)."""
    return (
        name in _PLAIN_NAMES
        or "/" in name
        or name.startswith(("hugepages-", "attachable-volumes-"))
    )


def _pod_level(spec: Fields) -> Amounts:
    """Return the resources of the pod as a whole."""
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


def _requested(resources: Fields) -> Amounts:
    limits = resources.resources("limits")
    return {**limits, **resources.resources("requests")}


def _resized(requests: Resources, status: Fields, infeasible: bool) -> Amounts:
    """Return the largest of requested, allocated and actual amounts.

    This is Kubernetes' `determineEffectiveRequests`.
    """
    actual = status.flat("resources").resources("requests")
    lists = [actual, status.resources("allocatedResources")]
    if not infeasible:
        lists.append(dict(requests))
    largest: Amounts = {}
    for each in lists:
        raise_to(largest, each)
    return largest


def _resize_infeasible(status: Fields) -> bool:
    for condition in status.each_flat("conditions"):
        if condition.get("type") == "PodResizePending":
            return condition.get("reason") == "Infeasible"
    return False


def _total(
    containers: Iterable[_Container], missing: Resources, pod_level: Resources, overhead: Resources
) -> Amounts:
    """Return what a pod requests; `missing` holds amounts for containers that request none."""
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
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
