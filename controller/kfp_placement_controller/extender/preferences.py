"""How good a node is for a pod: limits, volumes, latency, the plan, speed and room.

Pure, from what is known at one moment; `decisions` makes answers of it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kfp_placement_controller.extender.knowledge import Knowledge, KnownNode, PlannedStep
from kfp_placement_controller.extender.scheduling_request import SchedulingRequest
from kfp_placement_controller.observed import latency_limits
from kfp_placement_engine.model.latency import LatencyTolerance
from kfp_placement_engine.model.quantities import Resources

_UNKNOWN_NODE = KnownNode()
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


def limit_ms(known: Knowledge, pod: SchedulingRequest) -> float | None:
    """The hard limit of the round trip; None = none, or nobody knows where the place is."""
    return latency_limits.limit_ms(pod.observed, known.rules) if pod.place in known.places else None


def latency_ms(known: Knowledge, pod: SchedulingRequest, name: str) -> float:
    """Round trip between a node and the pod's place; infinite = unknown."""
    return known.nodes.get(name, _UNKNOWN_NODE).latencies_ms.get(pod.place, math.inf)


def band_ms(known: Knowledge, pod: SchedulingRequest, pool: Sequence[str]) -> float | None:
    """The largest round trip that counts as best for a ruled step; None = no rule applies."""
    rules = known.rules.latency_rules
    if pod.place not in known.places:
        return None
    if pod.step_type not in {each.lower() for each in rules.step_types}:
        return None
    best_ms = min((latency_ms(known, pod, name) for name in pool), default=math.inf)
    if math.isinf(best_ms):
        return None
    return LatencyTolerance(rules.tolerance_ms, rules.tolerance_percent / 100).limit_ms(best_ms)


def volume_nodes(known: Knowledge, pod: SchedulingRequest, offered: Sequence[str]) -> list[str]:
    """Offered nodes where running pods mount a claim that one node at a time may mount."""
    holders: set[str] = set()
    for name in pod.observed.claims:
        claim = (pod.observed.namespace, name)
        if claim not in known.shared_claims:
            holders.update(known.claim_nodes.get(claim, ()))
    return [name for name in offered if name in holders] if holders else []


def ranked(
    known: Knowledge,
    pod: SchedulingRequest,
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
    planned = None if step is None else step.node
    loss = _losses(known, step, is_ruled=band is not None)
    room = _room(known, pod)
    for name in names:
        excess_ms = 0.0 if band is None else max(0.0, latency_ms(known, pod, name) - band)
        is_tight, share = room(name)
        yield Ranked(Rank(excess_ms, name != planned, is_tight, loss(name)), share, name)


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
    return known.nodes.get(name, _UNKNOWN_NODE).speed


def _room(known: Knowledge, pod: SchedulingRequest) -> Callable[[str], tuple[bool, float]]:
    """Of a node with the pod on it: whether it is tight, and the fuller of CPU and memory.

    Of a node not seen yet: not tight, and full.
    """
    headroom = known.rules.headroom
    cpu_milli, memory_bytes = headroom.cpu_milli, headroom.memory_bytes
    asked = pod.observed.requests
    asked_cpu, asked_memory = asked.get("cpu", 0), asked.get("memory", 0)
    nodes, used = known.nodes, known.used

    # Asked of every node of a large cluster while kube-scheduler waits, so in one go.
    def room(name: str) -> tuple[bool, float]:
        if name not in nodes:
            return False, 1.0
        allocatable, taken = nodes[name].allocatable, used.get(name, _NOTHING)
        cpu, memory = allocatable.get("cpu", 0), allocatable.get("memory", 0)
        free_cpu = cpu - taken.get("cpu", 0) - asked_cpu
        free_memory = memory - taken.get("memory", 0) - asked_memory
        is_tight = free_cpu < cpu_milli or free_memory < memory_bytes
        if not cpu or not memory:
            return is_tight, 1.0
        return is_tight, 1.0 - min(free_cpu / cpu, free_memory / memory)

    return room
