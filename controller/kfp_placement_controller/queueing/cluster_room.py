"""What the cluster has for runs that are counted by what they demand: nodes, less other pods."""

from collections.abc import Container
from dataclasses import dataclass, field

from kfp_placement_controller.observed.nodes import ObservedNode
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.queueing.runs import NodeRoom
from kfp_placement_controller.sources.load import Load
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.resources import minus
from kfp_placement_kube.change import Change

NOT_FOR_RUNS = ("node.kubernetes.io/", "node-role.kubernetes.io/")
"""Begin the taints of nodes that are cordoned, lost or under pressure, and of control planes. Other
taints reserve a node for pods that tolerate them, as those with GPUs are; it counts."""


@dataclass
class ClusterRoom:
    """The nodes, and the pods on them.

    Attributes:
        load: what pods take.
    """

    load: Load
    _nodes: dict[str, Node] = field(default_factory=dict)

    def node_changed(self, change: Change[ObservedNode]) -> None:
        """A node is new, has changed or is gone."""
        name = change.key[1]
        if change.new is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = change.new.node

    def pod_changed(self, change: Change[ObservedPod]) -> bool:
        """A pod is new, has changed or is gone; returns whether the room it takes has changed."""
        self.load.change(change.old, change.new)
        held = [each for each in (change.old, change.new) if each is not None and each.holds_room]
        return len(held) == 1 or (
            len(held) == 2
            and (held[0].node_name, held[0].requests) != (held[1].node_name, held[1].requests)
        )

    def rooms(self, counted: Container[RunKey]) -> list[NodeRoom]:
        """What each node has.

        Args:
            counted: runs whose pods are not other pods: what they demand counts instead.
        """
        load = self.load.by_node(counted)
        rooms = []
        for name, node in self._nodes.items():
            if is_for_runs(node):
                taken = load[name].used if name in load else {}
                rooms.append(NodeRoom(name, minus(node.allocatable, taken)))
        return rooms


def is_for_runs(node: Node) -> bool:
    """Whether pods of runs can be expected to go to a node."""
    return not node.unschedulable and not any(
        taint.effect != "PreferNoSchedule" and taint.key.startswith(NOT_FOR_RUNS)
        for taint in node.taints
    )
