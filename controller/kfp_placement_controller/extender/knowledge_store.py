"""The store of what the extender knows: watches write to it, answers read from it.

Writers take a lock among themselves and publish a new frozen `Knowledge`. A reader takes the
reference: it never waits, and nobody waits for it.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kfp_placement_controller.extender.knowledge import (
    Grant,
    Knowledge,
    KnownNode,
    KnownPlan,
    WaitingPod,
)
from kfp_placement_controller.observed.claims import ObservedClaim
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import HoldRule
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.node_rules.constraints import shared_modes
from kfp_placement_engine.model.node_rules.round_trips import (
    StatedPlace,
    node_latencies,
    places_by_name,
)
from kfp_placement_engine.units.resources import Resources, minus, plus, with_pod
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import JsonObject

MAX_WAITING = 1000
"""Largest number of waiting pods that are kept; with more, the cluster is full by any measure."""

MOMENT_SECONDS = 5.0
"""Time for which it matters when room was granted, freed or taken.

A pod that we sent to a node and that is not seen there after this time has gone elsewhere.
"""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def read_bare_node(raw: JsonObject) -> Node:
    """Keep what matters of a node: not its images, which may be most of it.

    Raises:
        InputError: it is malformed.
    """
    return replace(observe_node(raw), images={})


class KnowledgeStore:
    """The latest `Knowledge`, and the changes that make the next.

    Attributes:
        knowledge: state at this moment; a new object after every change.
    """

    def __init__(self, sources: RunSources, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without any knowledge.

        Args:
            sources: sources of runs, which tell the run and step of a pod.
            clock: function that returns the time in seconds, which never goes back.
        """
        self.knowledge = Knowledge(sources=sources)
        self._clock = clock
        self._lock = threading.Lock()
        self._locations: dict[str, StatedPlace] = {}
        self._places: dict[str, StatedPlace] = {}
        self._stating: Counter[str] = Counter()
        self._mounts: dict[ClaimKey, Counter[str]] = {}

    def plan_changed(self, change: Change[KnownPlan]) -> None:
        """Take a change of a PipelinePlacement."""
        with self._lock:
            self._publish(plans=_with(self.knowledge.plans, change.key, change.new))

    def policy_changed(self, change: Change[PlacementPolicy]) -> None:
        """Take a change of a PlacementPolicy; only the policy `default` counts."""
        if change.key[1] == POLICY_NAME:
            with self._lock:
                self._publish(policy=change.new)

    def location_changed(self, change: Change[StatedPlace]) -> None:
        """Take a change of a Location: any node may be at another distance now."""
        with self._lock:
            change.apply_to(self._locations, change.key[1])
            self._places = places_by_name(self._locations.values())
            nodes = {
                name: self._known_node(each.node) for name, each in self.knowledge.nodes.items()
            }
            self._stating = Counter(place for node in nodes.values() for place in node.latencies_ms)
            self._publish(nodes=nodes, places=frozenset(self._stating))

    def node_changed(self, change: Change[Node]) -> None:
        """Take a change of a node; one that is only reported again changes nothing."""
        name = change.key[1]
        with self._lock:
            old = self.knowledge.nodes.get(name)
            if change.new == (None if old is None else old.node):
                return
            new = None if change.new is None else self._known_node(change.new)
            self._stating.subtract(old.latencies_ms if old is not None else ())
            self._stating.update(new.latencies_ms if new is not None else ())
            self._stating = +self._stating
            self._publish(
                nodes=_with(self.knowledge.nodes, name, new), places=frozenset(self._stating)
            )

    def claim_changed(self, change: Change[ObservedClaim]) -> None:
        """Take a change of a volume claim."""
        new = change.new
        shared = new is not None and shared_modes(new.claim.access_modes)
        with self._lock:
            if shared is not (change.key in self.knowledge.shared_claims):
                self._publish(shared_claims=self.knowledge.shared_claims ^ {change.key})

    def queue_changed(self, change: Change[HoldRule]) -> None:
        """Take a change of a RunQueue's readiness; only a namespace's queue `default` counts."""
        namespace, name = change.key
        with self._lock:
            if name == DEFAULT_QUEUE and change.new != self.knowledge.holding.get(namespace):
                self._publish(holding=_with(self.knowledge.holding, namespace, change.new))

    def pod_changed(self, change: Change[ObservedPod]) -> None:
        """Take a change of a pod: its room or wish for room, and where it mounts its claims."""
        with self._lock:
            changes = {**self._room_changes(change), **self._waiting_changes(change)}
            if changes:
                self._publish(**changes)

    def granted(self, pod: ObservedPod, node: str) -> None:
        """Count a pod on the node that we have sent it to, before anybody sees it there."""
        grant = Grant(node, pod.requests, self._clock())
        with self._lock:
            self._publish(granted={**self.knowledge.granted, pod.uid: grant})

    def forget_moments(self) -> None:
        """Forget what mattered for a moment only; to be called from time to time."""
        since = self._clock() - MOMENT_SECONDS
        with self._lock:
            knowledge = self.knowledge
            granted = {uid: each for uid, each in knowledge.granted.items() if each.at > since}
            freed_at = {name: at for name, at in knowledge.freed_at.items() if at > since}
            taken_at = {name: at for name, at in knowledge.taken_at.items() if at > since}
            self._publish(granted=granted, freed_at=freed_at, taken_at=taken_at)

    def _room_changes(self, change: Change[ObservedPod]) -> dict[str, Any]:
        if _room_of(change.old) == _room_of(change.new):
            return {}
        old = change.old if change.old is not None and change.old.holds_room else None
        new = change.new if change.new is not None and change.new.holds_room else None
        used = dict(self.knowledge.used)
        claims: set[ClaimKey] = set()
        for pod, sign, summed in ((old, -1, minus), (new, 1, plus)):
            if pod is not None:
                room = summed(used.pop(pod.node_name, {}), with_pod(pod.requests))
                if room["pods"]:
                    used[pod.node_name] = room
                for name in pod.claims:
                    claim = ClaimKey(pod.namespace, name)
                    claims.add(claim)
                    self._mounts.setdefault(claim, Counter())[pod.node_name] += sign
        changes: dict[str, Any] = {"used": used}
        if new is not None and new.uid in self.knowledge.waiting:
            changes["binders"] = self.knowledge.binders | {new.scheduler_name}
        if new is None and old is not None:
            changes["freed_at"] = {**self.knowledge.freed_at, old.node_name: self._clock()}
        if old is None and new is not None:
            changes["taken_at"] = {**self.knowledge.taken_at, new.node_name: self._clock()}
        if claims:
            changes["claim_nodes"] = self._claim_nodes(claims)
        return changes

    def _waiting_changes(self, change: Change[ObservedPod]) -> dict[str, Any]:
        pod = change.new if change.new is not None else change.old
        if pod is None:
            return {}
        changes: dict[str, Any] = {}
        waits = change.new is not None and not (
            pod.node_name or pod.gates or pod.ended or pod.deleting
        )
        old, new = self.knowledge.waiting.get(pod.uid), None
        if waits and (old is not None or len(self.knowledge.waiting) < MAX_WAITING):
            since = self._clock() if old is None else old.since
            is_refused = pod.unscheduled is not None
            new = WaitingPod(pod.scheduler_name, pod.requests, is_refused, since)
        if new != old:
            changes["waiting"] = _with(self.knowledge.waiting, pod.uid, new)
        if not waits and pod.uid in self.knowledge.granted:
            changes["granted"] = _with(self.knowledge.granted, pod.uid, None)
        return changes

    def _publish(self, **changes: Any) -> None:
        self.knowledge = replace(self.knowledge, **changes)

    def _known_node(self, node: Node) -> KnownNode:
        return KnownNode(node, node_latencies(node.labels, self._places))

    def _claim_nodes(self, claims: set[ClaimKey]) -> Mapping[ClaimKey, tuple[str, ...]]:
        claim_nodes = dict(self.knowledge.claim_nodes)
        for claim in claims:
            mounts = self._mounts[claim] = +self._mounts[claim]
            if mounts:
                claim_nodes[claim] = tuple(sorted(mounts))
            else:
                del self._mounts[claim]
                claim_nodes.pop(claim, None)
        return claim_nodes


def _with(entries: Mapping[KeyT, ValueT], key: KeyT, value: ValueT | None) -> Mapping[KeyT, ValueT]:
    """Return the same mapping with one entry set, or without it where the value is None."""
    changed = {**entries}
    if value is None:
        changed.pop(key, None)
    else:
        changed[key] = value
    return changed


def _room_of(pod: ObservedPod | None) -> tuple[str, Resources, tuple[str, ...]] | None:
    """Return the room that a pod takes: its node, its requests and its claims; None = no room."""
    if pod is None or not pod.holds_room:
        return None
    return pod.node_name, pod.requests, pod.claims
