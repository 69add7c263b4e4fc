"""Preferences among nodes for a pod: by limits, volumes, latency, the plan, speed and room.

They are pure, from what is known at one moment; `decisions` makes answers from them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kfp_placement_controller.extender.knowledge import Knowledge, KnownNode, StepTarget
from kfp_placement_controller.observed.latency_limits import limit_ms
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.node_rules.latency import (
    UNKNOWN_MS,
    band_limit_ms,
    excess_ms,
    is_ruled,
    is_within,
    policy_tolerance,
    policy_types,
)
from kfp_placement_engine.units.resources import Resources

_UNKNOWN_NODE = KnownNode(Node("", {}), {})
_NOTHING: Resources = {}


class Rank(NamedTuple):
    """Rank of a node for a pod: the smaller the better, the first difference decides.

    Attributes:
        excess_ms: round trip beyond the tolerance band of a ruled step; 0 for other steps.
        is_other: whether the node is not the planned one.
        is_tight: whether the node would have less than the policy's headroom left.
        loss: seconds that the run would end later, or an estimate in the same order.
    """

    excess_ms: float
    is_other: bool
    is_tight: bool
    loss: float


class Ranked(NamedTuple):
    """A node with its rank; sorting puts the best first.

    Attributes:
        rank: rank of the node.
        share: used share of CPU or memory with the pod on it, whichever is larger; above 1 where
            requests exceed what the node has. Among nodes of equal rank, the emptier one comes
            first.
        name: name of the node.
    """

    rank: Rank
    share: float
    name: str


def known_limit_ms(knowledge: Knowledge, pod: ObservedPod) -> float | None:
    """Return the hard limit of the round trip, or None without one or without a known place."""
    is_known = pod.location.lower() in knowledge.places
    return limit_ms(pod, knowledge.rules) if is_known else None


def latencies_ms(knowledge: Knowledge, pod: ObservedPod, names: Iterable[str]) -> Iterator[float]:
    """Yield round trips between the nodes and the pod's place; infinite = unknown."""
    nodes, place = knowledge.nodes, pod.location.lower()
    for name in names:
        yield nodes.get(name, _UNKNOWN_NODE).latencies_ms.get(place, UNKNOWN_MS)


def nodes_within(
    knowledge: Knowledge, pod: ObservedPod, names: Sequence[str], limit: float
) -> list[str]:
    """Return the nodes whose round trip to the pod's place keeps a limit."""
    trips = latencies_ms(knowledge, pod, names)
    return [name for name, trip in zip(names, trips, strict=True) if is_within(trip, limit)]


def band_ms(knowledge: Knowledge, pod: ObservedPod, pool: Sequence[str]) -> float | None:
    """Return the largest round trip that counts as best, or None unless a rule applies."""
    rules = knowledge.rules.latency_rules
    if pod.location.lower() not in knowledge.places:
        return None
    if not is_ruled(pod.step_type, policy_types(rules.step_types)):
        return None
    tolerance = policy_tolerance(rules.tolerance_ms, rules.tolerance_percent)
    return band_limit_ms(latencies_ms(knowledge, pod, pool), tolerance)


def volume_nodes(knowledge: Knowledge, pod: ObservedPod, offered: Sequence[str]) -> list[str]:
    """Return offered nodes where running pods mount a claim that one node at a time may mount."""
    holders: set[str] = set()
    for name in pod.claims:
        claim = ClaimKey(pod.namespace, name)
        if claim not in knowledge.shared_claims:
            holders.update(knowledge.claim_nodes.get(claim, ()))
    return [name for name in offered if name in holders] if holders else []


def ranked(
    knowledge: Knowledge,
    pod: ObservedPod,
    target: StepTarget,
    names: Iterable[str],
    band: float | None,
) -> Iterator[Ranked]:
    """Yield every node with its rank, in the order given.

    Args:
        knowledge: state of the cluster, as far as it is known.
        pod: the pod to place.
        target: the planned node of the pod's step.
        names: the nodes.
        band: the largest round trip that counts as best, in milliseconds; None = no rule.
    """
    planned, place = target.node, pod.location.lower()
    loss = _losses(knowledge, target, is_ruled=band is not None)
    headroom = knowledge.rules.headroom
    least = {"cpu": headroom.cpu_milli, "memory": headroom.memory_bytes}
    rate = room_beside(pod.requests, least)
    for name in names:
        node = knowledge.nodes.get(name, _UNKNOWN_NODE)
        beyond_ms = 0.0
        if band is not None:
            beyond_ms = excess_ms(node.latencies_ms.get(place, UNKNOWN_MS), band)
        # A node that was not seen yet counts as full, but not as tight.
        is_tight, share = False, 1.0
        if node is not _UNKNOWN_NODE:
            is_tight, share = rate(node.node.allocatable, knowledge.used.get(name, _NOTHING))
        yield Ranked(Rank(beyond_ms, name != planned, is_tight, loss(name)), share, name)


def room_beside(
    requests: Resources, headroom: Resources
) -> Callable[[Resources, Resources], tuple[bool, float]]:
    """Return a function that rates a node with one more pod on it, by allocatable and used.

    Its answer: whether less than the headroom of CPU or memory is left, and the fuller of the two
    as a share of what the node has, 1 where it has none. It is asked of every node of a large
    cluster while kube-scheduler waits, so all that does not depend on the node is looked up once.

    Args:
        requests: requests of the pod.
        headroom: room that is to stay free, of `cpu` and `memory`.
    """
    cpu_beside = requests.get("cpu", 0)
    memory_beside = requests.get("memory", 0)
    least_cpu, least_memory = headroom.get("cpu", 0), headroom.get("memory", 0)

    def rate(allocatable: Resources, used: Resources) -> tuple[bool, float]:
        cpu, memory = allocatable.get("cpu", 0), allocatable.get("memory", 0)
        cpu_left = cpu - used.get("cpu", 0) - cpu_beside
        memory_left = memory - used.get("memory", 0) - memory_beside
        is_tight = cpu_left < least_cpu or memory_left < least_memory
        if not cpu or not memory:
            return is_tight, 1.0
        return is_tight, 1.0 - min(cpu_left / cpu, memory_left / memory)

    return rate


def _losses(knowledge: Knowledge, target: StepTarget, *, is_ruled: bool) -> Callable[[str], float]:
    """Return a function of a node: seconds that the run would end later there, or an estimate.

    A node that the plan does not name has at least the loss of those it names, since these are the
    next best, and at least the time that the step itself would take longer there.
    """
    if target.node is None:
        # The scheduler's own scores choose for a step that is neither planned nor ruled.
        return (lambda name: 1.0 / _speed(knowledge, name)) if is_ruled else (lambda _: 0.0)
    least = max(target.losses.values(), default=0.0)
    reference_seconds = target.seconds * _speed(knowledge, target.node)
    named = {**target.losses, target.node: 0.0}

    def loss(name: str) -> float:
        if name in named:
            return named[name]
        return max(least, reference_seconds / _speed(knowledge, name) - target.seconds)

    return loss


def _speed(knowledge: Knowledge, name: str) -> float:
    return knowledge.nodes.get(name, _UNKNOWN_NODE).node.speed
