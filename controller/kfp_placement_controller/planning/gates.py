"""Which gated pods may go on now, and to which node.

On every node starts follow the plan's order: a pod waits for room on its node, and leaves alone
what those before it will need. It overtakes them only within a gap: if it has ended before any of
them could begin (backfilling, as batch systems do it). Nothing waits beyond its deadline, whatever
the plan says; a pod that no plan knows does not wait at all. Hard latency limits are looked at
afterwards, by the gate controller.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from kfp_placement_controller.observed.pods import ObservedPod, is_overdue
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.resources import (
    Resources,
    add_to,
    fits,
    free_room,
    subtract_from,
    with_pod,
)


@dataclass(frozen=True)
class QueuedStep:
    """A step in the plan's order on its node.

    Attributes:
        run, step: names.
        node: where it is planned.
        start_seconds: planned start, in seconds since the epoch.
        requests: of its pod.
        seconds: how long it is planned to take, from its bind on; infinite = unknown.
        goes: its gate is off, it is only not bound yet.
    """

    run: RunKey
    step: str
    node: str
    start_seconds: float
    requests: Resources
    seconds: float = math.inf
    goes: bool = False


@dataclass(frozen=True)
class Occupied:
    """Room that a step takes until it ends.

    Attributes:
        node: where it runs.
        end_seconds: when it is expected to end, in seconds since the epoch.
        requests: of its pod.
    """

    node: str
    end_seconds: float
    requests: Resources


PlacedT = TypeVar("PlacedT", QueuedStep, Occupied)


@dataclass(frozen=True)
class GatedPod:
    """A pod that has our gate.

    Attributes:
        pod: as observed.
        run: of which run, where a plan knows it.
        step: its step, or "" where no plan knows it.
    """

    pod: ObservedPod
    run: RunKey | None = None
    step: str = ""


class Cause(StrEnum):
    """Why a gate comes off."""

    TURN = "turn"
    """It is the pod's turn, on its planned node."""

    OVERDUE = "overdue"
    """Its deadline has passed."""

    PAUSED = "paused"
    """The policy is paused."""

    NOT_PLANNED = "not-planned"
    """No plan knows the pod's step, or has a node for it."""

    NODE_GONE = "node-gone"
    """The planned node is gone."""

    BY_OTHERS = "by-others"
    """Somebody else has taken it off."""


@dataclass(frozen=True)
class Release:
    """A gate to take off.

    Attributes:
        pod: the pod.
        cause: why.
        node: where it should go; "" = anywhere.
        hosts: it goes to nodes with one of these host labels only; empty = to any.
    """

    pod: ObservedPod
    cause: Cause
    node: str = ""
    hosts: tuple[str, ...] = ()


def releases(
    gated: Iterable[GatedPod],
    queued_steps: Sequence[QueuedStep],
    nodes: Mapping[str, Node],
    now: datetime,
    deadline_seconds: float,
    occupied: Iterable[Occupied] = (),
) -> list[Release]:
    """The gates that come off now, in the plan's order.

    Args:
        gated: pods with our gate.
        queued_steps: steps of planned runs that have a node and are not bound yet, whether or not
            they have a pod.
        nodes: with the room that bound pods take now, by name.
        now: the time.
        deadline_seconds: since a pod's creation; then it goes on, planned or not.
        occupied: steps that run, whose ends are expected.
    """
    released: list[Release] = []
    waiting: dict[tuple[RunKey | None, str], ObservedPod] = {}
    for each in gated:
        if PLAN_GATE not in each.pod.gates or each.pod.deleting:
            continue
        if is_overdue(each.pod, now, deadline_seconds):
            released.append(Release(each.pod, Cause.OVERDUE))
        elif not each.step:
            released.append(Release(each.pod, Cause.NOT_PLANNED))
        else:
            waiting[each.run, each.step] = each.pod
    planned = {(queued.run, queued.step) for queued in queued_steps}
    released += [
        Release(pod, Cause.NOT_PLANNED) for key, pod in waiting.items() if key not in planned
    ]
    ends = _by_node(occupied)
    for name, queue in _by_node(queued_steps).items():
        own = {
            key: pod for queued in queue if (pod := waiting.get(key := (queued.run, queued.step)))
        }
        node = nodes.get(name)
        if node is None:
            # It is gone: waiting for it gains nothing.
            released += [Release(pod, Cause.NODE_GONE) for pod in own.values()]
            continue
        room = _Room(node, ends.get(name, ()), now.timestamp())
        for queued in sorted(
            queue, key=lambda queued: (queued.start_seconds, queued.run, queued.step)
        ):
            key = (queued.run, queued.step)
            needs = own[key].requests if key in own else queued.requests
            if room.admits(replace(queued, requests=needs), waits=key in own):
                released.append(Release(own[key], Cause.TURN, name))
    return released


def _by_node(placed: Iterable[PlacedT]) -> Mapping[str, Sequence[PlacedT]]:
    by_node: dict[str, list[PlacedT]] = {}
    for each in placed:
        by_node.setdefault(each.node, []).append(each)
    return by_node


class _Room:
    """Room on a node while its queued steps are gone through in the plan's order."""

    def __init__(self, node: Node, occupied: Iterable[Occupied], now_seconds: float) -> None:
        self._ends = sorted(occupied, key=lambda each: each.end_seconds)
        self._now = now_seconds
        # What is free, and what of it those before leave to those behind them.
        self._free = free_room(node.allocatable, node.used)
        self._left = dict(self._free)
        self._next_start = math.inf

    def admits(self, queued: QueuedStep, *, waits: bool) -> bool:
        """Whether the pod of a queued step may go on; what it needs is kept from those behind it.

        Args:
            queued: the next one.
            waits: whether its pod is there and waits for this.
        """
        in_gap = self._now + queued.seconds <= self._next_start and fits(
            queued.requests, self._free
        )
        admitted = waits and (in_gap or fits(queued.requests, self._left))
        taken = with_pod(queued.requests)
        if admitted or queued.goes:
            subtract_from(self._free, taken)
        else:
            start = self._start_of(queued.requests) if waits else queued.start_seconds
            self._next_start = min(self._next_start, max(self._now, start))
        subtract_from(self._left, taken)
        return admitted

    def _start_of(self, requests: Resources) -> float:
        """When ends that are expected leave room; now, where it depends on somebody else's."""
        free = dict(self._free)
        for each in self._ends:
            add_to(free, with_pod(each.requests))
            if fits(requests, free):
                return each.end_seconds
        return self._now
