"""Who may run and who must make room, of all runs at one moment: the built-in queue."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement_controller.queueing.admission import decide
from kfp_placement_controller.queueing.cluster_room import ClusterRoom
from kfp_placement_controller.queueing.preemption import preempted
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.runs import NO_RULES, AdmittedRun, NodeRoom, WaitingRun
from kfp_placement_controller.queueing.verdicts import Rule, Verdict
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.model.resources import Resources, add_to

BY_REQUEST = "request"
"""What a run makes room for that somebody has asked to stop: it lets all others go first."""

MOST_PREEMPTORS = 20
"""Waiting runs for which others may be preempted that are looked at each time."""

_PREEMPTING_RULES = frozenset({Rule.QUOTA, Rule.CAPACITY, Rule.GANGS})
"""What a run lacks that others could give back."""

_NOTHING = Demand()


@dataclass(frozen=True)
class Situation:
    """All that a decision depends on.

    Attributes:
        waiting: runs to decide about, whose demand is known.
        admitted: runs that may run.
        draining: what the pods of runs take that were preempted and still have some.
        queues: the RunQueues.
        nodes: what the cluster has for runs.
    """

    waiting: Sequence[KnownRun]
    admitted: Sequence[KnownRun]
    draining: Mapping[RunKey, tuple[KnownRun, Resources]]
    queues: RunQueues
    nodes: Sequence[NodeRoom]


def situation_of(
    waiting: Iterable[KnownRun],
    admitted: Sequence[KnownRun],
    queues: RunQueues,
    room: ClusterRoom,
) -> Situation:
    """Of all runs at one moment.

    Args:
        waiting: runs that wait, whether it is known what they need or not.
        admitted: runs that may run, those that are just being let run included.
        queues: the RunQueues.
        room: the cluster.
    """
    draining = {}
    deciding = []
    for known in waiting:
        taken = room.load.of_run(known.key) if known.run.is_preempted else {}
        if taken.get("pods"):
            draining[known.key] = (known, taken)
        elif known.demand is not None or (known.spec and known.spec.unschedulable):
            deciding.append(known)
    counted = {each.key for each in (*admitted, *deciding) if each.demand is not None}
    return Situation(deciding, admitted, draining, queues, room.rooms(counted | draining.keys()))


@dataclass(frozen=True)
class Decisions:
    """What follows from it.

    Attributes:
        verdicts: of the waiting runs.
        preempted: runs to suspend, and the run that each makes room for.
        used: what admitted runs demand, by queue.
    """

    verdicts: Mapping[RunKey, Verdict] = field(default_factory=dict)
    preempted: Mapping[RunKey, RunKey] = field(default_factory=dict)
    used: Mapping[QueueKey, Resources] = field(default_factory=dict)


def decisions(situation: Situation, now: datetime) -> Decisions:
    """Decide about all waiting runs, and about one for which others must stop.

    Args:
        situation: of all runs.
        now: the time.
    """
    queues, nodes = situation.queues, situation.nodes
    rules = queues.rules()
    draining = situation.draining.values()
    preemptors = {known.run.preempted_for for known, _ in draining}
    preemptors |= {known.run.preempted_for for known in situation.waiting}
    waiting = [_as_waiting(known, queues, preemptors) for known in situation.waiting]
    admitted = [_as_admitted(known, queues) for known in situation.admitted]
    admitted += [_as_draining(known, taken, queues) for known, taken in draining]
    verdicts = decide(waiting, admitted, rules, nodes, now)
    by_key = {run.key: run for run in waiting}
    stuck = [
        by_key[each.key]
        for each in verdicts
        if each.missing and each.missing[0].rule in _PREEMPTING_RULES
    ]
    used: dict[QueueKey, Counter[str]] = {}
    for run in admitted:
        add_to(used.setdefault(run.queue, Counter()), run.demand.peak)
    let = [by_key[each.key] for each in verdicts if each.is_admitted]
    taking = [*admitted, *(_taking(run, now) for run in let)]
    return Decisions(
        verdicts={each.key: each for each in verdicts},
        preempted=_preempted(stuck, taking, {run.key for run in let}, queues, nodes),
        used=used,
    )


def _preempted(
    stuck: Sequence[WaitingRun],
    taking: Sequence[AdmittedRun],
    let: Collection[RunKey],
    queues: RunQueues,
    nodes: Sequence[NodeRoom],
) -> dict[RunKey, RunKey]:
    """Whom the first of the runs that wait, and can, makes stop."""
    rules = queues.rules()

    def priority(run: WaitingRun | AdmittedRun) -> int:
        return rules.get(run.queue, NO_RULES).allowed_priority(run.priority)

    lowest = min((priority(run) for run in taking if not run.suspended), default=None)
    if lowest is None:
        return {}
    stuck = [run for run in stuck if priority(run) > lowest]
    for run in stuck[:MOST_PREEMPTORS]:
        victims = preempted(run, taking, rules, nodes)
        # Those that are only being let run now have nothing to give back yet.
        if victims and not set(victims) & set(let):
            return dict.fromkeys(victims, run.key)
    return {}


def _as_waiting(known: KnownRun, queues: RunQueues, preemptors: Collection[str]) -> WaitingRun:
    return WaitingRun(
        key=known.key,
        queue=queues.of_run(known.key.namespace, known.queue_name),
        priority=known.priority,
        submitted_at=known.run.submitted_at,
        demand=known.demand or _NOTHING,
        unschedulable="" if known.spec is None else known.spec.unschedulable,
        has_victims=known.run.owner.uid in preemptors,
        stands_back=known.run.preempted_for == BY_REQUEST,
    )


def _as_admitted(known: KnownRun, queues: RunQueues) -> AdmittedRun:
    return AdmittedRun(
        key=known.key,
        queue=queues.of_run(known.key.namespace, known.queue_name),
        priority=known.priority,
        admitted_at=known.admitted_at,
        demand=known.demand or _NOTHING,
    )


def _as_draining(known: KnownRun, taken: Resources, queues: RunQueues) -> AdmittedRun:
    """A preempted run whose pods end: its reservation is what these take."""
    gangs = () if known.demand is None else known.demand.gangs
    run = _as_admitted(known, queues)
    return replace(run, demand=Demand(peak=taken, gangs=gangs), suspended=True)


def _taking(run: WaitingRun, now: datetime) -> AdmittedRun:
    return AdmittedRun(run.key, run.queue, run.priority, now, run.demand)
