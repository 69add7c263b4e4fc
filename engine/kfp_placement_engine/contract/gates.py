"""Patches that take our scheduling gate off a pod, and tell the pod where to go.

What the API server allows while a pod is gated is more than ever after: preferred terms may be
anything, required terms may only become narrower, and other people's gates are not ours to touch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.keys import HOST_LABEL, PLAN_GATE

_Part = Mapping[str, Any]
"""Part of a pod, as its API gives it."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_HIGHEST_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Pin:
    """Node that a pod is to go to.

    Attributes:
        node: name of the node that it should go to; "" = any.
        hosts: host labels of the only nodes that it may go to; empty = any nodes. Such a pod
            waits forever if all of them are lost, so that this is for hard latency limits only.
    """

    node: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RawNodeAffinity:
    """Constraints on nodes that a pod's own spec states.

    Attributes:
        preferred: terms that it prefers, as they are.
        required: the part that it requires, whole.
        terms: the terms of that part, of which one must hold.
    """

    preferred: Sequence[Any] = ()
    required: _Part = field(default_factory=dict)
    terms: Sequence[_Part] = ()


def has_our_gate(gates: Iterable[_Part]) -> bool:
    """Return whether our gate is among those of a pod."""
    return any(gate.get("name") == PLAN_GATE for gate in gates)


def gate_off(
    version: _Part,
    gates: Iterable[_Part],
    affinity: RawNodeAffinity = RawNodeAffinity(),
    pin: Pin | None = None,
) -> dict[str, Any]:
    """Return the merge patch of a pod that takes our gate off, and only ours.

    Args:
        version: condition that the API server checks before it writes: the pod's `resourceVersion`,
            and its `uid` where it is known.
        gates: all gates of the pod, as they are.
        affinity: node constraints of the pod itself; read only if there is a pin.
        pin: node that the pod is to go to; None = any node.
    """
    others = [gate for gate in gates if gate.get("name") != PLAN_GATE]
    spec: dict[str, Any] = {"schedulingGates": others}
    if pin is not None:
        spec["affinity"] = {"nodeAffinity": _pinned(affinity, pin)}
    return {"metadata": {**version}, "spec": spec}


def _pinned(affinity: RawNodeAffinity, pin: Pin) -> dict[str, Any]:
    """Return the part of the node affinity that changes."""
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


def _narrowed(term: _Part, by_host: _Part) -> _Part:
    """Return a term that also asks for a host; an empty one matches nothing and stays."""
    if not term:
        return term
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), by_host]}
