"""The extender's decisions: which nodes a pod may go to, and how good each of them is.

A decision depends only on its arguments. It follows these rules, in this order: the pod's hard
latency limit, the node that mounts the pod's volume, live latency if a latency rule covers the
step, the planned node, the next best node of the plan. A pod without a plan and rules keeps every
node.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.extender.preferences import (
    band_ms,
    known_limit_ms,
    latencies_ms,
    nodes_within,
    ranked,
    volume_nodes,
)
from kfp_placement_controller.extender.wire import MAX_SCORE
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.node_rules.latency import UNKNOWN_MS
from kfp_placement_engine.units.durations import latency_text

CANDIDATES = 4
"""Limit of the nodes that `filter` leaves if it has to rank them; kube-scheduler scores them."""


class DecisionReason(StrEnum):
    """The rule that decided an answer to `filter`."""

    PLAN = "plan"
    """The planned node is the only one that stays."""

    LIMIT = "latency-limit"
    """The planned node is beyond the pod's hard limit."""

    VOLUME = "volume"
    """The nodes that mount the pod's volume stay; no planned node is among them."""

    LATENCY = "latency"
    """The nodes nearest to the users stay; no planned node is among them."""

    NEXT_BEST = "next-best"
    """The planned node was not offered, so the next best stay."""

    NOTHING_KNOWN = "nothing-known"
    """The pod has neither a plan nor a latency rule: every node within its hard limit stays."""

    REFUSED = "refused"
    """The pod's hard limit excludes every node: none stays."""

    TAKEN = "taken"
    """The room of all offered nodes has just gone to another scheduler: none stays."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to `filter`.

    Attributes:
        nodes: nodes that remain, the best first.
        reason: rule that decided.
        planned: the planned node; None without a plan.
        reasons: objection to each node, by node; empty if any node remains.
    """

    nodes: tuple[str, ...]
    reason: DecisionReason
    planned: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def filter_nodes(knowledge: Knowledge, pod: ObservedPod, offered: Sequence[str]) -> Decision:
    """Return the offered nodes to which a pod may go, and the reason.

    Args:
        knowledge: state of the cluster, as far as it is known.
        pod: the pod to place.
        offered: nodes that kube-scheduler's own filters have left.
    """
    target = knowledge.target_of(pod)
    planned = target.node
    if not offered:
        return Decision((), DecisionReason.NOTHING_KNOWN, planned)
    limit = known_limit_ms(knowledge, pod)
    allowed = _within_limit(knowledge, pod, offered, limit)
    if limit is not None and not allowed:
        trips = latencies_ms(knowledge, pod, offered)
        reasons = {
            name: _too_far(pod.location, trip, limit)
            for name, trip in zip(offered, trips, strict=True)
        }
        return Decision((), DecisionReason.REFUSED, planned, reasons)
    pinned = volume_nodes(knowledge, pod, allowed)
    pool = pinned or allowed
    band = band_ms(knowledge, pod, pool)
    near = pool if band is None else nodes_within(knowledge, pod, pool, band)
    if planned is not None and planned in near:
        return Decision((planned,), DecisionReason.PLAN, planned)
    reason = _reason(planned, offered, allowed, pool, is_ruled=band is not None)
    if reason is DecisionReason.NOTHING_KNOWN:
        return Decision(tuple(near), reason)
    best = heapq.nsmallest(CANDIDATES, ranked(knowledge, pod, target, near, band))
    return Decision(tuple(each.name for each in best), reason, planned)


def taken_nodes(knowledge: Knowledge, pod: ObservedPod, offered: Sequence[str]) -> Decision:
    """Return a refusal of all nodes, as another scheduler has taken their room; the pod waits."""
    planned = knowledge.target_of(pod).node
    reasons = dict.fromkeys(offered, "another scheduler has just taken its room")
    return Decision((), DecisionReason.TAKEN, planned, reasons)


def prioritize_nodes(
    knowledge: Knowledge, pod: ObservedPod, offered: Sequence[str]
) -> dict[str, int]:
    """Return the points of the offered nodes: 10 for the best, 9 for the next; ties share points.

    One point outweighs all of kube-scheduler's own scores, so only the order counts.
    """
    target = knowledge.target_of(pod)
    band = band_ms(knowledge, pod, offered)
    rank = {each.name: each.rank for each in ranked(knowledge, pod, target, offered, band)}
    points = {
        each: max(0, MAX_SCORE - position) for position, each in enumerate(sorted({*rank.values()}))
    }
    allowed = _within_limit(knowledge, pod, offered, known_limit_ms(knowledge, pod))
    pool = frozenset(volume_nodes(knowledge, pod, allowed) or allowed)
    return {name: points[rank[name]] if name in pool else 0 for name in offered}


def _reason(
    planned: str | None,
    offered: Sequence[str],
    allowed: Sequence[str],
    pool: Sequence[str],
    *,
    is_ruled: bool,
) -> DecisionReason:
    """Return the rule that decides if the planned node is not the only one to stay."""
    if planned in allowed:
        return DecisionReason.LATENCY if planned in pool else DecisionReason.VOLUME
    if planned in offered:
        return DecisionReason.LIMIT
    if len(pool) < len(allowed):
        return DecisionReason.VOLUME
    if planned is not None:
        return DecisionReason.NEXT_BEST
    return DecisionReason.LATENCY if is_ruled else DecisionReason.NOTHING_KNOWN


def _within_limit(
    knowledge: Knowledge, pod: ObservedPod, offered: Sequence[str], limit: float | None
) -> Sequence[str]:
    """Return the nodes within the hard limit; if there are none, the nodes not observed yet."""
    if limit is None:
        return offered
    return nodes_within(knowledge, pod, offered, limit) or [
        name for name in offered if name not in knowledge.nodes
    ]


def _too_far(place: str, trip: float, limit: float) -> str:
    """Return the objection to a node, in one of two texts: kube-scheduler counts nodes by text."""
    if trip == UNKNOWN_MS:
        return f"no round trip to {place} is known"
    return f"round trip to {place} is over {latency_text(limit)}"
