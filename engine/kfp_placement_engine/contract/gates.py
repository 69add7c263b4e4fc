"""What to write to take our scheduling gate off a pod, and what the pod is given on the way.

What the API server allows while a pod is gated is more than ever after: preferred terms may be
anything, required terms may only become narrower, and other people's gates are not ours to touch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.keys import HOST_LABEL, PLAN_GATE

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_HIGHEST_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a pod is to go.

    Attributes:
        node: name of the node that it should go to; "" = any.
        hosts: nowhere but to nodes with one of these host labels; empty = no matter. Such a pod
            waits forever if all of them are lost, so that this is for hard latency limits only.
    """

    node: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """What a pod says of nodes itself.

    Attributes:
        preferred: terms that it prefers, as they are.
        required: the part that it requires, whole.
        terms: the terms of that part, of which one must hold.
    """

    preferred: Sequence[Any] = ()
    required: Mapping[str, Any] = field(default_factory=dict)
    terms: Sequence[Mapping[str, Any]] = ()


def has_our_gate(gates: Iterable[Mapping[str, Any]]) -> bool:
    """Whether our gate is among those of a pod."""
    return any(gate.get("name") == PLAN_GATE for gate in gates)


def gate_off(
    version: Mapping[str, Any],
    gates: Iterable[Mapping[str, Any]],
    affinity: NodeAffinity = NodeAffinity(),
    pin: Pin | None = None,
) -> dict[str, Any]:
    """The merge patch of a pod that takes our gate off, and only ours.

    Args:
        version: what the API server is to check before it writes: the pod's `resourceVersion`, and
            its `uid` where it is known.
        gates: all gates of the pod, as they are.
        affinity: what the pod says of nodes itself; only asked for where there is a pin.
        pin: where it is to go; None = anywhere.
    """
    others = [gate for gate in gates if gate.get("name") != PLAN_GATE]
    spec: dict[str, Any] = {"schedulingGates": others}
    if pin is not None:
        spec["affinity"] = {"nodeAffinity": _pinned(affinity, pin)}
    return {"metadata": {**version}, "spec": spec}


def _pinned(affinity: NodeAffinity, pin: Pin) -> dict[str, Any]:
    """The part of the node affinity that changes."""
    changed: dict[str, Any] = {}
    if pin.node:
        by_name = {"key": "metadata.name", "operator": "In", "values": [pin.node]}
        ours = {"weight": _HIGHEST_WEIGHT, "preference": {"matchFields": [by_name]}}
        changed[PREFERRED] = [*affinity.preferred, ours]
    if pin.hosts:
        by_host = {"key": HOST_LABEL, "operator": "In", "values": [*pin.hosts]}
        # Without a term of the user's, ours is the only one.
        terms = [_narrowed(term, by_host) for term in affinity.terms]
        narrower = terms or [{"matchExpressions": [by_host]}]
        changed[REQUIRED] = {**affinity.required, "nodeSelectorTerms": narrower}
    return changed


def _narrowed(term: Mapping[str, Any], by_host: Mapping[str, Any]) -> Mapping[str, Any]:
    """A term that also asks for a host. An empty one of the user's matches nothing and stays."""
    if not term:
        return term
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), by_host]}
