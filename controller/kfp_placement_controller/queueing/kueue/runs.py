"""A run that Kueue decides about, beside its RunQueue and its Workload."""

import math
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.kueue.workloads import workload_name
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.run_queues import RunQueues, rules_of
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.contract.run_request import NodeGroups, node_groups
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.demand import Demand

_SECONDS_PER_HOUR = 3600.0
_NOTHING = Demand()
_LEAST, _MOST = -(2**31), 2**31 - 1
"""Priorities that a Workload can have."""


@dataclass(frozen=True, slots=True)
class KueueRun:
    """A run, its queue, and its Workload.

    Attributes:
        known: the run.
        request: its RunRequest.
        queue: that decides about it.
        priority: as the queue allows it, grown since it was submitted.
        waiting_since: when it began to wait; now, where that is not written yet.
        workload: None = there is none.
        nodes: of the flavors that it was assigned; None = no quota is reserved for it, and it was
            not refused.
        was_refused: whether its Workload is inactive since one of its steps fits none of `nodes`.
        outdated_uid: of the Workload that it had when somebody asked that it stops; "" = of none.
    """

    known: KnownRun
    request: ObservedRequest
    queue: ObservedQueue
    priority: int
    waiting_since: datetime
    workload: ObservedWorkload | None
    nodes: NodeGroups | None
    was_refused: bool = False
    outdated_uid: str = ""

    @property
    def is_planned(self) -> bool:
        """Whether what the planner says is for the nodes that it may use by now."""
        spec = self.request.spec
        return spec is not None and spec.planned_nodes == (self.nodes or ())

    @property
    def unschedulable(self) -> str:
        """Why no node that it may use can take one of its steps; "" = all fit, or not known yet."""
        spec = self.request.spec
        return spec.unschedulable if spec is not None and self.is_planned else ""

    def as_waiting(self) -> WaitingRun:
        """The run as a forecast takes it, while it waits."""
        return WaitingRun(
            key=self.known.key,
            queue=self.queue.key,
            priority=self.priority,
            submitted_at=self.known.run.submitted_at,
            demand=self.known.demand or _NOTHING,
            unschedulable=self.unschedulable,
            makespan_seconds=self.known.makespan_seconds,
        )

    def as_admitted(self, now: datetime) -> AdmittedRun:
        """The same while it runs.

        Args:
            now: the time.
        """
        return AdmittedRun(
            key=self.known.key,
            queue=self.queue.key,
            priority=self.priority,
            admitted_at=self.known.admitted_at,
            demand=self.known.demand or _NOTHING,
            ends_at=self.known.ends_at(now),
        )

    @property
    def must_stop(self) -> bool:
        """Whether it runs on, and Kueue has evicted it."""
        is_going = self.known.is_admitted and not self.known.run.is_suspended
        return is_going and self.workload is not None and self.workload.is_evicted

    @property
    def is_outdated(self) -> bool:
        """Whether its Workload is from before somebody asked that it stops: a new one waits."""
        return self.workload is not None and self.workload.uid == self.outdated_uid


def kueue_run(
    known: KnownRun,
    queues: RunQueues,
    objects: KueueObjects,
    now: datetime,
    aging_seconds: float,
) -> KueueRun | None:
    """A run that Kueue decides about; None = it does not.

    Args:
        known: any run.
        queues: all RunQueues.
        objects: Kueue's.
        now: the time.
        aging_seconds: of each step in which its priority grows.
    """
    queue = queues.get(queues.of_run(known.key.namespace, known.queue_name))
    request = known.request
    if queue is None or request is None or queue.spec.backend != QueueBackend.KUEUE:
        return None
    name = workload_name(known.key, request.uid)
    workload = objects.workload(known.key.namespace, name, request.uid)
    was_refused = workload is not None and objects.was_refused(workload)
    nodes = None
    if workload is not None and workload.has_reservation:
        nodes = _nodes(objects, workload)
    elif was_refused:
        # The planner goes on planning for them: once all steps fit, another try is worth it.
        nodes = known.status.assigned_nodes
    return KueueRun(
        known=known,
        request=request,
        queue=queue,
        priority=_priority(known, queue, now, aging_seconds),
        waiting_since=known.waiting_since(now),
        workload=workload,
        nodes=nodes,
        was_refused=was_refused,
    )


def _nodes(objects: KueueObjects, workload: ObservedWorkload) -> NodeGroups:
    try:
        return node_groups(objects.node_selectors(workload))
    except LimitError:
        # More flavors than a run can be limited to: then it is not.
        return ()


def _priority(known: KnownRun, queue: ObservedQueue, now: datetime, aging_seconds: float) -> int:
    """As the queue allows it, and grown since the run was submitted.

    It grows in steps: each is a write, and lets Kueue look at the run again. It grows while the run
    is admitted too: Kueue compares what it is, and runs of one priority would preempt each other
    in turn.
    """
    rules = rules_of(queue.spec)
    seconds = max(0.0, (now - known.run.submitted_at).total_seconds())
    hours = seconds // aging_seconds * aging_seconds / _SECONDS_PER_HOUR
    grown = math.floor(rules.aging_per_hour * hours)
    return max(_LEAST, min(rules.allowed_priority(known.priority) + grown, _MOST))
