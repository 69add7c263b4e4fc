"""The heart of `queue`: changes and the time in, decisions out. Decide, then write.

One thread owns all of this. It calls no API, starts no thread and reads no clock.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.observed.liveness import HeldLease, LeaseWatch
from kfp_placement_controller.observed.namespaces import ObservedNamespace, takes_part
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.actions import (
    QueueAction,
    ReleaseCause,
    ReleaseHeld,
    ResumeRun,
)
from kfp_placement_controller.queueing.builtin.backend import BuiltinBackend
from kfp_placement_controller.queueing.cluster_room import ClusterRoom
from kfp_placement_controller.queueing.kueue.backend import KueueBackend
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.publisher import PublishingParams, QueuePublisher
from kfp_placement_controller.queueing.queued_runs import KnownRun, QueuedRuns
from kfp_placement_controller.queueing.releases import PlannerState, Releases
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.situation import Situation, situation_of
from kfp_placement_controller.queueing.start_ranges import StartRanges
from kfp_placement_controller.queueing.steering import Steering
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.resources import PlacementPolicy
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS, Kind


@dataclass(frozen=True)
class QueueParams:
    """How the queue works.

    Attributes:
        idle_seconds: between two decisions where nothing has happened: priorities grow.
        decision_seconds: between two decisions at least: changes come in bursts.
        decision_seconds_per_run: the same for each run that waits: a decision about a thousand of
            them takes some 50 ms on a busy machine, so that at most 5% of a core are spent on it.
        retry_seconds: between two tries of the same write.
        publishing: how often statuses are written.
    """

    idle_seconds: float = 5.0
    decision_seconds: float = 0.1
    decision_seconds_per_run: float = 0.001
    retry_seconds: float = 2.0
    publishing: PublishingParams = field(default_factory=PublishingParams)


class QueueCoordinator:
    """All that is known of runs and their queues, and what follows from it.

    Attributes:
        params: times.
        epoch: of our Lease while we lead; None = we only follow.
        queues: the RunQueues.
        runs: the runs, with their RunRequests.
        planner: the planner's Lease.
        own_namespace: the controller's, which takes no part.
        opt_in: whether only namespaces that ask for it take part.
        decided_at: when it has decided last.
    """

    def __init__(
        self, sources: RunSources, *, own_namespace: str = "", opt_in: bool = False
    ) -> None:
        """Nothing is known yet.

        Args:
            sources: where runs come from.
            own_namespace: the controller's.
            opt_in: whether only namespaces that ask for it take part.
        """
        self.params = QueueParams()
        self.epoch: int | None = None
        self.queues = RunQueues()
        self.runs = QueuedRuns()
        self.planner = LeaseWatch()
        self.own_namespace = own_namespace
        self.opt_in = opt_in
        self.decided_at: datetime | None = None
        self.room = ClusterRoom(Load(sources))
        self.builtin = BuiltinBackend()
        self.kueue = KueueBackend(retry_seconds=self.params.retry_seconds)
        self.releases = Releases()
        self.steering = Steering(self.params.retry_seconds)
        self.ranges = StartRanges()
        self.publisher = QueuePublisher(self.params.publishing, self.ranges)
        self._policy = PlacementPolicySpec()
        self._namespaces: dict[str, ObservedNamespace] = {}
        self._led_at: datetime | None = None
        self._is_changed = True
        self._has_progressed = False
        self._progressed_at: datetime | None = None
        self._waiting = 0
        self._handlers: Mapping[Kind, Callable[[Change[Any]], None]] = {
            POLICIES: self._policy_changed,
            NAMESPACES: self._namespace_changed,
            NODES: self._node_changed,
            PODS: self._pod_changed,
        }

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any]) -> None:
        """An object is new, has changed or is gone; any other kind is that of runs."""
        if kind in self._handlers:
            self._handlers[kind](change)
        else:
            self._is_changed |= self.runs.run_changed(change)

    def queue_changed(self, key: QueueKey, queue: ObservedQueue | None) -> None:
        """A RunQueue is new, has changed or is gone."""
        self.queues.observe(key, queue)
        self._is_changed = True

    def request_changed(self, key: RunKey, request: ObservedRequest | None) -> None:
        """A RunRequest is new, has changed or is gone."""
        known = self.runs.get(key)
        self._is_changed |= self.runs.request_changed(key, request)
        now_known = self.runs.get(key)
        if known is not None and now_known is not None:
            self._has_progressed |= known.spec is None and now_known.spec is not None

    def kueue_changed(self, change: Callable[[KueueObjects], None]) -> None:
        """One of Kueue's objects is new, has changed or is gone, or all were listed.

        Args:
            change: notes it.
        """
        change(self.kueue.objects)
        self._is_changed = True

    def planner_lease(self, lease: HeldLease | None, now: datetime) -> None:
        """The planner's Lease has changed."""
        self.planner.observe(lease, now)

    def lead(
        self, epoch: int, queues: Iterable[ObservedQueue], requests: Iterable[ObservedRequest]
    ) -> None:
        """We lead from now on.

        Args:
            epoch: of our Lease.
            queues: all RunQueues there are, as the API server has them now.
            requests: all RunRequests, likewise.
        """
        self.epoch = epoch
        self.listed(queues, requests)
        self.steering.clear()
        self.ranges.lead()
        self._led_at = None

    def listed(self, queues: Iterable[ObservedQueue], requests: Iterable[ObservedRequest]) -> None:
        """These are all there are now; of one that is gone no watch may have told."""
        self.queues.replace_all(queues)
        self.runs.requests_listed(requests)
        self._is_changed = True

    def clock_set(self, step: timedelta) -> None:
        """Somebody has set our clock: what is remembered by it moves along, or is forgotten.

        Args:
            step: by how much.
        """
        self.planner.clock_set(step)
        self.steering.clear()
        self.releases.clear()
        self.kueue.clear()
        self.publisher.clear()
        self.ranges.play_again()
        self.decided_at = self._led_at = self._progressed_at = None

    def follow(self) -> None:
        """Another leads from now on."""
        self.epoch = None

    # What follows.

    def tick(self, now: datetime) -> list[QueueAction]:
        """What must be done now; call it after changes, and when `next_at` says so."""
        due_at = self._due_at()
        if self.epoch is None or (due_at is not None and now < due_at):
            return []
        self._is_changed, self.decided_at = False, now
        self.steering.forget(now)
        namespaces = {name for name in self.queues.namespaces() if not self._excluded(name)}
        self.releases.observe(namespaces, now)
        planner = self._planner_state(now)
        standing = self.steering.standing(
            self.runs, lambda known: self._cause(known, planner, now), now
        )
        taking_part = [each for each in self.runs if each.key.namespace in namespaces]
        waiting = [each for each in standing.waiting if each.key.namespace in namespaces]
        self._waiting = len(waiting)
        situation = situation_of(
            waiting,
            standing.refused,
            [each for each in taking_part if each.is_admitted] + standing.let,
            self.queues,
            self.room,
            self.runs.requests(),
            planner.problem,
            fixed=[each.key for each in taking_part if self.steering.is_refused(each)],
            returning=self.releases.returning(now),
        )
        decided = self.builtin.decide(situation, now).and_of(self.kueue.decide(situation, now))
        self.ranges.observe_queues(self.queues)
        self.ranges.play(decided.played, now)
        actions: list[QueueAction] = [*decided.writes]
        steered = self.steering.decided(waiting, situation, decided, now)
        for action in (*standing.wanted, *steered):
            if self.steering.may_try(action, now):
                actions.append(action)
                if isinstance(action, ReleaseHeld | ResumeRun):
                    self._released_by(action, situation, now)
        # A RunRequest must not say forever that its run waits, once the namespace takes no part.
        others = (each for each in self.runs if each.key.namespace not in namespaces)
        left = [each for each in others if not each.is_waiting]
        actions += self.publisher.requests([*taking_part, *left], situation, decided, now)
        if planner.is_known:
            actions += self.publisher.queues(
                taking_part, situation, decided, self._policy, self._excluded, now
            )
        return actions

    def _cause(self, known: KnownRun, planner: PlannerState, now: datetime) -> ReleaseCause | None:
        """Why a waiting run goes on whatever its queue decides; None = it waits on."""
        queue = self._queue_of_namespace(known.key.namespace)
        return self.releases.cause(known, queue, planner, now)

    def _released_by(
        self, action: ReleaseHeld | ResumeRun, situation: Situation, now: datetime
    ) -> None:
        """A run is let run: remember why, and how that was beside what was said before."""
        uid, known = action.run.owner.uid, self.runs.get(action.run.key)
        self.publisher.released(uid, action.cause)
        if known is not None and action.cause is ReleaseCause.ADMITTED:
            self.ranges.begun(uid, situation.queue_of(known), known.first_starts(now), now)

    def next_at(self, now: datetime) -> datetime:
        """When to tick again if nothing changes before."""
        due_at = self._due_at()
        if due_at is None or self.epoch is None:
            return now + timedelta(seconds=self.params.retry_seconds)
        return due_at

    def longest_waits(self, now: datetime) -> Mapping[str, float]:
        """Seconds that the run has waited which waits longest, by namespace."""
        longest: dict[str, float] = {}
        for known in self.runs:
            if known.is_waiting:
                seconds = (now - known.waiting_since(now)).total_seconds()
                space = known.key.namespace
                longest[space] = max(longest.get(space, 0.0), seconds)
        return longest

    def _due_at(self) -> datetime | None:
        """When to decide: soon after a change, and now and then without one; None = at once."""
        if self.decided_at is None:
            return None
        pause_seconds = self.params.idle_seconds
        if self._is_changed:
            at_least = self._waiting * self.params.decision_seconds_per_run
            pause_seconds = max(self.params.decision_seconds, at_least)
        elif self.steering.has_tried:
            pause_seconds = self.params.retry_seconds
        return self.decided_at + timedelta(seconds=pause_seconds)

    def _queue_of_namespace(self, namespace: str) -> ObservedQueue | None:
        """The queue by which a namespace takes part; None = it does not."""
        return None if self._excluded(namespace) else self.queues.of_namespace(namespace)

    def _excluded(self, namespace: str) -> bool:
        """Whether a namespace takes no part, whatever RunQueues it has."""
        says = self._namespaces.get(namespace)
        return not takes_part(namespace, says, self.own_namespace, opt_in=self.opt_in)

    def _planner_state(self, now: datetime) -> PlannerState:
        if self._led_at is None:
            self._led_at = now
        age_seconds = self.planner.age_seconds(now)
        stale_after_seconds = self._policy.scheduler_stale_after_seconds
        # A Lease that was not seen to be renewed may be that of a planner that is long dead.
        is_known = self.planner.has_renewed or age_seconds > stale_after_seconds
        if self._has_progressed:
            self._has_progressed, self._progressed_at = False, now
        return PlannerState(
            age_seconds, stale_after_seconds, self._led_at, is_known, self._progressed_at
        )

    # What comes in, by kind.

    def _policy_changed(self, change: Change[PlacementPolicy]) -> None:
        self._policy = change.new.spec if change.new is not None else PlacementPolicySpec()
        self._is_changed = True

    def _namespace_changed(self, change: Change[ObservedNamespace]) -> None:
        name, says = change.key[1], change.new
        if says is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = says
        self._is_changed = True

    def _node_changed(self, change: Change[Node]) -> None:
        self.room.node_changed(change)
        self._is_changed = True

    def _pod_changed(self, change: Change[ObservedPod]) -> None:
        self._is_changed |= self.room.pod_changed(change)
