"""Scores of the stock profile for feasible nodes, weighted.

A plugin that kube-scheduler skips for a pod is absent, as in its log.
"""

from collections.abc import Sequence

from benchmarks.kube_scheduler import kube_scores
from benchmarks.kube_scheduler.inter_pod import inter_pod_scores
from benchmarks.kube_scheduler.pod import Pod
from benchmarks.kube_scheduler.state import NodeState, SchedulerState
from benchmarks.kube_scheduler.topology_spread import spread_scores
from kfp_placement_engine.model.node_rules.constraints import (
    preferred_weight,
    untolerated_preferred_taints,
)
from kfp_placement_engine.model.node_rules.images import normalised

CHANGED = (1, 36)
"""First version where BalancedAllocation scores the improvement, ImageLocality image volumes."""


def weighted_scores(
    pod: Pod, state: SchedulerState, feasible: Sequence[NodeState], version: tuple[int, int]
) -> list[dict[str, int]]:
    """Plugin name -> weighted score, for each of the feasible nodes."""
    columns = {
        "TaintToleration": (_taints(pod, feasible), kube_scores.TAINT_TOLERATION_WEIGHT),
        "NodeAffinity": (_affinity(pod, feasible), kube_scores.NODE_AFFINITY_WEIGHT),
        "NodeResourcesFit": (
            [_least_allocated(pod, node) for node in feasible],
            kube_scores.RESOURCES_FIT_WEIGHT,
        ),
        "PodTopologySpread": (
            spread_scores(pod, state, feasible),
            kube_scores.TOPOLOGY_SPREAD_WEIGHT,
        ),
        "InterPodAffinity": (
            inter_pod_scores(pod, state, feasible),
            kube_scores.INTER_POD_AFFINITY_WEIGHT,
        ),
        "NodeResourcesBalancedAllocation": (
            _balanced(pod, feasible, version),
            kube_scores.BALANCED_ALLOCATION_WEIGHT,
        ),
        "ImageLocality": (
            _images(pod, state, feasible, version),
            kube_scores.IMAGE_LOCALITY_WEIGHT,
        ),
    }
    active = {name: (column, weight) for name, (column, weight) in columns.items() if column}
    return [
        {name: int(column[index]) * weight for name, (column, weight) in active.items()}
        for index in range(len(feasible))
    ]


def _taints(pod: Pod, feasible: Sequence[NodeState]) -> list[int]:
    counts = [untolerated_preferred_taints(pod.tolerations, each.node) for each in feasible]
    most = max(counts, default=0)
    return [kube_scores.normalise_reversed(count, most) for count in counts]


def _affinity(pod: Pod, feasible: Sequence[NodeState]) -> list[int] | None:
    if not pod.affinity.preferred:
        return None
    weights = [preferred_weight(pod.affinity, each.node) for each in feasible]
    most = max(weights, default=0)
    return [kube_scores.normalise(weight, most) for weight in weights]


def _least_allocated(pod: Pod, node: NodeState) -> int:
    allocatable = node.node.allocatable
    arriving = pod.scored_requests if pod.arrival_requests is None else pod.arrival_requests
    return kube_scores.least_allocated(
        node.scored_cpu + arriving.get("cpu", 0),
        node.scored_memory + arriving.get("memory", 0),
        allocatable.get("cpu", 0),
        allocatable.get("memory", 0),
    )


def _balanced(
    pod: Pod, feasible: Sequence[NodeState], version: tuple[int, int]
) -> list[int] | None:
    cpu, memory = pod.requests.get("cpu", 0), pod.requests.get("memory", 0)
    if cpu == 0 and memory == 0:
        # Best-effort pods would all go to one node (kubernetes issue 129138).
        return None
    return [
        kube_scores.balanced_allocation(
            node.requested.get("cpu", 0),
            node.requested.get("memory", 0),
            cpu,
            memory,
            node.node.allocatable.get("cpu", 0),
            node.node.allocatable.get("memory", 0),
            version >= CHANGED,
        )
        for node in feasible
    ]


def _images(
    pod: Pod, state: SchedulerState, feasible: Sequence[NodeState], version: tuple[int, int]
) -> list[int]:
    scored = pod.images + (pod.image_volumes if version >= CHANGED else ())
    wanted = [normalised(image) for image in scored]
    return [
        kube_scores.image_locality(
            sum(state.image_scores[name] for name in wanted if name in each.node.images),
            max(1, pod.containers),
        )
        for each in feasible
    ]
