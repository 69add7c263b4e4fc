"""Decisions about single runs that Kueue admits: what follows from a run and its Workload."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from kfp_placement_controller.queueing.backend import Stop
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.kueue import writes
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.kueue.kueue_run import KueueRun
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.runs import AdmittedRun, QueueRules, WaitingRun
from kfp_placement_controller.queueing.verdicts import Lack, Rule
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources, add_to


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

    @classmethod
    def of_waiting(cls, run: KueueRun, objects: KueueObjects, now: datetime) -> Self:
        """Decide about a run that waits.

        Args:
            run: the run, with its Workload.
            objects: Kueue's objects.
            now: the time.
        """
        key, workload, waiting = run.queue.key, run.workload, None
        if workload is None or not workload.is_admitted:
            waiting = run.requested.as_waiting(key, run.priority, run.unschedulable)
        return cls(
            run.requested,
            key,
            run.priority,
            missing=run.missing(objects),
            nodes=run.nodes or (),
            waiting=waiting,
            writes=tuple(writes.for_run(run, objects, now, waits=True)),
        )

    @classmethod
    def of_running(cls, run: KueueRun, objects: KueueObjects, now: datetime) -> Self:
        """Decide about a run that may run; it keeps its nodes, with and without its Workload.

        Args:
            run: the run, with its Workload.
            objects: Kueue's objects.
            now: the time.
        """
        key = run.queue.key
        return cls(
            run.requested,
            key,
            stop=run.stop,
            nodes=run.nodes,
            running=run.requested.as_admitted(key, run.priority, now),
            writes=tuple(writes.for_run(run, objects, now, waits=False)),
        )

    @classmethod
    def of_draining(cls, run: KueueRun, taken: Resources) -> Self:
        """Decide about a run that was preempted and still has pods.

        Args:
            run: the run, with its Workload.
            taken: resources that its pods take.
        """
        return cls(run.requested, run.queue.key, writes=tuple(writes.for_draining(run, taken)))

    @classmethod
    def after_defect(cls, requested: RequestedRun, queue: QueueKey, problem: str) -> Self:
        """Decide that a run stays where it is, since a defect keeps us from deciding about it."""
        return cls(requested, queue, missing=(Lack(Rule.KUEUE, reason=problem),))

    @property
    def place(self) -> tuple[int, datetime, RunKey]:
        """Place in the order in which Kueue tries runs: by priority, then by age."""
        return (-self.priority, self.requested.observed.submitted_at, self.requested.key)


def simulations(
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
