"""What queues may still hold while those who admit runs are silent; decided by the last resort.

That is a job that remembers nothing between two of its runs: what it has to remember is in the
status of the RunQueue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.conditions import ConditionFinding, condition_dicts
from kfp_placement_controller.queueing.queue_status import READY

NO_LEASE = "NoLease"
LEASE_STALE = "LeaseStale"
"""Reasons of the condition `Ready`."""

BY_HAND = ConditionFinding(READY, False, "Released", "somebody has released all runs")
"""What a queue says whose runs are released by hand, until it is ready again."""


class Holding(Enum):
    """Which runs may be held."""

    ALL = auto()
    """New ones, and those that wait."""

    WAITING = auto()
    """Those that wait; new ones begin."""

    NONE = auto()
    """None."""


@dataclass(frozen=True)
class Silence:
    """When those who admit runs were last heard of, by their Leases.

    Attributes:
        renewed_at: the earliest of the times at which the Leases were renewed last, whether or not
            somebody holds them now: at every orderly restart one is given back, and nobody holds
            it for some seconds. None = no Lease says.
        missing: Leases that there are none of, or that do not say when they were renewed.
    """

    renewed_at: datetime | None = None
    missing: Sequence[str] = ()


def holding(
    queue: ObservedQueue | None, silence: Silence, stale_after: timedelta, now: datetime
) -> Holding:
    """Which runs a queue may still hold.

    Of a Lease that is missing nobody knows for how long it has been. It may have been deleted a
    second ago, and its owner makes it again. So the deadline starts when that is first seen, which
    the condition `Ready` says.

    Args:
        queue: by which a namespace takes part; None = its runs are held, and there is no queue.
        silence: of those who admit runs.
        stale_after: the age at which a Lease says that its owner is dead.
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


def closing(silence: Silence) -> ConditionFinding:
    """Why a queue may hold no new runs."""
    if silence.missing:
        names = " and ".join(silence.missing)
        note = f"there is no Lease {names}; new runs begin, and those that wait after holdDeadline"
        return ConditionFinding(READY, False, NO_LEASE, note)
    note = "a Lease is stale; new runs begin, and those that wait after holdDeadline"
    return ConditionFinding(READY, False, LEASE_STALE, note)


def closing_patch(
    queue: ObservedQueue, finding: ConditionFinding, now: datetime
) -> dict[str, Any] | None:
    """The status of a queue that may hold no new runs; None = it says so.

    Args:
        queue: as it is.
        finding: why.
        now: the time.
    """
    is_new = finding.reason == NO_LEASE and _missed_at(queue) is None
    if queue.status.ready is not True and not is_new:
        return None
    # The deadline counts from here, even if the queue was not ready for other reasons before.
    known = [each for each in queue.status.conditions if not (is_new and each.type == READY)]
    conditions = condition_dicts([finding], known, queue.generation, now)
    return {"ready": False, **({} if conditions is None else {"conditions": conditions})}


def _missed_at(queue: ObservedQueue) -> datetime | None:
    """When a Lease was first seen to be missing; None = it has not been before."""
    ready = queue.status.condition(READY)
    is_known = ready is not None and ready.status == "False" and ready.reason == NO_LEASE
    return ready.last_transition_time if ready is not None and is_known else None
