"""PodTopologySpread: hard constraints filter, soft ones score (`plugins/podtopologyspread`).

Only constraints written in the pod count. The profile's own defaults (hostname, zone) apply to pods
that a Service or a workload controller selects, which pods of pipeline steps are not.
"""

import math
from collections.abc import Mapping, Sequence

from benchmarks.kube_scheduler.pod import Pod, SpreadConstraint
from benchmarks.kube_scheduler.state import NodeState, SchedulerState
from kfp_placement_engine.model.node_rules.constraints import (
    matches_affinity,
    matches_node_selector,
    untolerated_taint,
)

_HOSTNAME = "kubernetes.io/hostname"
_MAX_INT32 = 2**31 - 1


class SpreadFilter:
    """The hard constraints of one pod against one state (`filtering.go`)."""

    def __init__(self, pod: Pod, state: SchedulerState) -> None:
        self._pod = pod
        self._constraints = [each for each in pod.spread if each.required]
        self._counts: list[dict[str, int]] = [{} for _ in self._constraints]
        for node in state.nodes:
            if _has_all_keys(node, self._constraints):
                self._count(node)

    def why_not(self, node: NodeState) -> str | None:
        """Return the reason against a node, or None."""
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            domain = node.node.labels.get(constraint.topology_key)
            if domain is None:
                return (
                    "node(s) didn't match pod topology spread constraints (missing required label)"
                )
            # The recorded minimum starts at MaxInt32, so without any domain the skew is negative.
            least = min(counts.values(), default=_MAX_INT32)
            if len(counts) < constraint.min_domains:
                least = 0
            selector = constraint.selector
            itself = selector is not None and selector.matches(self._pod.labels)
            if counts.get(domain, 0) + itself - least > constraint.max_skew:
                return "node(s) didn't match pod topology spread constraints"
        return None

    def _count(self, node: NodeState) -> None:
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if _included(constraint, self._pod, node):
                domain = node.node.labels[constraint.topology_key]
                matching_pods = _matching_pods(node, constraint, self._pod.namespace)
                counts[domain] = counts.get(domain, 0) + matching_pods


def spread_scores(
    pod: Pod, state: SchedulerState, feasible: Sequence[NodeState]
) -> list[int] | None:
    """Scores of the soft constraints, 0 to 100 by node; None if the pod has none (`scoring.go`)."""
    constraints = [each for each in pod.spread if not each.required]
    if not constraints:
        return None
    ignored = [not _has_all_keys(node, constraints) for node in feasible]
    kept = [node for node, skip in zip(feasible, ignored, strict=True) if not skip]
    counts = _domain_counts(pod, state, constraints, kept)
    weights = [
        math.log((len(kept) if each.topology_key == _HOSTNAME else len(domains)) + 2)
        for each, domains in zip(constraints, counts, strict=True)
    ]
    raw = [
        None if skip else _raw_score(pod, node, constraints, counts, weights)
        for node, skip in zip(feasible, ignored, strict=True)
    ]
    return _normalised(raw)


def _domain_counts(
    pod: Pod,
    state: SchedulerState,
    constraints: Sequence[SpreadConstraint],
    kept: Sequence[NodeState],
) -> list[dict[str, int]]:
    """Count matching pods by constraint and domain, without domains that have no candidate node."""
    counts = [
        {} if each.topology_key == _HOSTNAME else {_domain(each, node): 0 for node in kept}
        for each in constraints
    ]
    for node in state.nodes:
        if not _has_all_keys(node, constraints):
            continue
        for constraint, domains in zip(constraints, counts, strict=True):
            domain = _domain(constraint, node)
            if domain in domains and _included(constraint, pod, node):
                domains[domain] += _matching_pods(node, constraint, pod.namespace)
    return counts


def _raw_score(
    pod: Pod,
    node: NodeState,
    constraints: Sequence[SpreadConstraint],
    counts: Sequence[Mapping[str, int]],
    weights: Sequence[float],
) -> int:
    score = 0.0
    for constraint, domains, weight in zip(constraints, counts, weights, strict=True):
        if constraint.topology_key == _HOSTNAME:
            matching_pods = _matching_pods(node, constraint, pod.namespace)
        else:
            matching_pods = domains[_domain(constraint, node)]
        score += float(matching_pods) * weight + float(constraint.max_skew - 1)
    # Go's math.Round: halves away from zero, where Python's round goes to the even neighbour.
    whole = math.floor(score)
    return whole + (score - whole >= 0.5)


def _normalised(raw: Sequence[int | None]) -> list[int]:
    counted = [score for score in raw if score is not None]
    largest = max(counted, default=0)
    least = min(counted, default=0)
    if largest == 0:
        return [0 if score is None else 100 for score in raw]
    return [0 if score is None else 100 * (largest + least - score) // largest for score in raw]


def _has_all_keys(node: NodeState, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(each.topology_key in node.node.labels for each in constraints)


def _domain(constraint: SpreadConstraint, node: NodeState) -> str:
    return node.node.labels[constraint.topology_key]


def _included(constraint: SpreadConstraint, pod: Pod, node: NodeState) -> bool:
    if constraint.honours_affinity and not (
        matches_node_selector(pod.node_selector, node.node)
        and matches_affinity(pod.affinity, node.node)
    ):
        return False
    return not (
        constraint.honours_taints
        and untolerated_taint(pod.tolerations, node.node.taints) is not None
    )


def _matching_pods(node: NodeState, constraint: SpreadConstraint, namespace: str) -> int:
    selector = constraint.selector
    if selector is None or not selector.requirements:
        # A selector that matches everything counts nothing (countPodsMatchSelector).
        return 0
    return sum(
        not each.terminating and each.namespace == namespace and selector.matches(each.labels)
        for each in node.pods
    )
