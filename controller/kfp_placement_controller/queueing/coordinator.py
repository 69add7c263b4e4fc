"""Decisions of the queue process: they follow from observed changes and the time.

Only one thread uses the coordinator, which neither calls an API nor starts a thread: others carry
out the actions that it returns. Changes are kept in `queues`, `runs`, `room`, `planner` (whether a
planner works), the policy, and the backends. Each `tick` takes these steps:

1. `steering` separates the runs that start whatever their queue decides from those that wait;
   `releases` gives the cause: their namespace takes no part, or no planner works, for example.
2. `situation` collects the waiting and admitted runs, the RunQueues, and the room of the cluster.
3. `backends` decide which waiting runs start, and which admitted runs must stop.
4. `ranges` forecasts when the other waiting runs start.
5. `steering` and `publisher` return the actions on runs and on statuses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from kfp_placement_controller.kinds import POLICIES, RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.namespaces import Namespaces
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.actions import (
    QueueAction,
    ReleaseCause,
    StartRun,
    SteeringAction,
)
from kfp_placement_controller.queueing.backend import Backend, Decisions
from kfp_placement_controller.queueing.cluster_room import ClusterRoom, IdleRuns
from kfp_placement_controller.queueing.releases import PlannerState, PlannerWatch, Releases
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.requested_runs import RequestedRuns
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.start_ranges import StartRanges
from kfp_placement_controller.queueing.statuses.publisher import QueuePublisher
from kfp_placement_controller.queueing.steering import RETRY_SECONDS, Steering
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS, Kind

_IDLE_SECONDS = 5.0
"""Time between two decisions without changes: priorities grow while runs wait."""

_BURST_SECONDS = 0.1
"""Shortest time between two decisions: changes come in bursts."""

_MOST_BURST_SECONDS = 0.5
"""Longest time that a change waits for a decision, however many runs there are."""

_PAUSES_PER_DECISION = 20.0
"""Time between two decisions, by what the last one took: they take at most 5% of a core, or where
that would be too late, at most half of one."""


@dataclass(eq=False)
class QueueCoordinator:
    """Runs and their queues as they are now, and the decisions that follow.

    Attributes:
        sources: sources of runs, which say which run a pod belongs to.
        backends: deciders about runs; each RunQueue names one of them.
        monotonic: monotonic clock, in seconds.
        namespaces: the namespaces, some of which take no part.
        epoch: epoch of our Lease, or None while another process leads.
        queues: the RunQueues.
        runs: the runs, with their RunRequests.
        planner: watch on whether a planner works, which must write what runs need.
    """

    sources: InitVar[RunSources]
    backends: Sequence[Backend]
    monotonic: Callable[[], float]
    namespaces: Namespaces = field(default_factory=Namespaces)

    def __post_init__(self, sources: RunSources) -> None:
        """Start without having seen anything."""
        self.epoch: int | None = None
        self.queues = RunQueues()
        self.runs = RequestedRuns()
        self.planner = PlannerWatch()
        self.room = ClusterRoom(Load(sources))
        self.idle = IdleRuns()
        self.releases = Releases(self.monotonic)
        self.steering = Steering(self.monotonic)
        self.ranges = StartRanges()
        self.publisher = QueuePublisher(self.ranges, self.monotonic)
        self._policy = PlacementPolicySpec()
        self._is_changed = True
        self._decided_at: float | None = None
        self._took_seconds = 0.0
        self._handlers: dict[Kind, Callable[[Change[Any]], bool | None]] = {
            PODS: self.room.pod_changed,
            NODES: self.room.node_changed,
            NAMESPACES: self.namespaces.changed,
            POLICIES: self._policy_changed,
            RUN_QUEUES: self._queue_changed,
            RUN_REQUESTS: self._request_changed,
        }
        for backend in self.backends:
            self._handlers |= {kind: partial(backend.observe, kind) for kind in backend.kinds}

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that an object is new, has changed or is gone.

        Args:
            kind: kind of the object; one without a handler is a kind of runs.
            change: the object before and after.
        """
        is_news = self._handlers.get(kind, self.runs.run_changed)(change)
        # False, and not None: most changes of pods and of running runs do not matter to queues.
        if is_news is not False:
            self.decide_soon()

    def decide_soon(self) -> None:
        """Decide at the next tick: something that decisions depend on has changed."""
        self._is_changed = True

    def _policy_changed(self, change: Change[PlacementPolicy]) -> None:
        self._policy = PlacementPolicySpec() if change.new is None else change.new.spec

    def _queue_changed(self, change: Change[ObservedQueue]) -> None:
        self.queues.observe(QueueKey(*change.key), change.new)

    def _request_changed(self, change: Change[ObservedRequest]) -> None:
        key = RunKey(*change.key)
        before = self.runs.get(key)
        self.runs.request_changed(change)
        after = self.runs.get(key)
        was_unknown = before is not None and before.spec is None
        if was_unknown and after is not None and after.spec is not None:
            self.planner.progressed(self.monotonic())

    def planner_lease(self, lease: HeldLease | None) -> None:
        """Take in that the planner's Lease has changed."""
        self.planner.lease.observe(lease, self.monotonic())

    def follow_election(self, epoch: int | None) -> None:
        """Begin or stop leading, by the outcome of the election.

        Args:
            epoch: epoch of our Lease, or None while another process leads.
        """
        if epoch == self.epoch:
            return
        self.epoch = epoch
        if epoch is not None:
            self.steering.clear()
            self.ranges.lead()
            self.releases.lead()
            self.planner.lease.restart()
            self.idle = IdleRuns()
            self.decide_soon()

    # What follows.

    def tick(self, now: datetime) -> list[QueueAction] | None:
        """Return the actions to take now, or None if no decision is due.

        Call it after changes, and at the time of `next_at`.
        """
        monotonic_seconds = self.monotonic()
        if self.epoch is None or self._pause_seconds(monotonic_seconds) > 0:
            return None
        self._is_changed, self._decided_at = False, monotonic_seconds
        self.steering.forget()
        namespaces = set(filter(self.namespaces.takes_part, self.queues.namespaces()))
        self.releases.observe(namespaces)
        planner = self.planner.state(self._policy.scheduler_stale_after_seconds, monotonic_seconds)
        runs = [self.queues.with_stated_demand(each) for each in self.runs]
        standing = self.steering.standing(runs, partial(self._cause, planner, now), now)
        taking_part = [each for each in runs if each.key.namespace in namespaces]
        waiting = [each for each in standing.waiting if each.key.namespace in namespaces]
        admitted = [each for each in taking_part if each.is_admitted] + standing.starting
        ended = self.runs.ended(self.room.runs_with_pods())
        draining = [each for each in ended if each.key.namespace in namespaces]
        fixed = {each.key for each in taking_part if self.steering.is_refused(each)}
        situation = Situation(
            waiting,
            standing.refused,
            draining,
            self.room,
            admitted,
            self.queues,
            self.runs.requests(),
            planner.problem,
            fixed=fixed,
            # Who cannot be stopped must not keep the room that it does not use.
            sleeping=fixed | self._sleeping(admitted, waiting, monotonic_seconds),
            returning=self.releases.returning(),
        )
        decided = Decisions()
        for backend in self.backends:
            decided = decided.together_with(backend.decide(situation, now))
        decided = self.steering.with_requests(decided, situation, now)
        self.ranges.observe_queues(self.queues)
        self.ranges.forecast(decided.simulations, now, monotonic_seconds)
        steered = (*standing.wanted, *self.steering.decided(waiting, situation, decided, now))
        actions: list[QueueAction] = []
        actions += [each for each in decided.writes if self.steering.may_try(each.identity)]
        actions += self._steering_actions(steered, situation, now)
        # A pod may come when its run has ended and says so: then the run keeps its place again.
        shown = [*taking_part, *(each for each in draining if self.runs.get(each.key) is None)]
        # In a namespace that no longer takes part, the RunRequest of a run that has started would
        # otherwise say forever that the run waits.
        started = [
            each
            for each in self.runs
            if each.key.namespace not in namespaces and not each.is_waiting
        ]
        actions += self.publisher.requests([*shown, *started], situation, decided, now)
        if planner.is_known:
            actions += self.publisher.queues(
                shown, situation, decided, self._policy, self.namespaces.takes_part, now
            )
        self._took_seconds = self.monotonic() - monotonic_seconds
        return actions

    def _sleeping(
        self,
        admitted: Sequence[RequestedRun],
        waiting: Sequence[RequestedRun],
        monotonic_seconds: float,
    ) -> Set[RunKey]:
        """Return the runs that have kept room without using it for longer than `idleAfter`."""
        preempted = [each for each in waiting if each.is_preempted]
        return self.idle.sleeping(
            [*admitted, *preempted], self.room, self.queues.idle_after_seconds, monotonic_seconds
        )

    def next_at(self, now: datetime) -> datetime:
        """Return the time of the next tick if nothing changes before."""
        pause_seconds = RETRY_SECONDS
        if self._decided_at is not None and self.epoch is not None:
            pause_seconds = self._pause_seconds(self.monotonic())
        return now + timedelta(seconds=pause_seconds)

    def longest_waits(self, now: datetime) -> Mapping[str, float]:
        """Return the longest wait of a waiting run in seconds, by namespace."""
        longest: dict[str, float] = {}
        for run in self.runs:
            if run.is_waiting:
                seconds = (now - run.waiting_since(now)).total_seconds()
                namespace = run.key.namespace
                longest[namespace] = max(longest.get(namespace, 0.0), seconds)
        return longest

    def _steering_actions(
        self, steered: Sequence[SteeringAction], situation: Situation, now: datetime
    ) -> Iterator[QueueAction]:
        """Yield the actions that were not tried a short time ago, and record why runs start."""
        for action in steered:
            if not self.steering.may_try(action.identity):
                continue
            yield action
            if isinstance(action, StartRun):
                uid, run = action.run.owner.uid, self.runs.get(action.run.key)
                self.publisher.released(uid, action.cause)
                if run is not None and action.cause is ReleaseCause.ADMITTED:
                    queue = situation.queue_of(run)
                    self.ranges.started(uid, queue, run.first_starts(now), now)

    def _cause(
        self, planner: PlannerState, now: datetime, run: RequestedRun
    ) -> ReleaseCause | None:
        """Return why a waiting run starts whatever its queue decides; None = its queue decides."""
        namespace = run.key.namespace
        takes_part = self.namespaces.takes_part(namespace)
        queue = self.queues.of_namespace(namespace) if takes_part else None
        return self.releases.cause(run, queue, planner, now)

    def _pause_seconds(self, monotonic_seconds: float) -> float:
        """Return the time until the next decision: short after a change."""
        if self._decided_at is None:
            return 0.0
        pause_seconds = RETRY_SECONDS if self.steering.has_tried else _IDLE_SECONDS
        if self._is_changed:
            wanted_seconds = min(self._took_seconds * _PAUSES_PER_DECISION, _MOST_BURST_SECONDS)
            pause_seconds = max(_BURST_SECONDS, wanted_seconds, 2 * self._took_seconds)
        return self._decided_at + pause_seconds - monotonic_seconds
