"""The built-in queue as a backend: quotas of RunQueues, and the room of the cluster."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions, Stop
from kfp_placement_controller.queueing.builtin.admission import waiting_verdicts
from kfp_placement_controller.queueing.builtin.reservations import Reservations
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.runs import AdmittedRun, Rules, WaitingRun
from kfp_placement_controller.queueing.situation import DrainingRun, Situation
from kfp_placement_controller.queueing.verdicts import TAKEN_BY_OTHERS
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources, add_to
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

_MOST_COMPARED = 20_000
"""Limit of the pairs (a waiting run, a run with room) that are compared to find runs to suspend."""

_DRAINING_SHARE = 0.1
"""Share of a stopped run's remaining time after which its running steps are expected to end."""


class BuiltinBackend:
    """Backend that decides from the situation alone: it has no objects in the cluster."""

    kinds: Collection[Kind] = ()

    def observe(self, kind: Kind, change: Change[Any]) -> None:
        """Ignore the change: this backend observes no kinds."""

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Decide which waiting runs start, and which runs stop for one of the others."""
        nodes, rules = situation.nodes, situation.queues.rules()
        own_runs = [*situation.those_of(situation.waiting, QueueBackend.BUILTIN)]
        draining = situation.draining.values()
        preemptors = {each.run.observed.preempted_for for each in draining}
        preemptors |= {run.observed.preempted_for for run in situation.waiting}
        waiting = {run.key: _as_waiting(run, situation, preemptors) for run in own_runs}
        admitted = [_as_admitted(run, situation, now) for run in situation.admitted]
        admitted += [_as_draining(each, situation, now) for each in draining]
        verdicts = waiting_verdicts(waiting.values(), admitted, rules, nodes, now)
        starting = [waiting[each.key] for each in verdicts if each.is_admitted]
        held = [each for each in verdicts if not each.is_admitted]
        used: dict[QueueKey, Counter[str]] = {}
        for run in admitted:
            add_to(used.setdefault(run.queue, Counter()), run.demand.peak)
        taking = [*admitted, *(run.as_admitted(now) for run in starting)]
        stuck = [waiting[each.key] for each in held if each.missing[0].rule in TAKEN_BY_OTHERS]
        # A run for which room is kept counts as if it were admitted.
        kept = [
            replace(waiting[each.key].as_admitted(now), is_fixed=True)
            for each in held
            if each.keeps_room
        ]
        uids = {run.key: run.observed.owner.uid for run in own_runs}
        new_keys = {run.key for run in starting}
        return Decisions(
            verdicts={each.key: each for each in verdicts},
            stops=_first_preemption(stuck, taking, kept, new_keys, uids, rules, nodes),
            used=used,
            simulations=(
                QueueSimulation([waiting[each.key] for each in held], taking, rules, nodes),
            ),
        )


def _first_preemption(
    stuck: Sequence[WaitingRun],
    taking: Sequence[AdmittedRun],
    kept: Sequence[AdmittedRun],
    starting: Collection[RunKey],
    uids: Mapping[RunKey, str],
    rules: Rules,
    nodes: Sequence[Resources],
) -> Mapping[RunKey, Stop]:
    """Return the runs to suspend for the first waiting run that can then start; empty for none."""
    lowest = min((run.priority for run in taking if run.may_be_suspended), default=None)
    if lowest is None:
        return {}
    stuck = [run for run in stuck if not run.goes_last and run.priority > lowest]
    most = max(1, _MOST_COMPARED // len(taking))
    for run in stuck[:most]:
        # The room that suspended runs give back must not be kept for another run.
        beside = [*taking, *(each for each in kept if each.key != run.key)]
        victims = preempted(run, beside, rules, nodes)
        # Runs that start only now have no room to give back yet.
        if victims and not set(victims) & set(starting):
            note = f"suspended: run {run.key.name} of a higher priority needs the room"
            return dict.fromkeys(victims, Stop(uids[run.key], note))
    return {}


def preempted(
    run: WaitingRun, admitted: Sequence[AdmittedRun], rules: Rules, nodes: Sequence[Resources]
) -> list[RunKey]:
    """Return the runs to suspend so that a waiting run can start; all of them are needed.

    Only runs of lower priorities are suspended: the lowest first, and of equal ones the run
    admitted last. Waiting does not raise priorities here, as runs of the same priority would
    otherwise suspend each other in turn. Runs that are already suspended count as gone.

    Args:
        run: a waiting run.
        admitted: runs that take room.
        rules: rules of the queues.
        nodes: the cluster.

    Returns:
        Empty if `run` fits as soon as the suspended runs have stopped, or cannot fit at all.
    """
    staying = [each for each in admitted if not each.suspended]
    lower = [each for each in staying if each.may_be_suspended and each.priority < run.priority]
    lower.sort(key=lambda each: (-each.priority, each.admitted_at, each.key), reverse=True)
    reservations = Reservations(staying, rules, nodes, [run])
    released: list[AdmittedRun] = []
    while reservations.lacks(run):
        if len(released) == len(lower):
            return []
        released.append(lower[len(released)])
        reservations.release(released[-1])
    victims = []
    # Some runs give back room that is not needed. Let these stay, starting with the last one.
    for each in reversed(released):
        reservations.reserve(each)
        if reservations.lacks(run):
            reservations.release(each)
            victims.append(each.key)
    return victims[::-1]


def _as_waiting(run: RequestedRun, situation: Situation, preemptors: Collection[str]) -> WaitingRun:
    queue = situation.queue_of(run)
    return run.as_waiting(
        queue,
        situation.queues.allowed_priority(queue, run.priority),
        "" if run.spec is None else run.spec.unschedulable,
        has_victims=run.observed.owner.uid in preemptors,
        goes_last=run.observed.preempted_for == BY_REQUEST,
    )


def _as_admitted(run: RequestedRun, situation: Situation, now: datetime) -> AdmittedRun:
    queue = situation.queue_of(run)
    priority = situation.queues.allowed_priority(queue, run.priority)
    is_fixed = (
        run.key in situation.fixed
        or run.observed.is_suspended
        or situation.queues.backend_of(queue) != QueueBackend.BUILTIN
    )
    return run.as_admitted(queue, priority, now, is_fixed=is_fixed)


def _as_draining(draining: DrainingRun, situation: Situation, now: datetime) -> AdmittedRun:
    """Return a preempted run that keeps only the room of its last pods."""
    run = draining.run
    gangs = () if run.demand is None else run.demand.gangs
    admitted = _as_admitted(run, situation, now)
    demand, ends_at = Demand(peak=draining.taken, gangs=gangs), admitted.ends_at
    if ends_at is not None:
        ends_at = now + (ends_at - now) * _DRAINING_SHARE
    return replace(admitted, demand=demand, suspended=True, ends_at=ends_at)
