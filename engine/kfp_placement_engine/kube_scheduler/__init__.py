"""kube-scheduler's stock profile, object by object: filters, scores, choice.

An exact model of v1.36.3 without extenders, volumes and dynamic resource claims, checked against
recordings of the real scheduler (`kfp-placement bench scheduler`). The planner's default-scheduler
baseline works on arrays but calls the same scores (`kube_scores`) and rules (`constraints`).
"""

from kfp_placement_engine.kube_scheduler.model import TIES, Decision, KubeScheduler, heap_top
from kfp_placement_engine.kube_scheduler.pod import (
    HostPort,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    WeightedTerm,
)
from kfp_placement_engine.kube_scheduler.state import (
    NodeState,
    SchedulerState,
    zone_interleaved,
)

__all__ = [
    "TIES",
    "Decision",
    "HostPort",
    "KubeScheduler",
    "LabelSelector",
    "NodeState",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "SchedulerState",
    "SpreadConstraint",
    "WeightedTerm",
    "heap_top",
    "zone_interleaved",
]
