"""Filters of the stock profile, in its order: they exclude nodes that cannot take a pod.

Left out: volumes (VolumeBinding, VolumeZone, VolumeRestrictions, NodeVolumeLimits) and dynamic
resource claims, which need objects that a recording or a cluster file does not hold.
"""

from collections.abc import Iterable

from benchmarks.kube_scheduler.inter_pod import InterPodFilter
from benchmarks.kube_scheduler.pod import ANY_ADDRESS, HostPort, Pod
from benchmarks.kube_scheduler.state import NodeState, SchedulerState
from benchmarks.kube_scheduler.topology_spread import SpreadFilter
from kfp_placement_engine.model.node_rules.constraints import objection
from kfp_placement_engine.model.reasons import reason_text
from kfp_placement_engine.units.resources import lacking


class PodFilter:
    """Filters for one pod against one state."""

    def __init__(self, pod: Pod, state: SchedulerState) -> None:
        self._pod = pod
        self._spread = SpreadFilter(pod, state)
        self._inter_pod = InterPodFilter(pod, state)

    def why_not(self, node: NodeState) -> str | None:
        """Return the first objection to a node, in kube-scheduler's words, or None."""
        pod = self._pod
        if pod.node_name not in ("", node.node.name):
            return "node(s) didn't match the requested node name"
        refusal = objection(pod.node_selector, pod.affinity, pod.tolerations, node.node)
        if refusal is not None:
            return reason_text(refusal)
        if _ports_conflict(pod.host_ports, node.host_ports):
            return "node(s) didn't have free ports for the requested pod ports"
        short = lacking(pod.requests, node.free())
        if short:
            return ", ".join(
                "Too many pods" if name == "pods" else f"Insufficient {name}" for name in short
            )
        return self._spread.why_not(node) or self._inter_pod.why_not(node)


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """Nodes that required affinity names by `metadata.name`, or None if it leaves others open.

    kube-scheduler looks at no other node then (`nodeaffinity/node_affinity.go`, PreFilter); an
    empty set means that the terms contradict each other.
    """
    terms = pod.affinity.required
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [
            set(each.values)
            for each in term.requirements
            if each.is_field and each.key == "metadata.name" and each.operator == "In"
        ]
        if not fields:
            return None
        names |= set.intersection(*fields)
    return frozenset(names)


def _ports_conflict(wanted: Iterable[HostPort], taken: set[HostPort]) -> bool:
    return any(
        (each.port, each.protocol) == (other.port, other.protocol)
        and (each.address == other.address or ANY_ADDRESS in (each.address, other.address))
        for each in wanted
        for other in taken
    )
