"""The built-in queue as a backend: quotas of RunQueues, and the room of the cluster."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions
from kfp_placement_controller.queueing.builtin.decision import Decision
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.runs import NO_RULES, AdmittedRun, Rules, WaitingRun
from kfp_placement_controller.queueing.situation import DrainingRun, Situation
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.units.resources import Resources, add_to, total_of
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

RunT = TypeVar("RunT", WaitingRun, AdmittedRun)

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
        preemptors = {each.run.preempted_for for each in draining}
        preemptors |= {run.preempted_for for run in situation.waiting}
        there = total_of(nodes)
        waiting = [
            _within_cluster(_as_waiting(run, situation, preemptors), there, rules)
            for run in own_runs
        ]
        admitted = [
            _within_cluster(_as_admitted(run, situation, now), there, rules)
            for run in situation.admitted
        ]
        admitted += [_as_draining(each, situation, now) for each in draining]
        uids = {run.key: run.observed.owner.uid for run in own_runs}
        decision = Decision.of(waiting, admitted, uids, rules, nodes, now)
        used = defaultdict[QueueKey, Counter[str]](Counter)
        for run in admitted:
            add_to(used[run.queue], run.demand.of_quota)
            add_to(used[run.queue], run.beyond or {})
        return Decisions(
            verdicts={verdict.key: verdict for verdict in decision.verdicts},
            stops=decision.stops,
            used=used,
            simulations=(QueueSimulation(decision.held, decision.taking, rules, nodes),),
        )


def _within_cluster(run: RunT, there: Resources, rules: Rules) -> RunT:
    """Return a run without what it could take at once if the cluster had more nodes."""
    demand = run.demand
    if not demand.most:
        return run
    there = {**there, **(rules.get(run.queue, NO_RULES).capacity or {})}
    most = {
        name: max(min(each, there.get(name, 0)), demand.peak.get(name, 0))
        for name, each in demand.most.items()
    }
    return replace(run, demand=replace(demand, most=most))


def _as_waiting(run: RequestedRun, situation: Situation, preemptors: Collection[str]) -> WaitingRun:
    queue = situation.queue_of(run)
    return run.as_waiting(
        queue,
        situation.queues.allowed_priority(queue, run.priority),
        "" if run.spec is None else run.spec.unschedulable,
        across_priority=situation.queues.across_priority(queue, run.priority),
        has_victims=run.observed.owner.uid in preemptors,
        goes_last=run.preempted_for == BY_REQUEST,
    )


def _as_admitted(run: RequestedRun, situation: Situation, now: datetime) -> AdmittedRun:
    queue = situation.queue_of(run)
    priority = situation.queues.allowed_priority(queue, run.priority)
    is_fixed = (
        run.key in situation.fixed
        or run.observed.is_suspended
        or situation.queues.backend_of(queue) != QueueBackend.BUILTIN
    )
    return replace(
        run.as_admitted(queue, priority, now, is_fixed=is_fixed),
        across_priority=situation.queues.across_priority(queue, run.priority),
        in_use={} if run.key in situation.sleeping else None,
        beyond=situation.beyond.get(run.key),
    )


def _as_draining(draining: DrainingRun, situation: Situation, now: datetime) -> AdmittedRun:
    """Return a run that keeps only the room of its last pods."""
    run = draining.run
    gangs = () if run.demand is None else run.demand.gangs
    admitted = _as_admitted(run, situation, now)
    demand, ends_at = Demand(peak=draining.taken, gangs=gangs), admitted.ends_at
    if ends_at is not None:
        ends_at = now + (ends_at - now) * _DRAINING_SHARE
    return replace(
        admitted, demand=demand, suspended=True, ends_at=ends_at, in_use=draining.on_nodes
    )
