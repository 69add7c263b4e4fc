"""Preemption: which admitted runs are suspended, so that a waiting run can start.

A run stops runs of lower priorities in its own namespace. In others it stops runs of lower
priorities where an administrator lets its priority count there, and runs of queues that take more
than their part of the cluster, while its own queue takes less. A queue never stops a run if it then
has as large a share as the other had, so two queues cannot suspend each other's runs in turn.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kfp_placement_controller.queueing.backend import Stop
from kfp_placement_controller.queueing.builtin.admission import interleaved
from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.runs import AdmittedRun, Rules, WaitingRun
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources

_MOST_COMPARED = 20_000
"""Limit of the pairs (a waiting run, a run with room) that are compared to find runs to suspend."""


def first_preemption(
    stuck: Sequence[WaitingRun],
    taking: Sequence[AdmittedRun],
    kept: Sequence[AdmittedRun],
    uids: Mapping[RunKey, str],
    rules: Rules,
    nodes: Sequence[Resources],
) -> Mapping[RunKey, Stop]:
    """Return the runs to suspend for the first waiting run that can then start; empty for none.

    Args:
        stuck: waiting runs that lack what others take, in order.
        taking: runs that take room. Those that start only now have none to give back yet, and must
            be fixed.
        kept: waiting runs for which room is kept, as if admitted.
        uids: uids of the waiting runs.
        rules: rules of the queues.
        nodes: the cluster.
    """
    most = max(1, _MOST_COMPARED // max(1, len(taking)))
    for run in _hopeful(stuck, taking, rules, nodes, most):
        # The room that suspended runs give back must not be kept for another run.
        beside = [*taking, *(each for each in kept if each.key != run.key)]
        if victims := preempted(run, beside, rules, nodes):
            return {key: Stop(uids[run.key], _note(run, key)) for key in victims}
    return {}


def _note(run: WaitingRun, victim: RunKey) -> str:
    """Return why a run is suspended; it is not told the name of a run of another namespace."""
    if victim.namespace == run.key.namespace:
        return f"suspended: run {run.key.name} of a higher priority needs the room"
    return "suspended: a run of another namespace needs the room"


def _hopeful(
    stuck: Sequence[WaitingRun],
    taking: Sequence[AdmittedRun],
    rules: Rules,
    nodes: Sequence[Resources],
    most: int,
) -> Iterator[WaitingRun]:
    """Yield the runs that may stop others, in turns of their namespaces, up to a limit."""
    victims = _Victims(taking)
    reservations = Reservations(taking, rules, nodes, stuck)
    shares = {queue: reservations.share(queue) for queue in victims.queues}
    for run in interleaved(each for each in stuck if not each.goes_last):
        own_share = reservations.share(run.queue, run.demand.peak)
        if victims.next_of(run, own_share, shares) is not None:
            yield run
            most -= 1
            if not most:
                return


class _Victims:
    """Runs that may be suspended, by queue."""

    def __init__(self, runs: Sequence[AdmittedRun]) -> None:
        self._by_queue = defaultdict[QueueKey, list[AdmittedRun]](list)
        # The last of a queue is its next: that of the lowest priority, then the latest admitted.
        for run in sorted(runs, key=lambda run: (-run.priority, run.admitted_at, run.key)):
            if run.may_be_suspended:
                self._by_queue[run.queue].append(run)

    @property
    def queues(self) -> Sequence[QueueKey]:
        """Return the queues that have such runs."""
        return [queue for queue, runs in self._by_queue.items() if runs]

    def next_of(
        self, run: WaitingRun, own_share: float, shares: Mapping[QueueKey, float]
    ) -> AdmittedRun | None:
        """Return the run to suspend next for a waiting one, or None if it may stop none of these.

        Runs of its own namespace go first, then those of the queue with the largest share.

        Args:
            run: the waiting run.
            own_share: share of its queue with it.
            shares: share of each queue.
        """
        there = (runs[-1] for runs in self._by_queue.values() if runs)
        may = [each for each in there if _may_stop(run, each, own_share, shares[each.queue])]
        return max(may, key=lambda each: _rank(run, each, shares[each.queue]), default=None)

    def remove(self, run: AdmittedRun) -> None:
        """Leave out the next run of a queue from now on."""
        self._by_queue[run.queue].pop()


def _may_stop(run: WaitingRun, each: AdmittedRun, own_share: float, its_share: float) -> bool:
    if each.key.namespace == run.key.namespace:
        return each.priority < run.priority
    if each.across_priority != run.across_priority:
        return each.across_priority < run.across_priority
    return own_share < its_share


def _rank(
    run: WaitingRun, each: AdmittedRun, its_share: float
) -> tuple[bool, int, float, datetime, RunKey]:
    is_own = each.key.namespace == run.key.namespace
    priority = each.priority if is_own else each.across_priority
    return is_own, -priority, 0.0 if is_own else its_share, each.admitted_at, each.key


def preempted(
    run: WaitingRun, admitted: Sequence[AdmittedRun], rules: Rules, nodes: Sequence[Resources]
) -> list[RunKey]:
    """Return the runs to suspend so that a waiting run can start; all of them are needed.

    Waiting does not raise priorities here, as runs of the same priority would otherwise suspend
    each other in turn. Runs that are already suspended count as gone.

    Args:
        run: a waiting run.
        admitted: runs that take room.
        rules: rules of the queues.
        nodes: the cluster.

    Returns:
        Empty if `run` fits as soon as the suspended runs have stopped, or cannot fit at all.
    """
    staying = [each for each in admitted if not each.suspended]
    reservations, victims = Reservations(staying, rules, nodes, [run]), _Victims(staying)
    own_share = reservations.share(run.queue, run.demand.peak)
    shares = {queue: reservations.share(queue) for queue in victims.queues}
    released: list[AdmittedRun] = []
    while reservations.lacks(run):
        each = victims.next_of(run, own_share, shares)
        if each is None:
            return []
        victims.remove(each)
        reservations.release(each)
        released.append(each)
        for queue in shares:
            if queue.namespace == each.queue.namespace:
                shares[queue] = reservations.share(queue)
    stopped = []
    # Some runs give back room that is not needed. Let these stay, starting with the last one.
    for each in reversed(released):
        reservations.reserve(each)
        if reservations.lacks(run):
            reservations.release(each)
            stopped.append(each.key)
    return stopped[::-1]
