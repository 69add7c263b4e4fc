"""Kueue as the backend of queues: a Workload for each run, followed and put right."""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions, Stop
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.kueue import statuses, writes
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.kueue.objects import KUEUE_KINDS, KueueObjects
from kfp_placement_controller.queueing.kueue.runs import KueueRun, kueue_run
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.runs import AdmittedRun, QueueRules, WaitingRun
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.verdicts import Lack, Rule, verdicts_of
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE, QueueBackend
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import add_to
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

ResultT = TypeVar("ResultT")

_LOG = logging.getLogger(__name__)

_MOST_STOPS = 10_000
"""Number of runs stopped by request whose Workload at that time is remembered."""


@dataclass(frozen=True, slots=True)
class KueueDecision:
    """Decision about one run.

    Attributes:
        requested: the run, with its RunRequest.
        queue: queue that decides about it.
        priority: priority that Kueue orders it by.
        missing: lacks that keep it waiting; () if it is admitted.
        stop: reason to stop it, or None.
        nodes: nodes that it was assigned, or None if they stay as they are.
        waiting: the run in the form that a forecast takes, while it waits.
        running: the run in the form that a forecast takes, while it runs.
        writes: writes of its Workload.
    """

    requested: RequestedRun
    queue: QueueKey
    priority: int = 0
    missing: tuple[Lack, ...] = ()
    stop: Stop | None = None
    nodes: NodeGroups | None = None
    waiting: WaitingRun | None = None
    running: AdmittedRun | None = None
    writes: tuple[KueueAction, ...] = ()


@dataclass
class KueueBackend:
    """Lets Kueue admit runs.

    Every decision compares the Workload of each run with the one that it must have: whatever others
    have changed is corrected, and a deleted Workload is created again. Each run has a turn of its
    own, so a defect in one decision keeps no other run waiting.

    Attributes:
        objects: Kueue's objects as they are now.
    """

    objects: KueueObjects = field(default_factory=KueueObjects)
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(_LOG, "queue"))
    _outdated: dict[tuple[str, datetime | None], str] = field(default_factory=dict)

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
        decide = partial(self._decided, situation=situation, now=now)
        waiting = decide(
            situation.those_of(situation.waiting, QueueBackend.KUEUE), self._of_waiting
        )
        running = decide(
            situation.those_of(situation.admitted, QueueBackend.KUEUE), self._of_running
        )
        stopping = (requested for requested, _ in situation.draining.values())
        draining = decide(stopping, partial(_of_draining, situation))
        decided = [*waiting, *running, *draining]
        actions: list[KueueAction] = []
        if situation.queues.ask_for_kueue:
            problem = situation.planner_problem
            reports = (statuses.report(each, problem, now) for each in self.objects.checks.values())
            actions += [report for report in reports if report is not None]
        actions += [action for each in decided for action in each.writes]
        actions += self._for_others(situation, decided, now)
        queues = [each for each in situation.queues if each.spec.backend == QueueBackend.KUEUE]
        waiting.sort(key=_place)
        in_line = [(each.requested.key, each.queue, each.missing) for each in waiting]
        return Decisions(
            verdicts={each.key: each for each in verdicts_of(in_line)},
            stops={each.requested.key: each.stop for each in running if each.stop is not None},
            nodes={each.requested.key: each.nodes for each in decided if each.nodes is not None},
            problems={each.key: self.objects.queue_problem(each) for each in queues},
            assigning={each.key for each in queues},
            writes=actions,
            simulations=[*_simulations(waiting, running)],
        )

    # What follows for each run.

    def _decided(
        self,
        runs: Iterable[RequestedRun],
        decide: Callable[[KueueRun, datetime], KueueDecision],
        situation: Situation,
        now: datetime,
    ) -> list[KueueDecision]:
        def decision(requested: RequestedRun) -> KueueDecision | None:
            run = kueue_run(requested, situation.queues, self.objects, now)
            if run is None:
                return None
            return decide(replace(run, outdated_uid=self._outdated_uid(run, now)), now)

        def undecided(requested: RequestedRun, problem: str) -> KueueDecision:
            """Decide that a run stays where it is."""
            lack = Lack(Rule.KUEUE, reason=problem)
            return KueueDecision(requested, situation.queue_of(requested), missing=(lack,))

        decisions = []
        for requested in runs:
            # Anybody may have written what the decision depends on.
            problems: list[str] = []
            made = self._take_turn(requested.key, partial(decision, requested), problems.append)
            decisions.append(undecided(requested, problems[0]) if problems else made)
        return [each for each in decisions if each is not None]

    def _take_turn(
        self,
        run: RunKey,
        turn: Callable[[], ResultT],
        failed: Callable[[str], object] | None = None,
    ) -> ResultT | None:
        """Return what `turn` decides about a run, or None after a defect in it."""
        consequence = f"run {run.namespace}/{run.name} is not decided about"
        return self._warnings.take_turn(consequence, turn, failed)

    def _outdated_uid(self, run: KueueRun, now: datetime) -> str:
        """Return the uid of the Workload that a run had when it was stopped by request, or "".

        It is found out once for each request: times of creation are by the clock of the API server,
        which may not agree with ours.
        """
        if run.requested.observed.preempted_for != BY_REQUEST or run.workload is None:
            return ""
        created_at = run.workload.created_at
        is_old = created_at is not None and created_at < run.requested.waiting_since(now)
        stop = (run.request.uid, run.request.preempt_at)
        if len(self._outdated) >= _MOST_STOPS and stop not in self._outdated:
            del self._outdated[next(iter(self._outdated))]
        return self._outdated.setdefault(stop, run.workload.uid if is_old else "")

    def _of_waiting(self, run: KueueRun, now: datetime) -> KueueDecision:
        key, is_admitted = run.queue.key, run.workload is not None and run.workload.is_admitted
        return KueueDecision(
            requested=run.requested,
            queue=key,
            priority=run.priority,
            missing=run.missing(self.objects),
            nodes=run.nodes or (),
            waiting=None
            if is_admitted
            else run.requested.as_waiting(key, run.priority, run.unschedulable),
            writes=tuple(writes.for_run(run, self.objects, now, waits=True)),
        )

    def _of_running(self, run: KueueRun, now: datetime) -> KueueDecision:
        return KueueDecision(
            requested=run.requested,
            queue=run.queue.key,
            stop=run.stop,
            # The run keeps its nodes, with and without its Workload.
            nodes=run.nodes,
            running=run.requested.as_admitted(run.queue.key, run.priority, now),
            writes=tuple(writes.for_run(run, self.objects, now, waits=False)),
        )

    # What else to write.

    def _for_others(
        self, situation: Situation, decided: Iterable[KueueDecision], now: datetime
    ) -> Iterator[KueueAction]:
        """Yield writes of Workloads whose runs have ended, or left Kueue."""
        kept = {
            each.requested.request.uid for each in decided if each.requested.request is not None
        }
        undecided = (requested.request for requested, _ in situation.undecided.values())
        kept |= {request.uid for request in undecided if request is not None}
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


def _of_draining(situation: Situation, run: KueueRun, _now: datetime) -> KueueDecision:
    actions = tuple(writes.for_draining(run, situation.draining[run.requested.key][1]))
    return KueueDecision(run.requested, run.queue.key, writes=actions)


def _is_ending(request: ObservedRequest, situation: Situation) -> bool:
    """Return whether a run of Kueue has ended, and the planner has not written yet how."""
    name = DEFAULT_QUEUE if request.spec is None else request.spec.queue
    queue = situation.queues.of_run(request.key.namespace, name)
    is_said = request.spec is not None and request.spec.end is not None
    return not is_said and situation.queues.backend_of(queue) == QueueBackend.KUEUE


def _place(run: KueueDecision) -> tuple[int, datetime, RunKey]:
    return (-run.priority, run.requested.observed.submitted_at, run.requested.key)


def _simulations(
    waiting: Iterable[KueueDecision], running: Iterable[KueueDecision]
) -> Iterator[QueueSimulation]:
    """Yield a simulation for each RunQueue, whose room is the demand of its running runs.

    The quota that Kueue would give it beyond that is not known here; the ratios that queues learn
    from their waits make up for it.
    """
    waiting_in, running_in = defaultdict(list), defaultdict(list)
    for each in waiting:
        if each.waiting is not None:
            waiting_in[each.queue].append(each.waiting)
    for each in running:
        if each.running is not None:
            running_in[each.queue].append(each.running)
    for key, runs in waiting_in.items():
        taken: dict[str, int] = {}
        for run in running_in[key]:
            add_to(taken, run.demand.peak)
        yield QueueSimulation(
            runs, running_in[key], {key: QueueRules(overcommit=1.0, capacity=taken)}, ()
        )
