"""The heart of `queue`: changes and the time in, decisions out. Decide, then write.

One thread owns all of this. It calls no API, starts no thread and reads no clock.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_controller.kinds import POLICIES, RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.observed.liveness import HeldLease, LeaseWatch
from kfp_placement_controller.observed.namespaces import ObservedNamespace, takes_part
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.actions import (
    LetRun,
    QueueAction,
    ReleaseCause,
)
from kfp_placement_controller.queueing.builtin.backend import decisions
from kfp_placement_controller.queueing.cluster_room import ClusterRoom
from kfp_placement_controller.queueing.kueue.backend import KueueBackend
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.publisher import QueuePublisher
from kfp_placement_controller.queueing.queued_runs import KnownRun, QueuedRuns
from kfp_placement_controller.queueing.releases import PlannerState, Releases
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.start_ranges import StartRanges
from kfp_placement_controller.queueing.steering import RETRY_AFTER, Steering
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS, Kind

_IDLE = timedelta(seconds=5)
"""Time between two decisions where nothing has happened: priorities grow."""

_BURST = timedelta(seconds=0.1)
"""Time between two decisions at least: changes come in bursts."""

_BURST_PER_RUN = timedelta(milliseconds=1)
"""The same for each run that waits: a decision about a thousand of them takes some 50 ms on a busy
machine, so that at most 5% of a core are spent on it."""


class QueueCoordinator:
    """All that is known of runs and their queues, and what follows from it.

    Attributes:
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
        self.epoch: int | None = None
        self.queues = RunQueues()
        self.runs = QueuedRuns()
        self.planner = LeaseWatch()
        self.own_namespace = own_namespace
        self.opt_in = opt_in
        self.decided_at: datetime | None = None
        self.room = ClusterRoom(Load(sources))
        self.kueue = KueueBackend()
        self.releases = Releases()
        self.steering = Steering()
        self.ranges = StartRanges()
        self.publisher = QueuePublisher(self.ranges)
        self._policy = PlacementPolicySpec()
        self._namespaces: dict[str, ObservedNamespace] = {}
        self._led_at: datetime | None = None
        self._is_changed = True
        self._has_progressed = False
        self._progressed_at: datetime | None = None
        self._waiting = 0

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that an object is new, has changed or is gone.

        Args:
            kind: kind of the object; one that is not named here is a kind of runs.
            change: the object before and after.
        """
        is_news = True
        if kind == PODS:
            is_news = self.room.pod_changed(change)
        elif kind == NODES:
            self.room.node_changed(change)
        elif kind == NAMESPACES:
            self._namespaces.pop(change.key[1], None)
            if change.new is not None:
                self._namespaces[change.key[1]] = change.new
        elif kind == POLICIES:
            self._policy = PlacementPolicySpec() if change.new is None else change.new.spec
        elif kind == RUN_QUEUES:
            self.queues.observe(QueueKey(*change.key), change.new)
        elif kind == RUN_REQUESTS:
            self._request_changed(RunKey(*change.key), change.new)
        else:
            is_news = self.runs.run_changed(change)
        self._is_changed |= is_news

    def _request_changed(self, key: RunKey, request: ObservedRequest | None) -> None:
        before = self.runs.get(key)
        self.runs.request_changed(key, request)
        after = self.runs.get(key)
        if before is not None and after is not None:
            self._has_progressed |= before.spec is None and after.spec is not None

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

    def follow_election(self, epoch: int | None) -> None:
        """Begin or stop leading, as the election says now.

        Args:
            epoch: epoch of our Lease, or None while another process leads.
        """
        if epoch == self.epoch:
            return
        self.epoch = epoch
        if epoch is not None:
            self.steering.clear()
            self.ranges.lead()
            self._led_at = None
            self._is_changed = True

    def clock_set(self, step: timedelta) -> None:
        """Somebody has set our clock: what is remembered by it moves along, or is forgotten.

        Args:
            step: by how much.
        """
        self.planner.clock_set(step)
        self.steering.clear()
        self.releases.clear()
        self.publisher.clear()
        self.ranges.play_again()
        self.decided_at = self._led_at = self._progressed_at = None

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

        def cause(known: KnownRun) -> ReleaseCause | None:
            space = known.key.namespace
            queue = None if self._excluded(space) else self.queues.of_namespace(space)
            return self.releases.cause(known, queue, planner, now)

        standing = self.steering.standing(self.runs, cause, now)
        taking_part = [each for each in self.runs if each.key.namespace in namespaces]
        waiting = [each for each in standing.waiting if each.key.namespace in namespaces]
        self._waiting = len(waiting)
        situation = Situation(
            waiting,
            standing.refused,
            [each for each in taking_part if each.is_admitted] + standing.let,
            self.queues,
            self.room,
            self.runs.requests(),
            planner.problem,
            fixed=frozenset(each.key for each in taking_part if self.steering.is_refused(each)),
            returning=self.releases.returning(now),
        )
        decided = decisions(situation, now).and_of(self.kueue.decide(situation, now))
        self.ranges.observe_queues(self.queues)
        self.ranges.play(decided.played, now)
        actions: list[QueueAction] = []
        steered = self.steering.decided(waiting, situation, decided, now)
        for action in (*decided.writes, *standing.wanted, *steered):
            if self.steering.may_try(action.target, now):
                actions.append(action)
                if isinstance(action, LetRun):
                    # Remember why, and how that was beside what was said before.
                    uid, known = action.run.owner.uid, self.runs.get(action.run.key)
                    self.publisher.released(uid, action.cause)
                    if known is not None and action.cause is ReleaseCause.ADMITTED:
                        queue = situation.queue_of(known)
                        self.ranges.begun(uid, queue, known.first_starts(now), now)
        # A RunRequest must not say forever that its run waits, once the namespace takes no part.
        others = (each for each in self.runs if each.key.namespace not in namespaces)
        left = [each for each in others if not each.is_waiting]
        actions += self.publisher.requests([*taking_part, *left], situation, decided, now)
        if planner.is_known:
            actions += self.publisher.queues(
                taking_part, situation, decided, self._policy, self._excluded, now
            )
        return actions

    def next_at(self, now: datetime) -> datetime:
        """When to tick again if nothing changes before."""
        due_at = self._due_at()
        if due_at is None or self.epoch is None:
            return now + RETRY_AFTER
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
        pause = RETRY_AFTER if self.steering.has_tried else _IDLE
        if self._is_changed:
            pause = max(_BURST, self._waiting * _BURST_PER_RUN)
        return self.decided_at + pause

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
