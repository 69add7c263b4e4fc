"""Reasons to start a waiting run whatever its queue decides: it must not wait forever."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.liveness import LeaseWatch
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.pauses import lasting, lasts
from kfp_placement_controller.queueing.actions import ReleaseCause
from kfp_placement_controller.queueing.requested_run import RequestedRun

_REPLACING_SECONDS = 5.0
"""A RunQueue that has been gone for less may come back: one that is replaced (`kubectl replace
--force`) is deleted and created again."""

_MOST_KEPT = 10
"""Factor by which the memory of a deleted RunQueue is longer than the time for its return."""

_LEAST_PATIENCE_SECONDS = 10.0
"""Shortest time that a run waits for a living planner, whatever its RunQueue says.

Where runs are many, the planner may take seconds until it has seen the last one.
"""

_MOST_BACKLOG = 11
"""Factor on a queue's `holdDeadline` for the time that a run waits for a planner that is busy with
other runs; the planner could be busy forever."""


@dataclass(frozen=True)
class PlannerState:
    """State of the planner.

    Attributes:
        age_seconds: time since it was last seen to renew its Lease.
        stale_after_seconds: age at which its Lease says that it is dead.
        is_known: whether it was seen to renew its Lease, or would have been by now.
        progress_age_seconds: time since it last said for a further run what the run needs, or None
            if it has not yet.
    """

    age_seconds: float
    stale_after_seconds: float
    is_known: bool = True
    progress_age_seconds: float | None = None

    @property
    def problem(self) -> str:
        """Reason why nobody says what runs need, or "" while the planner's Lease is not stale."""
        if self.age_seconds <= self.stale_after_seconds:
            return ""
        return f"no planner has renewed its Lease for {self.stale_after_seconds:g} s"


@dataclass
class PlannerWatch:
    """Observed Lease and progress of the planner.

    Attributes:
        lease: Lease of the planner.
    """

    lease: LeaseWatch = field(default_factory=LeaseWatch)
    _progressed_at: float | None = None

    def progressed(self, monotonic_seconds: float) -> None:
        """Note that the planner has said of a run for the first time what it needs."""
        self._progressed_at = monotonic_seconds

    def state(self, stale_after_seconds: float, monotonic_seconds: float) -> PlannerState:
        """Return how the planner is now.

        Args:
            stale_after_seconds: age at which its Lease says that it is dead.
            monotonic_seconds: the present moment.
        """
        age_seconds = self.lease.age_seconds(monotonic_seconds)
        # A Lease that was not seen to be renewed may be that of a planner that is long dead.
        is_known = self.lease.has_renewed or age_seconds > stale_after_seconds
        progressed_at = self._progressed_at
        progress_age_seconds = None if progressed_at is None else monotonic_seconds - progressed_at
        return PlannerState(age_seconds, stale_after_seconds, is_known, progress_age_seconds)


@dataclass
class Releases:
    """Decides which runs go on in any case.

    Attributes:
        monotonic: monotonic clock, in seconds.
    """

    monotonic: Callable[[], float]
    _namespaces: set[str] = field(default_factory=set)
    _gone: dict[str, float] = field(default_factory=dict)
    _waiting: dict[str, float] = field(default_factory=dict)
    """Runs that waited at the last decision, by uid, and the first sight of each."""
    _still_waiting: dict[str, float] = field(default_factory=dict)
    """Runs that wait at this decision, likewise."""

    def lead(self) -> None:
        """Forget how long runs have waited: while others led, we did not hear of their needs."""
        self._waiting, self._still_waiting = {}, {}

    def observe(self, namespaces: Iterable[str]) -> None:
        """Take in which namespaces take part now, before `cause` is asked for each run.

        Args:
            namespaces: namespaces that take part, with a RunQueue `default`.
        """
        monotonic_seconds, taking_part = self.monotonic(), set(namespaces)
        self._waiting, self._still_waiting = self._still_waiting, {}
        for gone in self._namespaces - taking_part:
            self._gone.setdefault(gone, monotonic_seconds)
        self._namespaces = taking_part
        kept = lasting(_MOST_KEPT * _REPLACING_SECONDS, self._gone, monotonic_seconds)
        self._gone = {name: at for name, at in kept.items() if name not in taking_part}

    def returning(self) -> Sequence[str]:
        """Return the namespaces whose RunQueue was there a moment ago."""
        return [*lasting(_REPLACING_SECONDS, self._gone, self.monotonic())]

    def cause(
        self, run: RequestedRun, queue: ObservedQueue | None, planner: PlannerState, now: datetime
    ) -> ReleaseCause | None:
        """Return why a waiting run starts in any case, or None if it still waits.

        Call it once for each waiting run between two calls of `observe`: it notes that the run
        waits, and since when its namespace has not taken part.

        Args:
            run: the waiting run.
            queue: RunQueue `default` of its namespace, or None if the namespace takes no part.
            planner: state of the planner.
            now: the time.
        """
        monotonic_seconds, uid = self.monotonic(), run.observed.owner.uid
        since = monotonic_seconds
        # A preempted run whose RunRequest is missing for a moment begins to wait only now.
        if run.stated_wait_start is not None:
            since = self._waiting.get(uid, since)
        self._still_waiting[uid] = since
        if run.observed.is_terminated:
            return ReleaseCause.TERMINATED
        if run.held_by_hand:
            return ReleaseCause.HAS_BEGUN
        if queue is None:
            gone_at = self._gone.setdefault(run.key.namespace, monotonic_seconds)
            is_replaced = lasts(_REPLACING_SECONDS, gone_at, monotonic_seconds)
            return None if is_replaced else ReleaseCause.NO_QUEUE
        return _cause_in_queue(run, queue, planner, now, monotonic_seconds - since)


def _cause_in_queue(
    run: RequestedRun,
    queue: ObservedQueue,
    planner: PlannerState,
    now: datetime,
    waited_seconds: float,
) -> ReleaseCause | None:
    if run.is_to_be_admitted(now):
        return ReleaseCause.REQUESTED
    if queue.holds_without_controller:
        return None
    patience_seconds = queue.spec.hold_deadline_seconds
    if planner.age_seconds > planner.stale_after_seconds + patience_seconds:
        return ReleaseCause.PLANNER_DOWN
    if run.spec is None:
        # The planner says soon of each run that it knows it. What it needs is worked out in its
        # turn: the last of a thousand new runs must not pass its quota.
        age_seconds = planner.progress_age_seconds
        patience_seconds = max(patience_seconds, _LEAST_PATIENCE_SECONDS)
        is_busy = age_seconds is not None and age_seconds <= patience_seconds
        if waited_seconds > patience_seconds * (_MOST_BACKLOG if is_busy else 1):
            return ReleaseCause.NO_DEMAND
    return None
