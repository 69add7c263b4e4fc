"""Reasons to start a waiting run whatever its queue decides: it must not wait forever."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.liveness import LeaseWatch
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.actions import ReleaseCause
from kfp_placement_controller.queueing.queued_runs import RequestedRun

_REPLACING = timedelta(seconds=5)
"""A RunQueue that has been gone for less may come back: one that is replaced (`kubectl replace
--force`) is deleted and created again."""

_MOST_KEPT = 10
"""Factor by which the memory of a deleted RunQueue is longer than the time for its return."""

_MOST_BACKLOG = 10
"""Factor on a queue's `holdDeadline` for the time that a run waits for a planner that is busy with
other runs; the planner could be busy forever."""


@dataclass(frozen=True)
class PlannerState:
    """State of the planner.

    Attributes:
        age_seconds: time since it was last seen to renew its Lease.
        stale_after_seconds: age at which its Lease says that it is dead.
        listened_since: time from which this process would have noticed what it writes.
        is_known: whether it was seen to renew its Lease, or would have been by now.
        progressed_at: time at which it last said for a further run what the run needs, or None.
    """

    age_seconds: float
    stale_after_seconds: float
    listened_since: datetime
    is_known: bool = True
    progressed_at: datetime | None = None

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
    _led_at: datetime | None = None
    _has_progressed: bool = False
    _progressed_at: datetime | None = None

    def lead(self) -> None:
        """Start again: this process begins to lead."""
        self._led_at = None

    def progressed(self) -> None:
        """Note that the planner has said of a run for the first time what it needs."""
        self._has_progressed = True

    def clock_set(self, step: timedelta) -> None:
        """Adjust remembered times after somebody has set the clock by `step`."""
        self.lease.clock_set(step)
        self._led_at = self._progressed_at = None

    def state(self, stale_after_seconds: float, now: datetime) -> PlannerState:
        """Return how the planner is now.

        Args:
            stale_after_seconds: age at which its Lease says that it is dead.
            now: the time.
        """
        if self._led_at is None:
            self._led_at = now
        age_seconds = self.lease.age_seconds(now)
        # A Lease that was not seen to be renewed may be that of a planner that is long dead.
        is_known = self.lease.has_renewed or age_seconds > stale_after_seconds
        if self._has_progressed:
            self._has_progressed, self._progressed_at = False, now
        return PlannerState(
            age_seconds, stale_after_seconds, self._led_at, is_known, self._progressed_at
        )


@dataclass
class Releases:
    """Decides which runs go on in any case."""

    _namespaces: set[str] = field(default_factory=set)
    _gone: dict[str, datetime] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget when RunQueues were deleted, after somebody has set the clock."""
        self._gone.clear()

    def observe(self, namespaces: Iterable[str], now: datetime) -> None:
        """Take in which namespaces take part now.

        Args:
            namespaces: namespaces that take part, with a RunQueue `default`.
            now: the time.
        """
        taking_part = set(namespaces)
        for gone in self._namespaces - taking_part:
            self._gone.setdefault(gone, now)
        self._namespaces = taking_part
        self._gone = {
            name: at
            for name, at in self._gone.items()
            if name not in taking_part and now - at < _MOST_KEPT * _REPLACING
        }

    def returning(self, now: datetime) -> Sequence[str]:
        """Return the namespaces whose RunQueue was there a moment ago.

        Args:
            now: the time.
        """
        return [name for name, at in self._gone.items() if now - at < _REPLACING]

    def cause(
        self,
        run: RequestedRun,
        queue: ObservedQueue | None,
        planner: PlannerState,
        now: datetime,
    ) -> ReleaseCause | None:
        """Return why a waiting run starts in any case, or None if it still waits.

        Args:
            run: the waiting run.
            queue: RunQueue `default` of its namespace, or None if the namespace takes no part.
            planner: state of the planner.
            now: the time.
        """
        if run.observed.is_terminated:
            return ReleaseCause.TERMINATED
        if run.went_on:
            return ReleaseCause.HAS_BEGUN
        if queue is None:
            gone_at = self._gone.setdefault(run.key.namespace, now)
            return None if now - gone_at < _REPLACING else ReleaseCause.NO_QUEUE
        return _cause_in_queue(run, queue, planner, now)


def _cause_in_queue(
    run: RequestedRun, queue: ObservedQueue, planner: PlannerState, now: datetime
) -> ReleaseCause | None:
    if run.is_to_be_admitted(now):
        return ReleaseCause.REQUESTED
    if run.spec is not None and run.spec.problem:
        return ReleaseCause.UNPLANNABLE
    if queue.holds_without_controller:
        return None
    patience_seconds = queue.spec.hold_deadline_seconds
    if planner.age_seconds > planner.stale_after_seconds + patience_seconds:
        return ReleaseCause.PLANNER_DOWN
    if run.demand is None and not (run.spec and run.spec.unschedulable):
        since = max(run.waiting_since(now), planner.listened_since)
        if planner.progressed_at is not None:
            # The last of a thousand new runs is planned after minutes: it must not pass its quota.
            latest = since + timedelta(seconds=_MOST_BACKLOG * patience_seconds)
            since = max(since, min(planner.progressed_at, latest))
        if (now - since).total_seconds() > patience_seconds:
            return ReleaseCause.NO_DEMAND
    return None
