"""The scheduling gates of a pod, and what else decides how ours comes off."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.contract.gates import (
    PREFERRED,
    REQUIRED,
    NodeAffinity,
    Pin,
    gate_off,
    has_our_gate,
)
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

_POD = Place("pod")


def read_gates(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The gates of a pod, as they are.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    spec = Fields(pod, _POD).flat("spec")
    return [Place("gate").mapping(gate) for gate in spec.entries("schedulingGates")]


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has our gate.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    return has_our_gate(read_gates(pod))


def opening_patch(
    pod: Mapping[str, Any] | None, uid: str | None, pin: Pin | None = None
) -> dict[str, Any] | None:
    """The merge patch that takes our gate off a pod, and only ours; None = there is none to take.

    There is none where the pod is gone, where a later one of the same name has taken its place, and
    where our gate is off already.

    Args:
        pod: what now has the pod's name, as the API server prints it; the patch is refused
            if others have written it since. None = nothing.
        uid: of the pod that is meant; None = it has none.
        pin: where it is to go; None = anywhere.

    Raises:
        InputError: the pod is malformed.
    """
    if pod is None:
        return None
    metadata = Fields(pod, _POD).mapping("metadata")
    if metadata.get("uid") != uid:
        return None
    gates = read_gates(pod)
    if not has_our_gate(gates):
        return None
    checked = ("uid", "resourceVersion")
    version = {key: value for key, value in metadata.items() if key in checked}
    if pin is None:
        return gate_off(version, gates)
    return gate_off(version, gates, read_node_affinity(pod), pin)


def read_node_affinity(pod: Mapping[str, Any]) -> NodeAffinity:
    """What a pod says of nodes itself.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    nodes = Fields(pod, _POD).flat("spec").flat("affinity").flat("nodeAffinity")
    required = nodes.flat(REQUIRED)
    terms = required.entries("nodeSelectorTerms")
    for term in terms:
        Fields(_POD.field("term").mapping(term), _POD).entries("matchExpressions")
    preferred = nodes.entries(PREFERRED)
    return NodeAffinity(preferred, required.raw, terms)
