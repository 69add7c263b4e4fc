"""The heart of `queue`: changes and the time in, decisions out. Decide, then write.

One thread owns all of this. It calls no API, starts no thread and reads no clock.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.observed.liveness import HeldLease, LeaseWatch
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.actions import (
    QueueAction,
    ReleaseCause,
    ReleaseHeld,
    ShowHeld,
    WriteQueueStatus,
)
from kfp_placement_controller.queueing.admission import decide
from kfp_placement_controller.queueing.queue_status import (
    QueueCounts,
    readiness,
    status_patch,
    validity,
)
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.resources import PlacementPolicy
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, Kind

_NOTHING = Demand()
"""What a run needs that nobody has planned: only the number of runs limits it."""


@dataclass(frozen=True)
class QueueParams:
    """How the queue works.

    Attributes:
        idle_seconds: between two looks where nothing has happened: priorities grow.
        retry_seconds: between two tries of the same write.
        count_seconds: between two writes of a queue's counts, which change with every run.
    """

    idle_seconds: float = 5.0
    retry_seconds: float = 2.0
    count_seconds: float = 1.0


@dataclass
class QueueCoordinator:
    """All that is known of runs and their queues, and what follows from it.

    Attributes:
        params: times.
        epoch: of our Lease while we lead; None = we only follow.
        queues: the RunQueues.
        planner: the planner's Lease.
        opt_in: whether only namespaces that ask for it take part.
    """

    params: QueueParams = field(default_factory=QueueParams)
    epoch: int | None = None
    queues: RunQueues = field(default_factory=RunQueues)
    planner: LeaseWatch = field(default_factory=LeaseWatch)
    opt_in: bool = False
    _runs: dict[RunKey, QueuedRun] = field(default_factory=dict)
    _went_on: set[str] = field(default_factory=set)
    _policy: PlacementPolicySpec = field(default_factory=PlacementPolicySpec)
    _labels: dict[str, str] = field(default_factory=dict)
    _tried: dict[tuple[str, ...], datetime] = field(default_factory=dict)
    _counted: dict[QueueKey, datetime] = field(default_factory=dict)

    # What comes in.

    def handle(self, kind: Kind, change: Change[Any]) -> None:
        """An object is new, has changed or is gone; any other kind is that of runs."""
        handlers: Mapping[Kind, Callable[[Change[Any]], None]] = {
            POLICIES: self._policy_changed,
            NAMESPACES: self._namespace_changed,
        }
        handlers.get(kind, self._run_changed)(change)

    def queue_changed(self, key: QueueKey, queue: ObservedQueue | None) -> None:
        """A RunQueue is new, has changed or is gone."""
        self.queues.observe(key, queue)

    def planner_lease(self, lease: HeldLease | None, now: datetime) -> None:
        """The planner's Lease has changed."""
        self.planner.observe(lease, now)

    def lead(self, epoch: int, queues: Iterable[ObservedQueue]) -> None:
        """We lead from now on.

        Args:
            epoch: of our Lease.
            queues: all RunQueues there are, as the API server has them now.
        """
        self.epoch = epoch
        self.queues.replace_all(queues)
        self._tried.clear()

    def queues_listed(self, queues: Iterable[ObservedQueue]) -> None:
        """These are all RunQueues there are now; of one that is gone no watch may have told."""
        self.queues.replace_all(queues)

    def follow(self) -> None:
        """Another leads from now on."""
        self.epoch = None

    # What follows.

    def tick(self, now: datetime) -> list[QueueAction]:
        """What must be done now; call it after changes, and when `next_at` says so."""
        if self.epoch is None:
            return []
        self._tried = {what: at for what, at in self._tried.items() if self._is_recent(at, now)}
        problem = self._planner_problem(now)
        actions: list[QueueAction] = list(self._held_runs(now))
        actions += self._statuses(problem, now)
        return [each for each in actions if self._may_try(each, now)]

    def next_at(self, now: datetime) -> datetime:
        """When to tick again if nothing changes before."""
        pause = self.params.retry_seconds if self._tried else self.params.idle_seconds
        return now + timedelta(seconds=pause)

    def waiting(self) -> Mapping[str, int]:
        """How many runs are held, by namespace."""
        return Counter(run.key.namespace for run in self._runs.values() if run.is_held)

    def _held_runs(self, now: datetime) -> Iterator[QueueAction]:
        """What to do with the runs that are held."""
        waiting: dict[RunKey, QueuedRun] = {}
        for run in self._runs.values():
            cause = self._cause(run, now) if run.is_held else None
            if cause is not None:
                yield ReleaseHeld(run, cause)
            elif run.is_held:
                waiting[run.key] = run
        verdicts = decide(
            map(_as_waiting, waiting.values()),
            [_as_admitted(run) for run in self._admitted()],
            self.queues.rules(),
            (),
            now,
        )
        for verdict in verdicts:
            run = waiting[verdict.key]
            if verdict.is_admitted:
                yield ReleaseHeld(run, ReleaseCause.ADMITTED)
            elif not run.held_message:
                yield ShowHeld(run, f"waits in RunQueue {_queue_of(run).name}")

    def _cause(self, run: QueuedRun, now: datetime) -> ReleaseCause | None:
        """Why a held run is released whatever its queue decides; None = it is not."""
        if run.is_terminated:
            return ReleaseCause.TERMINATED
        if run.owner.uid in self._went_on:
            return ReleaseCause.HAS_BEGUN
        queue = self._queue_of_namespace(run.key.namespace)
        if queue is None:
            return ReleaseCause.NO_QUEUE
        patience = self._policy.scheduler_stale_after_seconds + queue.spec.hold_deadline_seconds
        is_overdue = self.planner.age_seconds(now) > patience
        if is_overdue and not queue.holds_without_controller:
            return ReleaseCause.PLANNER_DOWN
        return None

    def _statuses(self, problem: str, now: datetime) -> Iterator[WriteQueueStatus]:
        waiting = Counter(_queue_of(run) for run in self._runs.values() if run.is_held)
        admitted = Counter(_queue_of(run) for run in self._admitted())
        for queue in self.queues:
            ready = readiness(
                is_paused=self._policy.paused,
                planner_problem=problem,
                holds_without_controller=queue.holds_without_controller,
            )
            patch = status_patch(
                queue.status.model_dump(mode="json", by_alias=True),
                {each.type: each for each in queue.status.conditions},
                (ready, validity(queue.problem)),
                QueueCounts(waiting[queue.key], admitted[queue.key]),
                queue.generation,
                now,
            )
            if patch is not None:
                yield WriteQueueStatus(queue.key, queue.version, patch)

    def _admitted(self) -> Iterator[QueuedRun]:
        """Runs of namespaces that take part that may have pods, whoever let them begin."""
        return (
            run
            for run in self._runs.values()
            if run.is_active and self._queue_of_namespace(run.key.namespace) is not None
        )

    def _queue_of_namespace(self, namespace: str) -> ObservedQueue | None:
        """The queue by which a namespace takes part; None = it does not."""
        label = self._labels.get(namespace, "")
        if label == "false" or (self.opt_in and label != "true"):
            return None
        return self.queues.of_namespace(namespace)

    def _planner_problem(self, now: datetime) -> str:
        """Why no planner tells what runs need; "" = one does, or it is not known yet."""
        limit = self._policy.scheduler_stale_after_seconds
        if self.planner.age_seconds(now) > limit:
            return f"no planner has renewed its Lease for {limit:g} s"
        return ""

    def _may_try(self, action: QueueAction, now: datetime) -> bool:
        """Whether something was not tried just now; what it changes comes back by a watch."""
        what: tuple[str, ...]
        match action:
            case WriteQueueStatus():
                what = ("status", *action.key, action.version)
            case ReleaseHeld() | ShowHeld():
                what = (type(action).__name__, action.run.owner.uid, action.run.version)
        if what in self._tried or not self._may_count(action, now):
            return False
        self._tried[what] = now
        return True

    def _may_count(self, action: QueueAction, now: datetime) -> bool:
        """Whether a status may be written: at once for what admission asks, else not too often."""
        if not isinstance(action, WriteQueueStatus):
            return True
        last = self._counted.get(action.key)
        is_urgent = not {"ready", "conditions"}.isdisjoint(action.fields)
        pause = timedelta(seconds=self.params.count_seconds)
        if last is not None and not is_urgent and now - last < pause:
            return False
        self._counted[action.key] = now
        return True

    def _is_recent(self, at: datetime, now: datetime) -> bool:
        return now - at < timedelta(seconds=self.params.retry_seconds)

    # What comes in, by kind.

    def _run_changed(self, change: Change[QueuedRun]) -> None:
        key, run = RunKey(*change.key), change.new
        before = self._runs.pop(key, None)
        if before is not None and (run is None or run.owner.uid != before.owner.uid):
            self._went_on.discard(before.owner.uid)
        if run is None or run.end is not None:
            # A run that is tried again after its end comes back as one that is held.
            return
        if run.is_held and before is not None and before.is_active and before.has_begun:
            self._went_on.add(run.owner.uid)
        elif not run.is_held:
            self._went_on.discard(run.owner.uid)
        self._runs[key] = run

    def _policy_changed(self, change: Change[PlacementPolicy]) -> None:
        self._policy = change.new.spec if change.new is not None else PlacementPolicySpec()

    def _namespace_changed(self, change: Change[str]) -> None:
        self._labels[change.key[1]] = change.new or ""


def _queue_of(run: QueuedRun) -> QueueKey:
    return QueueKey(run.key.namespace, DEFAULT_QUEUE)


def _as_waiting(run: QueuedRun) -> WaitingRun:
    return WaitingRun(run.key, _queue_of(run), 0, run.submitted_at, _NOTHING)


def _as_admitted(run: QueuedRun) -> AdmittedRun:
    return AdmittedRun(run.key, _queue_of(run), 0, run.submitted_at, _NOTHING)
