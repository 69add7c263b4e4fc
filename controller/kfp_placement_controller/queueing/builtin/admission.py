"""Which waiting runs may go: the whole decision, from nothing but what it is given."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.runs import (
    NO_RULES,
    AdmittedRun,
    NodeRoom,
    QueueRules,
    WaitingRun,
)
from kfp_placement_controller.queueing.verdicts import GIVEN_BACK, Lack, Verdict
from kfp_placement_engine.model.keys import QueueKey, RunKey

_SECONDS_PER_HOUR = 3600.0


def decide(
    waiting: Iterable[WaitingRun],
    admitted: Sequence[AdmittedRun],
    rules: Mapping[QueueKey, QueueRules],
    nodes: Sequence[NodeRoom],
    now: datetime,
) -> list[Verdict]:
    """Decide who may go.

    Runs are tried in order. A run that does not fit waits and stops nobody behind it (backfill),
    unless other runs were suspended for it, and it fits once they have stopped.

    Args:
        waiting: runs that are held.
        admitted: runs that take room, also where they take more than they should.
        rules: of the queues; a queue without rules has those of an empty RunQueue.
        nodes: the cluster; while it has no node, only runs that need nothing may go.
        now: the time.

    Returns:
        A verdict for each waiting run, in the order in which they were tried.
    """
    runs = in_order(waiting, rules, now)
    reservations = Reservations(admitted, rules, nodes, runs)
    lacks: dict[RunKey, tuple[Lack, ...]] = {}
    taking: list[WaitingRun] = []
    for run in runs:
        lacks[run.key] = reservations.lacks(run)
        if (
            not lacks[run.key]
            or (run.has_victims and _fits_later(run, taking, admitted, rules, nodes))
            or (_has_waited_long(run, rules, now) and lacks[run.key][0].rule in GIVEN_BACK)
        ):
            reservations.take(run)
            taking.append(run)
    left = Counter(run.queue for run in runs if lacks[run.key])
    positions: Counter[QueueKey] = Counter()
    verdicts = []
    for run in runs:
        if not lacks[run.key]:
            verdicts.append(Verdict(run.key))
            continue
        positions[run.queue] += 1
        verdicts.append(Verdict(run.key, lacks[run.key], positions[run.queue], left[run.queue]))
    return verdicts


def _has_waited_long(run: WaitingRun, rules: Mapping[QueueKey, QueueRules], now: datetime) -> bool:
    """Whether a run has waited long enough for room to be kept for it."""
    limit = rules.get(run.queue, NO_RULES).reserve_after_seconds
    return not run.stands_back and (now - run.submitted_at).total_seconds() >= limit


def _fits_later(
    run: WaitingRun,
    taking: Iterable[WaitingRun],
    admitted: Iterable[AdmittedRun],
    rules: Mapping[QueueKey, QueueRules],
    nodes: Sequence[NodeRoom],
) -> bool:
    """Whether a run fits once those have stopped that were asked to."""
    staying = [each for each in admitted if not each.suspended]
    later = Reservations(staying, rules, nodes, [*taking, run])
    for each in taking:
        later.take(each)
    return not later.lacks(run)


def in_order(
    waiting: Iterable[WaitingRun], rules: Mapping[QueueKey, QueueRules], now: datetime
) -> list[WaitingRun]:
    """Runs as they are tried: by priority, which grows while they wait, then as submitted."""

    def place(run: WaitingRun) -> tuple[bool, float, datetime, RunKey]:
        rule = rules.get(run.queue, NO_RULES)
        hours = max(0.0, (now - run.submitted_at).total_seconds()) / _SECONDS_PER_HOUR
        priority = rule.allowed_priority(run.priority) + rule.aging_per_hour * hours
        return run.stands_back, -priority, run.submitted_at, run.key

    return sorted(waiting, key=place)
