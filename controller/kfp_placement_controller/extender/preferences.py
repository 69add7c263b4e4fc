"""How good a node is for a pod: limits, volumes, latency, the plan, speed and room.

Pure, from what is known at one moment; `decisions` makes answers of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kfp_placement_controller.extender.knowledge import Knowledge, KnownNode, PlannedStep
from kfp_placement_controller.observed import latency_limits
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.latency import (
    UNKNOWN_MS,
    band_limit_ms,
    excess_ms,
    is_ruled,
    is_within,
    policy_tolerance,
    policy_types,
)
from kfp_placement_engine.units.resources import Resources, room_beside

_UNKNOWN_NODE = KnownNode(Node("", {}), {})
_NOTHING: Resources = {}


class Rank(NamedTuple):
    """How good a node is: the smaller the better, the first difference decides.

    Attributes:
        excess_ms: round trip beyond the tolerance band of a ruled step.
        is_other: it is not the planned node.
        is_tight: it would have less than the policy's headroom left.
        loss: of the plan, or an estimate of it in the same order.
    """

    excess_ms: float
    is_other: bool
    is_tight: bool
    loss: float


class Ranked(NamedTuple):
    """A node among others: they are in order when sorted.

    Attributes:
        rank: how good it is.
        share: the fuller of CPU and memory with the pod on it, 0 to 1: of nodes of one rank the
            emptier goes first.
        name: of the node.
    """

    rank: Rank
    share: float
    name: str


def limit_ms(known: Knowledge, pod: ObservedPod) -> float | None:
    """The hard limit of the round trip; None = none, or nobody knows where the place is."""
    is_known = pod.location.lower() in known.places
    return latency_limits.limit_ms(pod, known.rules) if is_known else None


def latencies_ms(known: Knowledge, pod: ObservedPod, names: Iterable[str]) -> Iterator[float]:
    """Round trips between the nodes and the pod's place; infinite = unknown."""
    nodes, place = known.nodes, pod.location.lower()
    for name in names:
        yield nodes.get(name, _UNKNOWN_NODE).latencies_ms.get(place, UNKNOWN_MS)


def nodes_within(
    known: Knowledge, pod: ObservedPod, names: Sequence[str], limit: float
) -> list[str]:
    """Those of the nodes whose round trip to the pod's place keeps a limit."""
    trips = latencies_ms(known, pod, names)
    return [name for name, trip in zip(names, trips, strict=True) if is_within(trip, limit)]


def band_ms(known: Knowledge, pod: ObservedPod, pool: Sequence[str]) -> float | None:
    """The largest round trip that counts as best for a ruled step; None = no rule applies."""
    rules = known.rules.latency_rules
    if pod.location.lower() not in known.places:
        return None
    if not is_ruled(pod.step_type, policy_types(rules.step_types)):
        return None
    tolerance = policy_tolerance(rules.tolerance_ms, rules.tolerance_percent)
    return band_limit_ms(latencies_ms(known, pod, pool), tolerance)


def volume_nodes(known: Knowledge, pod: ObservedPod, offered: Sequence[str]) -> list[str]:
    """Offered nodes where running pods mount a claim that one node at a time may mount."""
    holders: set[str] = set()
    for name in pod.claims:
        claim = ClaimKey(pod.namespace, name)
        if claim not in known.shared_claims:
            holders.update(known.claim_nodes.get(claim, ()))
    return [name for name in offered if name in holders] if holders else []


def ranked(
    known: Knowledge,
    pod: ObservedPod,
    step: PlannedStep | None,
    names: Iterable[str],
    band: float | None,
) -> Iterator[Ranked]:
    """Every node with its rank, in the order given.

    Args:
        known: the state of the cluster.
        pod: to be placed.
        step: what is planned for it.
        names: the nodes.
        band: the largest round trip that counts as best, in milliseconds; None = no rule.
    """
    planned, place = None if step is None else step.node, pod.location.lower()
    loss = _losses(known, step, is_ruled=band is not None)
    headroom = known.rules.headroom
    least = {"cpu": headroom.cpu_milli, "memory": headroom.memory_bytes}
    room = room_beside(pod.requests, least)
    for name in names:
        node = known.nodes.get(name, _UNKNOWN_NODE)
        beyond_ms = 0.0
        if band is not None:
            beyond_ms = excess_ms(node.latencies_ms.get(place, UNKNOWN_MS), band)
        # Of a node not seen yet: not tight, and full.
        is_tight, share = False, 1.0
        if node is not _UNKNOWN_NODE:
            is_tight, share = room(node.node.allocatable, known.used.get(name, _NOTHING))
        yield Ranked(Rank(beyond_ms, name != planned, is_tight, loss(name)), share, name)


def _losses(
    known: Knowledge, step: PlannedStep | None, *, is_ruled: bool
) -> Callable[[str], float]:
    """Of a node: seconds that the run would end later there, or what orders nodes in the same way.

    Of a node that the plan does not name: no less than of those it names, since these are the next
    best, and what the step itself would take longer there.
    """
    if step is None or step.node is None:
        # The scheduler's own scores choose for a step that is neither planned nor ruled.
        return (lambda name: 1.0 / _speed(known, name)) if is_ruled else (lambda _: 0.0)
    least = max(step.losses.values(), default=0.0)
    reference_seconds = step.seconds * _speed(known, step.node)
    named = {**step.losses, step.node: 0.0}

    def loss(name: str) -> float:
        if name in named:
            return named[name]
        return max(least, reference_seconds / _speed(known, name) - step.seconds)

    return loss


def _speed(known: Knowledge, name: str) -> float:
    return known.nodes.get(name, _UNKNOWN_NODE).node.speed
