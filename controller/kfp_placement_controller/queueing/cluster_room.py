"""What the cluster has for runs that are counted by what they demand: nodes, less other pods."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.load import Load
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.resources import Resources, minus
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
    _pods: Counter[RunKey] = field(default_factory=Counter)

    def node_changed(self, change: Change[Node]) -> None:
        """A node is new, has changed or is gone."""
        name = change.key[1]
        if change.new is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = change.new

    def pod_changed(self, change: Change[ObservedPod]) -> bool:
        """A pod is new, has changed or is gone; returns whether the room it takes has changed."""
        self.load.change(change.old, change.new)
        self._count(change.old, -1)
        self._count(change.new, 1)
        return _taken(change.old) != _taken(change.new)

    def is_draining(self, run: RunKey, demand: Demand | None) -> bool:
        """Whether a run that was stopped still takes room, or may take some.

        Args:
            run: that was stopped.
            demand: what it needs. Pods that must run together and wait for nodes are as good as on
                them: else they and those of the run that follows could each get a part.
        """
        if demand is not None and demand.gangs:
            return self._pods[run] > 0
        return bool(self.load.of_run(run).get("pods"))

    def _count(self, pod: ObservedPod | None, sign: int) -> None:
        """Count the pods of each run that have not ended."""
        run = None if pod is None or pod.ended else self.load.run_of(pod)
        if run is None:
            return
        self._pods[run] += sign
        if not self._pods[run]:
            del self._pods[run]

    def rooms(self, counted: Container[RunKey]) -> list[Resources]:
        """What each node has for runs, `pods` included.

        Args:
            counted: runs whose pods are not other pods: what they demand counts instead.
        """
        load = self.load.by_node(counted)
        return [
            minus(node.allocatable, load[name].used if name in load else {})
            for name, node in self._nodes.items()
            if is_for_runs(node)
        ]


def _taken(pod: ObservedPod | None) -> tuple[bool, str, Resources] | None:
    """Whether a pod holds room, where and how much; None = it has ended, or there is none."""
    return None if pod is None or pod.ended else (pod.holds_room, pod.node_name, pod.requests)


def is_for_runs(node: Node) -> bool:
    """Whether pods of runs can be expected to go to a node."""
    return not node.unschedulable and not any(
        taint.effect != "PreferNoSchedule" and taint.key.startswith(NOT_FOR_RUNS)
        for taint in node.taints
    )
