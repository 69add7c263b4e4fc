"""Why a run that waits goes on whatever its queue decides: nothing waits for what cannot come."""

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
"""How many times longer than it may return a RunQueue that is gone is remembered."""

_MOST_BACKLOG = 10
"""How many times longer than its queue says a run waits for a planner that says what others need.
It could say so of others forever."""


@dataclass(frozen=True)
class PlannerState:
    """How the planner is.

    Attributes:
        age_seconds: since it was last seen to renew its Lease.
        stale_after_seconds: after which that is too long.
        listened_since: since when we would have heard of what it says.
        is_known: whether it was seen to renew its Lease, or would have been by now.
        progressed_at: when it last said of a run for the first time what it needs; None = not yet.
    """

    age_seconds: float
    stale_after_seconds: float
    listened_since: datetime
    is_known: bool = True
    progressed_at: datetime | None = None

    @property
    def problem(self) -> str:
        """Why nobody says what runs need; "" = somebody does, or it is not known yet."""
        if self.age_seconds <= self.stale_after_seconds:
            return ""
        return f"no planner has renewed its Lease for {self.stale_after_seconds:g} s"


@dataclass
class PlannerWatch:
    """Tells whether a planner is there to say what runs need, since our process leads.

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
        """When RunQueues were last seen is not known any more: the clock was set."""
        self._gone.clear()

    def observe(self, namespaces: Iterable[str], now: datetime) -> None:
        """These namespaces take part.

        Args:
            namespaces: by their RunQueue `default`.
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
        """Namespaces whose RunQueue was there a moment ago.

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
        """Why a waiting run goes on in any case; None = it waits on.

        Args:
            run: it waits.
            queue: by which its namespace takes part; None = it does not.
            planner: as it is now.
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
            # Of a thousand new runs the last is planned after minutes: it must not pass its quota.
            latest = since + timedelta(seconds=_MOST_BACKLOG * patience_seconds)
            since = max(since, min(planner.progressed_at, latest))
        if (now - since).total_seconds() > patience_seconds:
            return ReleaseCause.NO_DEMAND
    return None
