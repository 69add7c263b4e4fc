"""The built-in queue as a backend: quotas of RunQueues, and the room of the cluster."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions, Stop
from kfp_placement_controller.queueing.builtin.admission import decide
from kfp_placement_controller.queueing.builtin.preemption import preempted
from kfp_placement_controller.queueing.forecast import PlayedQueues
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.runs import NO_RULES, AdmittedRun, NodeRoom, WaitingRun
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.verdicts import GIVEN_BACK
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.model.resources import Resources, add_to

_MOST_COMPARED = 20_000
"""Bounds the work of finding out whom a waiting run can make stop: runs that could, times runs that
would have to."""

_NOTHING = Demand()

_DRAINING_SHARE = 0.1
"""Of a run's time, in which its running steps are taken to end when it is preempted."""


class BuiltinBackend:
    """Decides alone: nobody has to write anything."""

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Decide about all waiting runs, and about one for which others must stop."""
        queues, nodes, rules = situation.queues, situation.nodes, situation.queues.rules()
        known_waiting = [*situation.waiting_in(QueueBackend.BUILTIN)]
        draining = situation.draining.values()
        preemptors = {known.run.preempted_for for known, _ in draining}
        preemptors |= {known.run.preempted_for for known in situation.waiting}
        waiting = [_as_waiting(known, queues, preemptors) for known in known_waiting]
        admitted = [
            _as_admitted(known, queues, now, is_fixed=known.key in situation.fixed)
            for known in situation.admitted
        ]
        admitted += [_as_draining(known, taken, queues, now) for known, taken in draining]
        verdicts = decide(waiting, admitted, rules, nodes, now)
        by_key = {run.key: run for run in waiting}
        stuck = [
            by_key[each.key]
            for each in verdicts
            if each.missing and each.missing[0].rule in GIVEN_BACK
        ]
        used: dict[QueueKey, Counter[str]] = {}
        for run in admitted:
            add_to(used.setdefault(run.queue, Counter()), run.demand.peak)
        let = [by_key[each.key] for each in verdicts if each.is_admitted]
        taking = [*admitted, *(_taking(run, now) for run in let)]
        kept = [_kept(by_key[each.key], now) for each in verdicts if each.keeps_room]
        victims, preemptor = _preempted(
            stuck, taking, kept, {run.key for run in let}, queues, nodes
        )
        uids = {known.key: known.run.owner.uid for known in known_waiting}
        return Decisions(
            verdicts={each.key: each for each in verdicts},
            stops={key: _stop_for(preemptor, uids) for key in victims if preemptor is not None},
            used=used,
            played=(
                PlayedQueues(
                    [by_key[each.key] for each in verdicts if each.missing], taking, rules, nodes
                ),
            ),
        )


def _stop_for(preemptor: RunKey, uids: Mapping[RunKey, str]) -> Stop:
    note = f"suspended: run {preemptor.name} of a higher priority needs the room"
    return Stop(uids[preemptor], note)


def _preempted(
    stuck: Sequence[WaitingRun],
    taking: Sequence[AdmittedRun],
    kept: Sequence[AdmittedRun],
    let: Collection[RunKey],
    queues: RunQueues,
    nodes: Sequence[NodeRoom],
) -> tuple[Sequence[RunKey], RunKey | None]:
    """Whom the first of the runs that wait, and can, makes stop; and which run that is."""
    rules = queues.rules()

    def priority(run: WaitingRun | AdmittedRun) -> int:
        return rules.get(run.queue, NO_RULES).allowed_priority(run.priority)

    lowest = min((priority(run) for run in taking if run.may_be_suspended), default=None)
    if lowest is None:
        return (), None
    stuck = [run for run in stuck if not run.stands_back and priority(run) > lowest]
    most = max(1, _MOST_COMPARED // len(taking))
    for run in stuck[:most]:
        # What others give back must not be kept for somebody else.
        beside = [*taking, *(each for each in kept if each.key != run.key)]
        victims = preempted(run, beside, rules, nodes)
        # Those that are only being let run now have nothing to give back yet.
        if victims and not set(victims) & set(let):
            return victims, run.key
    return (), None


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
        makespan_seconds=known.makespan_seconds,
    )


def _as_admitted(
    known: KnownRun, queues: RunQueues, now: datetime, *, is_fixed: bool = False
) -> AdmittedRun:
    queue = queues.of_run(known.key.namespace, known.queue_name)
    return AdmittedRun(
        key=known.key,
        queue=queue,
        priority=known.priority,
        admitted_at=known.admitted_at,
        demand=known.demand or _NOTHING,
        is_fixed=is_fixed
        or known.run.is_suspended
        or queues.backend_of(queue) != QueueBackend.BUILTIN,
        ends_at=known.ends_at(now),
    )


def _as_draining(
    known: KnownRun, taken: Resources, queues: RunQueues, now: datetime
) -> AdmittedRun:
    """A preempted run whose pods end: its reservation is what these take."""
    gangs = () if known.demand is None else known.demand.gangs
    run = _as_admitted(known, queues, now)
    ends_at = None if run.ends_at is None else now + (run.ends_at - now) * _DRAINING_SHARE
    return replace(run, demand=Demand(peak=taken, gangs=gangs), suspended=True, ends_at=ends_at)


def _kept(run: WaitingRun, now: datetime) -> AdmittedRun:
    """A run that waits, and for which room is kept, as if it had it already."""
    return AdmittedRun(run.key, run.queue, run.priority, now, run.demand, is_fixed=True)


def _taking(run: WaitingRun, now: datetime) -> AdmittedRun:
    return AdmittedRun(
        run.key,
        run.queue,
        run.priority,
        now,
        run.demand,
        ends_at=None
        if run.makespan_seconds is None
        else now + timedelta(seconds=run.makespan_seconds),
    )
