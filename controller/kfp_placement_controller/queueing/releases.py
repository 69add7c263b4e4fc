"""Why a run that waits goes on whatever its queue decides: nothing waits for what cannot come."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.actions import ReleaseCause
from kfp_placement_controller.queueing.queued_runs import KnownRun


@dataclass(frozen=True)
class PlannerState:
    """How the planner is.

    Attributes:
        age_seconds: since it was last seen to renew its Lease.
        stale_after_seconds: after which that is too long.
        listened_since: since when we would have heard of what it says.
        is_known: whether it was seen to renew its Lease, or would have been by now.
    """

    age_seconds: float
    stale_after_seconds: float
    listened_since: datetime
    is_known: bool = True

    @property
    def problem(self) -> str:
        """Why nobody says what runs need; "" = somebody does, or it is not known yet."""
        if self.age_seconds <= self.stale_after_seconds:
            return ""
        return f"no planner has renewed its Lease for {self.stale_after_seconds:g} s"


@dataclass
class Releases:
    """Decides which runs go on in any case.

    Attributes:
        replacing_seconds: a RunQueue that has been gone for less may come back: one that is
            replaced (`kubectl replace --force`) is deleted and created again.
    """

    replacing_seconds: float = 5.0
    _without_queue: dict[str, datetime] = field(default_factory=dict)

    def cause(
        self,
        known: KnownRun,
        queue: ObservedQueue | None,
        planner: PlannerState,
        now: datetime,
        *,
        has_pods: bool = False,
    ) -> ReleaseCause | None:
        """Why a waiting run goes on in any case; None = it waits on.

        Args:
            known: it waits.
            queue: by which its namespace takes part; None = it does not.
            planner: as it is now.
            now: the time.
            has_pods: whether pods of it are on nodes.
        """
        if known.run.is_terminated:
            return ReleaseCause.TERMINATED
        if known.went_on or (known.run.is_held and known.run.has_begun and has_pods):
            return ReleaseCause.HAS_BEGUN
        if queue is None:
            return ReleaseCause.NO_QUEUE if self._is_gone(known.key.namespace, now) else None
        self._without_queue.pop(known.key.namespace, None)
        return _cause_in_queue(known, queue, planner, now)

    def _is_gone(self, namespace: str, now: datetime) -> bool:
        """Whether a queue that is not there will not come back."""
        since = self._without_queue.setdefault(namespace, now)
        return now - since >= timedelta(seconds=self.replacing_seconds)


def _cause_in_queue(
    known: KnownRun, queue: ObservedQueue, planner: PlannerState, now: datetime
) -> ReleaseCause | None:
    if known.is_to_be_admitted(now):
        return ReleaseCause.REQUESTED
    if known.spec is not None and known.spec.problem:
        return ReleaseCause.UNPLANNABLE
    if queue.holds_without_controller:
        return None
    patience_seconds = queue.spec.hold_deadline_seconds
    if planner.age_seconds > planner.stale_after_seconds + patience_seconds:
        return ReleaseCause.PLANNER_DOWN
    if known.demand is None and not (known.spec and known.spec.unschedulable):
        since = max(known.waiting_since(now), planner.listened_since)
        if (now - since).total_seconds() > patience_seconds:
            return ReleaseCause.NO_DEMAND
    return None
