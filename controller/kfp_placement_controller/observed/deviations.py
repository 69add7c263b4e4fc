"""A pod that is not where its plan wants it: what is said of it, whoever has noticed."""

from dataclasses import dataclass

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.resources import Resources, free_room, lacking

NODE_GONE = "it is gone"
"""Why the planned node is not taken where there is none."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A pod that has been bound to a node other than the planned one; an event says why.

    Attributes:
        pod: as bound.
        planned: the node that its plan names.
        reason: what decided, in one word.
        why: the same for people; "it" is the planned node.
    """

    pod: ObservedPod
    planned: str
    reason: str
    why: str

    @property
    def message(self) -> str:
        """For people."""
        return f"planned on {self.planned}, placed on {self.pod.node_name}: {self.why}"


def why_left_out(
    requests: Resources,
    allocatable: Resources,
    used: Resources,
    *,
    is_not_ready: bool,
    is_cordoned: bool,
) -> str:
    """Why a node does not take a pod, as far as we can see; "" = there is no such reason.

    Args:
        requests: of the pod.
        allocatable: what the node has for pods.
        used: what those that are bound to it request.
        is_not_ready: whether its kubelet is not ready, or is not heard of.
        is_cordoned: whether new pods are kept off it.
    """
    if is_not_ready:
        return "it is not ready"
    if is_cordoned:
        return "it is cordoned"
    short = lacking(requests, free_room(allocatable, used))
    return f"not enough {', '.join(short)} free" if short else ""
