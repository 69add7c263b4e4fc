"""Decision of the job `release` about the runs that queues may hold while we are silent.

The job remembers nothing between two of its runs: what it must remember is in the status of the
RunQueue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.statuses.conditions import changed_conditions
from kfp_placement_controller.queueing.statuses.queue_status import READY
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_kube.kinds import JsonObject

NO_LEASE = "NoLease"
LEASE_STALE = "LeaseStale"
"""Reasons of the condition `Ready` of a queue that may hold no new runs."""

BY_HAND = ConditionFinding(READY, False, "Released", "somebody has released all runs")
"""Condition of a queue whose runs were released by hand, until `queue` opens it again."""


class Holding(Enum):
    """Runs that a queue may hold: all, only those that already wait, or none."""

    ALL = auto()
    WAITING = auto()
    NONE = auto()


@dataclass(frozen=True)
class Silence:
    """Last sign of life of `plan` and `queue`, by their Leases.

    Attributes:
        renewed_at: earliest of the times at which the Leases were last renewed, or None if no Lease
            has such a time. Whether somebody holds them now does not matter: at an orderly restart
            a Lease is given back, and nobody holds it for some seconds.
        missing: names of Leases that do not exist, or that have no time of renewal.
    """

    renewed_at: datetime | None = None
    missing: Sequence[str] = ()


def holding(
    queue: ObservedQueue | None, silence: Silence, stale_after: timedelta, now: datetime
) -> Holding:
    """Return which runs a queue may still hold.

    Nobody knows since when a missing Lease is missing. It may have been deleted a second ago, and
    its owner creates it again. So the deadline starts when the job first sees that it is missing,
    which the condition `Ready` remembers.

    Args:
        queue: RunQueue `default` of a namespace, or None where runs are held and there is none.
        silence: last sign of life of `plan` and `queue`.
        stale_after: age at which a Lease means that its owner is dead.
        now: the time.
    """
    age = timedelta(0) if silence.renewed_at is None else now - silence.renewed_at
    if age <= stale_after and not silence.missing:
        return Holding.ALL
    if queue is None:
        return Holding.NONE
    if queue.holds_without_controller:
        return Holding.ALL
    deadline = timedelta(seconds=queue.spec.hold_deadline_seconds)
    missed_at = _missed_at(queue) if silence.missing else None
    is_over = missed_at is not None and now - missed_at > deadline
    return Holding.NONE if is_over or age > stale_after + deadline else Holding.WAITING


def closed_condition(silence: Silence) -> ConditionFinding:
    """Return the condition `Ready` of a queue that may hold no new runs."""
    if silence.missing:
        names = " and ".join(silence.missing)
        note = f"there is no Lease {names}; new runs begin, and those that wait after holdDeadline"
        return ConditionFinding(READY, False, NO_LEASE, note)
    note = "a Lease is stale; new runs begin, and those that wait after holdDeadline"
    return ConditionFinding(READY, False, LEASE_STALE, note)


def closing_patch(
    queue: ObservedQueue, finding: ConditionFinding, now: datetime
) -> JsonObject | None:
    """Return the status to write for a queue that may hold no new runs, or None if it has that.

    Args:
        queue: the queue as it is.
        finding: condition `Ready` that it must have.
        now: the time.
    """
    is_new = finding.reason == NO_LEASE and _missed_at(queue) is None
    if queue.status.ready is not True and not is_new:
        return None
    # The deadline counts from here, even if the queue was not ready for other reasons before.
    others = [each for each in queue.status.conditions if not (is_new and each.type == READY)]
    conditions = changed_conditions([finding], others, queue.generation, now)
    return {"ready": False, **({} if conditions is None else {"conditions": conditions})}


def _missed_at(queue: ObservedQueue) -> datetime | None:
    """Return when a Lease was first seen to be missing, or None if that is new."""
    ready = queue.status.condition(READY)
    is_known = ready is not None and ready.status == "False" and ready.reason == NO_LEASE
    return ready.last_transition_time if ready is not None and is_known else None
