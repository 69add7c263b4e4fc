"""Kueue as the backend of queues: a Workload for each run, followed and put right."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing import kueue_workloads
from kfp_placement_controller.queueing.backend import Decisions, Stop
from kfp_placement_controller.queueing.forecast import PlayedQueues
from kfp_placement_controller.queueing.kueue_actions import KueueAction
from kfp_placement_controller.queueing.kueue_objects import KueueObjects
from kfp_placement_controller.queueing.kueue_runs import KueueRun, kueue_runs
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.runs import QueueRules
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.verdicts import Lack, Rule, Verdict
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.contract.run_request import RequestedEnd
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.model.resources import add_to

BY_KUEUE = "kueue"
"""What a run makes room for that Kueue has evicted."""


@dataclass
class KueueBackend:
    """Lets Kueue admit runs.

    Every decision compares the Workload of each run with what it should be: whatever others have
    changed is put right, and one that was deleted is made again.

    Attributes:
        objects: Kueue's, as they are now.
        retry_seconds: between two tries of the same write; what it changes comes by a watch.
    """

    objects: KueueObjects = field(default_factory=KueueObjects)
    retry_seconds: float = 2.0
    _tried: dict[tuple[str, ...], datetime] = field(default_factory=dict)

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Say what Kueue has decided, and what must be written for it to decide on."""
        if not situation.queues.ask_for_kueue and not self.objects.has_workloads:
            return Decisions()
        waiting = self._runs(situation.waiting_in(QueueBackend.KUEUE), situation, now)
        running = self._runs(situation.admitted_in(QueueBackend.KUEUE), situation, now)
        wanted = self._writes(situation, waiting, running, now)
        return Decisions(
            verdicts=self._verdicts(waiting),
            stops={each.known.key: _stop(each) for each in running if each.must_stop},
            nodes={each.known.key: each.nodes or () for each in waiting}
            # One that runs on keeps its nodes, with and without its Workload.
            | {each.known.key: each.nodes for each in running if each.nodes is not None},
            problems={
                each.key: self.objects.queue_problem(each)
                for each in situation.queues
                if each.spec.backend == QueueBackend.KUEUE
            },
            writes=[each for each in wanted if self._may_try(each, now)],
            played=[*_played(waiting, running, now)],
        )

    def _runs(
        self, runs: Iterable[KnownRun], situation: Situation, now: datetime
    ) -> list[KueueRun]:
        return [*kueue_runs(runs, situation.queues, self.objects, now)]

    # What Kueue has decided.

    def _verdicts(self, runs: Iterable[KueueRun]) -> dict[RunKey, Verdict]:
        verdicts, waiting = {}, []
        for each in runs:
            if each.workload is not None and each.workload.is_admitted and not each.is_outdated:
                verdicts[each.known.key] = Verdict(each.known.key)
            else:
                waiting.append(each)
        waiting.sort(key=lambda each: (-each.priority, each.known.run.submitted_at, each.known.key))
        counts = Counter(each.queue.key for each in waiting)
        positions: Counter[QueueKey] = Counter()
        for each in waiting:
            positions[each.queue.key] += 1
            verdicts[each.known.key] = Verdict(
                key=each.known.key,
                missing=(self._lack(each),),
                position=positions[each.queue.key],
                waiting=counts[each.queue.key],
            )
        return verdicts

    def _lack(self, run: KueueRun) -> Lack:
        if run.unschedulable:
            return Lack(Rule.STEP, reason=run.unschedulable)
        return Lack(Rule.KUEUE, reason=self.objects.misfit(run.queue) or _why_waiting(run.workload))

    # What to write.

    def _writes(
        self,
        situation: Situation,
        waiting: Sequence[KueueRun],
        running: Sequence[KueueRun],
        now: datetime,
    ) -> Iterator[KueueAction]:
        taken = {known.key: amounts for known, amounts in situation.draining.values()}
        stopping = (known for known, _ in situation.draining.values())
        draining = self._runs(stopping, situation, now)
        if situation.queues.ask_for_kueue:
            yield from self._reports(situation.planner_problem, now)
        for each in waiting:
            yield from self._for_waiting(each, now)
        for each in running:
            yield from self._for_running(each, now)
        for each in draining:
            if each.workload is not None and each.workload.has_reservation:
                demand = Demand(peak=taken[each.known.key])
                yield from kueue_workloads.reclaim(each.workload, demand)
        kept = {each.request.uid for each in (*waiting, *running, *draining)}
        undecided = (known.request for known, _ in situation.undecided.values())
        kept |= {request.uid for request in undecided if request is not None}
        yield from self._for_others(situation.requests, kept, now)

    def _for_waiting(self, run: KueueRun, now: datetime) -> Iterator[KueueAction]:
        """The one thing to write for a run that waits; what follows is seen when that is done."""
        workload, key = run.workload, run.known.key
        if workload is None:
            if not run.unschedulable:
                yield from self._creation(run)
        elif workload.is_evicted:
            yield kueue_workloads.clearing(key, workload)
        elif workload.is_finished or run.is_outdated:
            # A new one is made.
            yield kueue_workloads.deletion(key, workload)
        elif workload.has_reservation:
            yield from self._for_reservation(run, workload, now)
        elif run.unschedulable:
            yield kueue_workloads.deletion(key, workload)
        else:
            yield from self._for_pending(run, workload)

    def _for_running(self, run: KueueRun, now: datetime) -> Iterator[KueueAction]:
        """The same for a run that may run: it keeps its Workload to its end."""
        workload = run.workload
        if workload is None:
            yield from self._creation(run)
        elif workload.is_finished:
            yield kueue_workloads.deletion(run.known.key, workload)
        elif workload.is_evicted:
            # It stops first.
            return
        elif workload.has_reservation:
            yield from self._for_reservation(run, workload, now)
        else:
            yield from self._for_pending(run, workload)

    def _for_reservation(
        self, run: KueueRun, workload: ObservedWorkload, now: datetime
    ) -> Iterator[KueueAction]:
        if run.known.demand is not None:
            yield from kueue_workloads.reclaim(workload, run.known.demand)
        ours = {
            name: state for name, state in workload.checks.items() if name in self.objects.checks
        }
        if run.is_planned and "Pending" in ours.values():
            yield kueue_workloads.answer(workload, ours, run.unschedulable, now)
        yield from self._correction(run, workload)

    def _for_pending(self, run: KueueRun, workload: ObservedWorkload) -> Iterator[KueueAction]:
        # PodSets cannot change their names while units of the old ones are given back.
        if workload.reclaimed:
            yield kueue_workloads.take_back(workload)
        else:
            yield from self._correction(run, workload)

    def _for_others(
        self, requests: Iterable[ObservedRequest], kept: set[str], now: datetime
    ) -> Iterator[KueueAction]:
        """Workloads of runs that have ended, or of which Kueue does not decide any more."""
        others = [each for each in self.objects.workloads() if each.owner_uid not in kept]
        others = [each for each in others if not each.is_finished]
        by_uid = {each.uid: each for each in requests} if others else {}
        for workload in others:
            request = by_uid.get(workload.owner_uid)
            if request is None:
                # Its owner is gone, or not seen yet: Kubernetes deletes it, or its run comes.
                continue
            end = None if request.spec is None else request.spec.end
            if end is None:
                yield kueue_workloads.deletion(request.key, workload)
            else:
                succeeded = end == RequestedEnd.SUCCEEDED
                yield kueue_workloads.finish(workload, succeeded=succeeded, now=now)

    def _creation(self, run: KueueRun) -> Iterator[KueueAction]:
        local, demand = self.objects.local_queue(run.queue), run.known.demand
        if local is not None and demand is not None and not self.objects.misfit(run.queue):
            units = kueue_workloads.pod_sets(demand, local.resources)
            yield kueue_workloads.creation(
                run.known.key, run.request.uid, local.name, run.priority, units
            )

    def _correction(self, run: KueueRun, workload: ObservedWorkload) -> Iterator[KueueAction]:
        local, demand = self.objects.local_queue(run.queue), run.known.demand
        if local is not None and demand is not None and not self.objects.misfit(run.queue):
            units = kueue_workloads.pod_sets(demand, local.resources)
            yield from kueue_workloads.correction(
                run.known.key, workload, local.name, run.priority, units
            )

    def _reports(self, problem: str, now: datetime) -> Iterator[KueueAction]:
        """What to say of the AdmissionChecks that we answer."""
        for name, check in self.objects.checks.items():
            active = check.active
            is_said = active is not None and active.holds == (not problem)
            if not is_said or (problem and active is not None and active.message != problem):
                yield kueue_workloads.report(name, problem, now)

    def _may_try(self, action: KueueAction, now: datetime) -> bool:
        pause = timedelta(seconds=self.retry_seconds)
        last = self._tried.get(action.target)
        if last is not None and now - last < pause:
            return False
        self._tried = {what: at for what, at in self._tried.items() if now - at < pause}
        self._tried[action.target] = now
        return True


def _played(
    waiting: Iterable[KueueRun], running: Iterable[KueueRun], now: datetime
) -> Iterator[PlayedQueues]:
    """What starts are forecast from: each RunQueue alone, with what its runs have got as its room.

    What Kueue would give it beyond that, of its quota and of what others leave, is not known here;
    what queues learn from their waits makes up for it.
    """
    waiting_in, running_in = defaultdict(list), defaultdict(list)
    for each in waiting:
        if each.workload is None or not each.workload.is_admitted:
            waiting_in[each.queue.key].append(each.as_waiting())
    for each in running:
        running_in[each.queue.key].append(each.as_admitted(now))
    for key, runs in waiting_in.items():
        taken: dict[str, int] = {}
        for run in running_in[key]:
            add_to(taken, run.demand.peak)
        yield PlayedQueues(
            runs, running_in[key], {key: QueueRules(overcommit=1.0, capacity=taken)}, ()
        )


def _why_waiting(workload: ObservedWorkload | None) -> str:
    if workload is None:
        return "it has no Workload yet"
    if workload.has_reservation:
        return "quota is reserved, the last checks are under way"
    evicted, reserved = (workload.conditions.get(each) for each in ("Evicted", "QuotaReserved"))
    if not workload.is_active:
        why = f": {evicted.message}" if evicted is not None and evicted.holds else ""
        return f"its Workload {workload.name} is not active{why}"
    return "" if reserved is None else reserved.message


def _stop(run: KueueRun) -> Stop:
    evicted = None if run.workload is None else run.workload.conditions["Evicted"]
    why = "" if evicted is None else evicted.message or evicted.reason
    return Stop(BY_KUEUE, f"suspended: Kueue has evicted it: {why}"[:1000])
