"""A reader of a pod's scheduling gates, and the patch that takes ours off."""

from typing import Any

from kfp_placement_engine.contract.gates import (
    PREFERRED,
    REQUIRED,
    Pin,
    RawNodeAffinity,
    gate_off,
    has_our_gate,
)
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place

_POD = Place("pod")


def read_gates(pod: RawMapping) -> list[RawMapping]:
    """Return the gates of a pod, as they came.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    spec = Fields(pod, _POD).flat("spec")
    return [Place("gate").mapping(gate) for gate in spec.entries("schedulingGates")]


def is_gated(pod: RawMapping) -> bool:
    """Return whether a pod has our gate.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    return has_our_gate(read_gates(pod))


def opening_patch(
    pod: RawMapping | None, uid: str | None, pin: Pin | None = None
) -> dict[str, Any] | None:
    """Return the merge patch that takes our gate off a pod, or None without one to take off.

    There is none where the pod is gone, where a later pod of the same name has taken its place, and
    where our gate is off already. Gates of others stay.

    Args:
        pod: the pod that has the name now, as the API server prints it; None = there is none. The
            patch is refused if others have written the pod since.
        uid: uid of the meant pod; None = it has none.
        pin: nodes that the pod may go to; None = all nodes.

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
    return gate_off(version, gates, read_raw_node_affinity(pod), pin)


def read_raw_node_affinity(pod: RawMapping) -> RawNodeAffinity:
    """Return the pod's own node affinity.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    nodes = Fields(pod, _POD).flat("spec").flat("affinity").flat("nodeAffinity")
    required = nodes.flat(REQUIRED)
    terms = required.entries("nodeSelectorTerms")
    for term in terms:
        Fields(_POD.field("term").mapping(term), _POD).entries("matchExpressions")
    preferred = nodes.entries(PREFERRED)
    return RawNodeAffinity(preferred, required.raw, terms)
