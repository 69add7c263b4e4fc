"""Decision about which waiting runs may start: a function of runs, rules and nodes."""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.runs import (
    NO_RULES,
    AdmittedRun,
    Rules,
    WaitingRun,
    rules_in_use,
)
from kfp_placement_controller.queueing.verdicts import (
    TAKEN_BY_OTHERS,
    Lack,
    Rule,
    TriedRun,
    Verdict,
    verdicts_of,
)
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources

_SECONDS_PER_HOUR = 3600.0


def waiting_verdicts(
    waiting: Iterable[WaitingRun],
    admitted: Sequence[AdmittedRun],
    rules: Rules,
    nodes: Sequence[Resources],
    now: datetime,
) -> list[Verdict]:
    """Return a verdict for each waiting run: whether it may start, or why not.

    Runs are tried in turns. A run that does not fit waits and stops nobody behind it (backfill),
    unless room is kept for it: because other runs were suspended for it and it fits once they have
    stopped, or because it has waited long. Behind it are only runs whose queues would have a larger
    share with them than its queue with it, so nobody gets room kept at the cost of a queue that
    takes less.

    Args:
        waiting: runs that are held.
        admitted: runs that take room, also where they take more than they should.
        rules: rules of the queues; a queue that is missing has `NO_RULES`.
        nodes: the cluster; while it has no node, only runs that need nothing may go.
        now: the time.

    Returns:
        The verdicts, in the order in which the runs were tried.
    """
    ordered = in_order(waiting, rules, now)
    rules = rules_in_use(rules, ordered, admitted)
    reservations = Reservations(admitted, rules, nodes, ordered)
    runs: list[WaitingRun] = []
    # Room is kept for one run of each queue that has waited long, and for one of the cluster. Only
    # the missing kind of room is kept: a run that waits for its queue's quota must not keep other
    # queues from the cluster.
    kept: set[QueueKey | None] = set()
    lacks: dict[RunKey, tuple[Lack, ...]] = {}
    taking: list[WaitingRun] = []
    later: Reservations | None = None
    for run in _turns(ordered, reservations):
        runs.append(run)
        missing = lacks[run.key] = reservations.lacks(run)
        takes = not missing
        if missing and run.has_victims:
            if later is None:
                later = _without_suspended(taking, admitted, rules, nodes, ordered)
            takes = not later.lacks(run)
        if not takes and missing[0].rule in TAKEN_BY_OTHERS:
            of_quota = missing[0].rule is Rule.QUOTA
            place = run.queue if of_quota else None
            if place not in kept and _has_its_turn(run, rules, now):
                kept.add(place)
                takes = not of_quota
                if of_quota:
                    reservations.take_quota(run)
        if takes:
            reservations.take(run)
            taking.append(run)
            if later is not None:
                later.take(run)
    keeping = {run.key for run in taking}
    return verdicts_of([TriedRun(run.key, run.queue, lacks[run.key]) for run in runs], keeping)


def _turns(ordered: Iterable[WaitingRun], reservations: Reservations) -> Iterator[WaitingRun]:
    """Yield runs in turns: next is the namespace with the smallest share if its first run starts.

    What has been decided about a run must be in the reservations when the next is asked for. A
    priority that an administrator lets count across namespaces takes precedence over shares;
    between equal shares the submission decides.
    """
    left = defaultdict[str, deque[WaitingRun]](deque)
    for run in ordered:
        left[run.queue.namespace].append(run)

    def turn(namespace: str) -> tuple[bool, int, float, datetime, RunKey, str]:
        run = left[namespace][0]
        share = reservations.share(run.queue, run.demand.peak)
        return run.goes_last, -run.across_priority, share, run.submitted_at, run.key, namespace

    turns = [turn(namespace) for namespace in left]
    heapq.heapify(turns)
    while turns:
        namespace = heapq.heappop(turns)[-1]
        yield left[namespace].popleft()
        if left[namespace]:
            heapq.heappush(turns, turn(namespace))


def _has_its_turn(run: WaitingRun, rules: Rules, now: datetime) -> bool:
    """Return whether a run has waited long enough by now for room to be kept for it.

    Room is kept for one period of `reserve_after_seconds`, then not for the next, and so on: what
    the run waits for may never come, and runs behind it must not wait forever.
    """
    reserve_after = rules.get(run.queue, NO_RULES).reserve_after_seconds
    waited_seconds = max(0.0, (now - run.submitted_at).total_seconds())
    return not run.goes_last and int(waited_seconds // reserve_after) % 2 == 1


def _without_suspended(
    taking: Iterable[WaitingRun],
    admitted: Iterable[AdmittedRun],
    rules: Rules,
    nodes: Sequence[Resources],
    waiting: Iterable[WaitingRun],
) -> Reservations:
    """Return the reservations once all suspended runs have stopped."""
    staying = [each for each in admitted if not each.suspended]
    later = Reservations(staying, rules, nodes, waiting)
    for each in taking:
        later.take(each)
    return later


def interleaved(runs: Iterable[WaitingRun]) -> list[WaitingRun]:
    """Return runs by turns of their namespaces: the first of each, then the second, and so on."""
    seen = Counter[str]()
    rounds: list[tuple[int, WaitingRun]] = []
    for run in runs:
        rounds.append((seen[run.queue.namespace], run))
        seen[run.queue.namespace] += 1
    return [run for _, run in sorted(rounds, key=itemgetter(0))]


def in_order(waiting: Iterable[WaitingRun], rules: Rules, now: datetime) -> list[WaitingRun]:
    """Return runs in order: by priority, which grows while they wait, then by age."""

    def place(run: WaitingRun) -> tuple[bool, float, datetime, RunKey]:
        hours = max(0.0, (now - run.submitted_at).total_seconds()) / _SECONDS_PER_HOUR
        priority = run.priority + rules.get(run.queue, NO_RULES).aging_per_hour * hours
        return run.goes_last, -priority, run.submitted_at, run.key

    return sorted(waiting, key=place)
