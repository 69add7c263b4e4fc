"""A pod that is not where its plan wants it: what is said of it, whoever has noticed."""

from dataclasses import dataclass

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.constraints import is_not_ready
from kfp_placement_engine.units.resources import Resources, free_room, lacking


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


def why_left_out(requests: Resources, node: Node | None) -> str:
    """Why a node does not take a pod, as far as we can see; "" = there is no such reason.

    Args:
        requests: of the pod.
        node: with what is taken on it; None = there is no such node any more.
    """
    if node is None:
        return "it is gone"
    if is_not_ready(node):
        return "it is not ready"
    if node.unschedulable:
        return "it is cordoned"
    short = lacking(requests, free_room(node.allocatable, node.used))
    return f"not enough {', '.join(short)} free" if short else ""
