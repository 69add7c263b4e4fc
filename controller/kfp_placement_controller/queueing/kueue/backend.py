"""Kueue as the backend of queues: a Workload for each run, followed and put right."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.backend import Decisions
from kfp_placement_controller.queueing.kueue import applied_statuses, writes
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.kueue.decisions import KueueDecision, simulations
from kfp_placement_controller.queueing.kueue.kueue_run import KueueRun, StoppedWorkloads, kueue_run
from kfp_placement_controller.queueing.kueue.objects import KUEUE_KINDS, KueueObjects
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.verdicts import TriedRun, verdicts_of
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE, QueueBackend
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

ResultT = TypeVar("ResultT")


@dataclass
class KueueBackend:
    """Backend that lets Kueue admit runs.

    Every decision compares the Workload of each run with the one that it must have: whatever others
    have changed is corrected, and a deleted Workload is created again. Each run has a turn of its
    own, so a defect in one decision keeps no other run waiting.

    Attributes:
        objects: Kueue's objects as they are now.
    """

    objects: KueueObjects = field(default_factory=KueueObjects)
    _stopped: StoppedWorkloads = field(default_factory=StoppedWorkloads)
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__, "queue"))

    @property
    def kinds(self) -> Collection[Kind]:
        """Kinds of Kueue's objects that matter."""
        return KUEUE_KINDS

    def observe(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that one of Kueue's objects is new, has changed or is gone."""
        self.objects.changed(kind, change)

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Say what Kueue has decided, and what must be written for it to decide on."""
        if not situation.queues.ask_for_kueue and not self.objects.workloads():
            return Decisions()
        of_waiting = partial(KueueDecision.of_waiting, objects=self.objects, now=now)
        of_running = partial(KueueDecision.of_running, objects=self.objects, now=now)
        own_waiting = situation.those_of(situation.waiting, QueueBackend.KUEUE)
        own_running = situation.those_of(situation.admitted, QueueBackend.KUEUE)
        waiting = [*self._decided(own_waiting, of_waiting, situation, now)]
        running = [*self._decided(own_running, of_running, situation, now)]
        decided = [*waiting, *running]
        for each in situation.draining.values():
            of_draining = partial(KueueDecision.of_draining, taken=each.taken)
            decided += self._decided([each.run], of_draining, situation, now)
        queues = [each for each in situation.queues if each.spec.backend == QueueBackend.KUEUE]
        waiting.sort(key=lambda each: each.place)
        tried = [TriedRun(each.requested.key, each.queue, each.missing) for each in waiting]
        return Decisions(
            verdicts={each.key: each for each in verdicts_of(tried)},
            stops={each.requested.key: each.stop for each in running if each.stop is not None},
            nodes={each.requested.key: each.nodes for each in decided if each.nodes is not None},
            problems={each.key: self.objects.queue_problem(each) for each in queues},
            assigning={each.key for each in queues},
            writes=[*self._writes(situation, decided, now)],
            simulations=[*simulations(waiting, running)],
        )

    def _decided(
        self,
        runs: Iterable[RequestedRun],
        decide: Callable[[KueueRun], KueueDecision],
        situation: Situation,
        now: datetime,
    ) -> Iterator[KueueDecision]:
        """Yield the decisions about the runs among these that Kueue decides about."""

        def decision(requested: RequestedRun) -> KueueDecision | None:
            run = kueue_run(requested, situation.queues, self.objects, self._stopped, now)
            return None if run is None else decide(run)

        for requested in runs:
            queue = situation.queue_of(requested)
            after_defect = partial(KueueDecision.after_defect, requested, queue)
            made = self._take_turn(requested.key, partial(decision, requested), after_defect)
            if made is not None:
                yield made

    def _take_turn(
        self,
        run: RunKey,
        turn: Callable[[], ResultT],
        failed: Callable[[str], ResultT | None] | None = None,
    ) -> ResultT | None:
        """Return what `turn` decides about a run, or after a defect in it what `failed` does."""
        consequence = f"run {run.namespace}/{run.name} is not decided about"
        return self._warnings.take_turn(consequence, turn, failed)

    def _writes(
        self, situation: Situation, decided: Iterable[KueueDecision], now: datetime
    ) -> Iterator[KueueAction]:
        """Yield the writes of all Kueue's objects: first those by which we answer its checks."""
        if situation.queues.ask_for_kueue:
            for check in self.objects.checks.values():
                yield from applied_statuses.check_report(check, situation.planner_problem, now)
        for each in decided:
            yield from each.writes
        yield from self._writes_for_others(situation, decided, now)

    def _writes_for_others(
        self, situation: Situation, decided: Iterable[KueueDecision], now: datetime
    ) -> Iterator[KueueAction]:
        """Yield writes of Workloads whose runs have ended, or left Kueue."""
        runs = [each.requested for each in decided]
        runs += [each.run for each in situation.undecided.values()]
        kept = {run.request.uid for run in runs if run.request is not None}
        others = [
            each
            for each in self.objects.workloads()
            if not (
                each.owner_uid in kept or each.is_finished or each.namespace in situation.returning
            )
        ]
        by_uid = {each.uid: each for each in situation.requests} if others else {}
        for workload in others:
            request = by_uid.get(workload.owner_uid)
            # Its owner may be gone, or not seen yet: Kubernetes deletes it, or its run comes.
            if request is not None and not _is_ending(request, situation):
                write = partial(writes.for_other, workload, request, now)
                action = self._take_turn(request.key, write)
                if action is not None:
                    yield action


def _is_ending(request: ObservedRequest, situation: Situation) -> bool:
    """Return whether a run of Kueue has ended, and the planner has not written yet how."""
    name = DEFAULT_QUEUE if request.spec is None else request.spec.queue
    queue = situation.queues.of_run(request.key.namespace, name)
    is_said = request.spec is not None and request.spec.end is not None
    return not is_said and situation.queues.backend_of(queue) == QueueBackend.KUEUE
