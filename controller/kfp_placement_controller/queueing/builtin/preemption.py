"""Whom to suspend so that a run of higher priority can go."""

from collections.abc import Mapping, Sequence

from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.runs import (
    NO_RULES,
    AdmittedRun,
    NodeRoom,
    QueueRules,
    WaitingRun,
)
from kfp_placement_engine.model.keys import QueueKey, RunKey


def preempted(
    run: WaitingRun,
    admitted: Sequence[AdmittedRun],
    rules: Mapping[QueueKey, QueueRules],
    nodes: Sequence[NodeRoom],
) -> list[RunKey]:
    """The runs to suspend so that a waiting run can go; no one of them could be left out.

    Of lower priorities only: the lowest first, of these the latest admission. Priorities are
    compared as queues allow them, not aged: else runs of one priority would suspend each other in
    turn. Runs that are suspended already count as gone.

    Args:
        run: it waits; asked about one at a time, the first in the order that is not admitted.
        admitted: runs that take room.
        rules: of the queues.
        nodes: the cluster.

    Returns:
        Nobody if it fits as soon as those already suspended are gone, or if it would not fit then.
    """

    def priority(each: WaitingRun | AdmittedRun) -> int:
        return rules.get(each.queue, NO_RULES).allowed_priority(each.priority)

    staying = [each for each in admitted if not each.suspended]
    lower = [each for each in staying if each.may_be_suspended and priority(each) < priority(run)]
    lower.sort(key=lambda each: (-priority(each), each.admitted_at, each.key), reverse=True)
    reservations = Reservations(staying, rules, nodes, [run])
    released: list[AdmittedRun] = []
    while reservations.lacks(run):
        if len(released) == len(lower):
            return []
        released.append(lower[len(released)])
        reservations.release(released[-1])
    victims = []
    # Some made room where it was not lacking: whoever can stay does, those released last first.
    for each in reversed(released):
        reservations.reserve(each)
        if reservations.lacks(run):
            reservations.release(each)
            victims.append(each.key)
    return victims[::-1]
