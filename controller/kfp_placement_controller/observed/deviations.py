"""Deviations: pods that were bound to a node other than the planned one, and why."""

from dataclasses import dataclass

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.node_rules.constraints import is_not_ready
from kfp_placement_engine.units.resources import Resources, free_room, lacking


@dataclass(frozen=True, slots=True)
class Deviation:
    """A pod that has been bound to a node other than the planned one; an event says why.

    Attributes:
        pod: pod after it was bound.
        planned: name of the planned node.
        reason: reason of the deviation, as one word.
        why: reason as a sentence for people; "it" is the planned node.
    """

    pod: ObservedPod
    planned: str
    reason: str
    why: str

    @property
    def message(self) -> str:
        """Sentence for people: the planned node, the node of the pod, and the reason."""
        return f"planned on {self.planned}, placed on {self.pod.node_name}: {self.why}"


def why_left_out(requests: Resources, node: Node | None) -> str:
    """Return why a node does not take a pod, as far as we can see; "" = we see no reason.

    Args:
        requests: requests of the pod.
        node: the node, with the resources that are used on it; None = it has been deleted.
    """
    if node is None:
        return "it is gone"
    if is_not_ready(node):
        return "it is not ready"
    if node.unschedulable:
        return "it is cordoned"
    short = lacking(requests, free_room(node.allocatable, node.used))
    return f"not enough {', '.join(short)} free" if short else ""
