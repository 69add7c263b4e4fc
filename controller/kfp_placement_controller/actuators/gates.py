"""Our scheduling gate: how it comes off a pod, and what the pod is given on the way.

What the API server allows while a pod is gated is more than ever after: preferred terms may be
anything, required terms may only become narrower, and other people's gates are not ours to touch.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.contract.keys import HOST_LABEL, PLAN_GATE
from kfp_placement_engine.readers.fields import as_list, as_mapping
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import ConflictError, KubernetesError, NotFoundError
from kfp_placement_kube.kinds import PODS

_LOG = logging.getLogger(__name__)

MAX_TRIES = 5
"""Writes that others may come before: status updates of a gated pod are rare."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HIGHEST_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a pod is to go.

    Attributes:
        node: name of the node that it had better go to; "" = no matter.
        hosts: nowhere but to nodes with one of these host labels; empty = no matter. Such a pod
            waits for ever if all of them are lost, so that this is for hard latency limits only.
    """

    node: str = ""
    hosts: tuple[str, ...] = ()


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether a pod, as the API server prints it, bears our gate.

    Raises:
        InputError: it has another form.
    """
    return any(as_mapping(gate, "gate").get("name") == PLAN_GATE for gate in _gates(pod))


def is_overdue(pod: ObservedPod, now: datetime, deadline_seconds: float) -> bool:
    """Whether a gated pod has waited for as long as any may; one of unknown age has."""
    if pod.created_at is None:
        return True
    return now - pod.created_at >= timedelta(seconds=deadline_seconds)


def opening_patch(pod: Mapping[str, Any], pin: Pin | None) -> JsonObject | None:
    """The merge patch that takes our gate off, and only ours; None = it bears none.

    Args:
        pod: as the API server prints it.
        pin: where it is to go; None = anywhere.

    Raises:
        InputError: the pod has another form.
    """
    if not is_gated(pod):
        return None
    gates = [gate for gate in _gates(pod) if as_mapping(gate, "gate").get("name") != PLAN_GATE]
    spec: JsonObject = {"schedulingGates": gates}
    if pin is not None:
        spec["affinity"] = {"nodeAffinity": _pinned(pod, pin)}
    version = as_mapping(pod.get("metadata"), "pod: metadata").get("resourceVersion")
    return {"metadata": {"resourceVersion": version}, "spec": spec}


def open_gate(
    client: KubeClient, namespace: str, name: str, uid: str, pin: Pin | None = None
) -> bool:
    """Take our gate off a pod; returns False if there was nothing to do any more.

    A pin that the API server refuses is left out, and the log says so: a pod that goes anywhere
    is better than one that waits for us.

    Args:
        client: the API server.
        namespace: of the pod.
        name: of the pod.
        uid: of the pod; a later one of the same name is left alone.
        pin: where it is to go; None = anywhere.

    Raises:
        InputError: the pod has another form.
        KubernetesError: refused, or no answer.
    """
    for tries_left in reversed(range(MAX_TRIES)):
        pod = client.get(PODS, name, namespace)
        if pod is None or pod["metadata"].get("uid") != uid:
            return False
        patch = opening_patch(pod, pin)
        if patch is None:
            return False
        try:
            client.patch(PODS, name, namespace, patch)
            return True
        except NotFoundError:
            return False
        except ConflictError:
            if not tries_left:
                raise
        except KubernetesError as error:
            if pin is None or error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            _LOG.warning("pod %s/%s goes anywhere: %s", namespace, name, error)
            pin = None
    return False


def _gates(pod: Mapping[str, Any]) -> list[Any]:
    spec = as_mapping(pod.get("spec"), "pod: spec")
    return as_list(spec.get("schedulingGates"), "pod: schedulingGates")


def _pinned(pod: Mapping[str, Any], pin: Pin) -> JsonObject:
    """The part of the pod's node affinity that changes."""
    spec = as_mapping(pod.get("spec"), "pod: spec")
    affinity = as_mapping(spec.get("affinity"), "pod: affinity")
    nodes = as_mapping(affinity.get("nodeAffinity"), "pod: nodeAffinity")
    changed: JsonObject = {}
    if pin.node:
        changed[_PREFERRED] = _preferred(nodes, pin.node)
    if pin.hosts:
        changed[_REQUIRED] = _required(nodes, pin.hosts)
    return changed


def _preferred(nodes: Mapping[str, Any], node: str) -> list[Any]:
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    ours = {"weight": _HIGHEST_WEIGHT, "preference": {"matchFields": [by_name]}}
    return [*as_list(nodes.get(_PREFERRED), "pod: preferred terms"), ours]


def _required(nodes: Mapping[str, Any], hosts: Sequence[str]) -> JsonObject:
    by_host = {"key": HOST_LABEL, "operator": "In", "values": [*hosts]}
    required = as_mapping(nodes.get(_REQUIRED), "pod: required terms")
    terms = as_list(required.get("nodeSelectorTerms"), "pod: required terms") or [{}]
    alone = not required.get("nodeSelectorTerms")
    narrower = [_narrowed(as_mapping(term, "pod: term"), by_host, alone=alone) for term in terms]
    return {**required, "nodeSelectorTerms": narrower}


def _narrowed(term: JsonObject, by_host: JsonObject, *, alone: bool) -> JsonObject:
    """A term that also asks for a host. An empty one of the user's matches nothing and stays."""
    if not term and not alone:
        return term
    expressions = as_list(term.get("matchExpressions"), "pod: matchExpressions")
    return {**term, "matchExpressions": [*expressions, by_host]}
