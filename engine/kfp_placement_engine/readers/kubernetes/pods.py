"""A reader of the resources that a Pod object requests.

The request is `max(sum of containers and sidecars, peak of the init containers) + overhead`
(`component-helpers/resource/helpers.go`, PodRequests), with the API server's defaults applied: a
limit without a request is a request. What the pod requests as a whole replaces that sum.
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


class Container(NamedTuple):
    """A container of a pod, as far as the pod's requests depend on it.

    Attributes:
        requests: requests of the container.
        is_init: whether it is in the pod's list of init containers.
        is_sidecar: whether it is an init container that goes on beside the main ones.
    """

    requests: Resources
    is_init: bool = False
    is_sidecar: bool = False


def read_requests(pod: Fields) -> PodRequests:
    """Read the requests of a pod, including a resize in place of a running pod.

    Raises:
        InputError: the object is malformed, or an amount is malformed.
    """
    spec, status = pod.flat("spec"), pod.flat("status")
    containers = _containers(spec, status)
    real = total_requests(containers)
    pod_resources = Fields(spec.mapping("resources"), spec.place.then(": spec.resources"))
    pod_level = pod_level_requests(pod_resources, real)
    real.update(pod_level)
    overhead = spec.stored_resources("overhead")
    add_to(real, overhead)
    missing = SCORED_DEFAULTS
    if pod_level:
        missing = {name: each for name, each in SCORED_DEFAULTS.items() if name not in real}
    scored = total_requests(containers, missing)
    scored.update(pod_level)
    add_to(scored, overhead)
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


def is_pod_level(name: str) -> bool:
    """Return whether a pod may request a resource as a whole."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def pod_level_requests(resources: Fields, of_containers: Resources) -> Amounts:
    """Return what a pod requests as a whole, which replaces the sum of its containers.

    A limit counts as a request if no container requests the resource: so the API server fills in
    what is missing.

    Args:
        resources: requests and limits of the pod as a whole.
        of_containers: sum of what its containers request.

    Raises:
        InputError: the resources, or an amount in them, are malformed.
    """
    limits, requests = resources.stored_resources("limits"), resources.stored_resources("requests")
    filled_in = {name: each for name, each in limits.items() if name not in of_containers}
    return {name: each for name, each in {**filled_in, **requests}.items() if is_pod_level(name)}


def _containers(spec: Fields, status: Fields) -> list[Container]:
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
            containers.append(Container(requests, is_init, is_sidecar))
    return containers


def _requested(resources: Fields) -> Amounts:
    limits = resources.stored_resources("limits")
    return {**limits, **resources.stored_resources("requests")}


def _resized(requests: Resources, status: Fields, infeasible: bool) -> Amounts:
    """Return the largest of requested, allocated and actual amounts.

    This is Kubernetes' `determineEffectiveRequests`.
    """
    actual = status.flat("resources").stored_resources("requests")
    lists = [actual, status.stored_resources("allocatedResources")]
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


def total_requests(containers: Iterable[Container], missing: Resources | None = None) -> Amounts:
    """Return what the containers of a pod request together.

    Args:
        containers: containers of the pod, its init containers in their order.
        missing: amounts that count for a container that requests none.
    """
    missing = missing or {}
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
    return total
