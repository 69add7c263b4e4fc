"""A run that Kueue decides about: the run with its RunQueue and its Workload, as they are now."""

import hashlib
import math
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.backend import BY_KUEUE, BY_REQUEST, Stop
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_controller.queueing.verdicts import Lack, Rule
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.contract.run_request import NodeGroups, node_groups
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.keys import RunKey

MAX_NAME_CHARACTERS = 253
"""Longest name of an object."""

_HASH_CHARACTERS = 10

_MOST_STOPS = 10_000
"""Number of runs stopped by request whose Workload at that time is remembered."""

_SECONDS_PER_HOUR = 3600.0

_AGING_SECONDS = 60.0
"""Time between two steps in which the priority of a Workload grows. Each is a write, and lets Kueue
try the run again, so a queue whose priorities grow fast must not cause one at every decision. A
minute is little beside how long runs wait."""

_LEAST, _MOST = -(2**31), 2**31 - 1
"""Lowest and highest priority that a Workload can have."""


@dataclass(frozen=True, slots=True)
class KueueRun:
    """A run that Kueue decides about, with its queue and its Workload.

    Attributes:
        requested: the run.
        request: RunRequest of the run.
        queue: queue that decides about it.
        priority: priority that the queue allows, grown since the run was submitted.
        workload: Workload of the run, or None if there is none.
        nodes: nodes of the flavors that it was assigned, or None while no quota is reserved for it,
            unless it was refused.
        was_refused: whether its Workload is inactive since one of its steps fits none of `nodes`.
        is_outdated: whether its Workload is older than the request to stop it and must be replaced.
    """

    requested: RequestedRun
    request: ObservedRequest
    queue: ObservedQueue
    priority: int
    workload: ObservedWorkload | None
    nodes: NodeGroups | None
    was_refused: bool
    is_outdated: bool

    @property
    def is_planned(self) -> bool:
        """Return whether its plan is for the nodes that it may use now."""
        spec = self.request.spec
        return spec is not None and spec.planned_nodes == (self.nodes or ())

    @property
    def unschedulable(self) -> str:
        """Reason why a step fits no node that it may use; "" if all fit, or no plan says it yet."""
        spec = self.request.spec
        return spec.unschedulable if spec is not None and self.is_planned else ""

    @property
    def stop(self) -> Stop | None:
        """Decision that it must stop, if it still runs and Kueue has evicted it, or None."""
        is_going = self.requested.is_admitted and not self.requested.observed.is_suspended
        if not is_going or self.workload is None or not self.workload.is_evicted:
            return None
        evicted = self.workload.conditions["Evicted"]
        why = evicted.message or evicted.reason
        return Stop(BY_KUEUE, f"suspended: Kueue has evicted it: {why}"[:1000])

    def missing(self, objects: KueueObjects) -> tuple[Lack, ...]:
        """Return the lacks that keep it waiting; () if Kueue has admitted it.

        Args:
            objects: Kueue's objects.
        """
        if self.workload is not None and self.workload.is_admitted and not self.is_outdated:
            return ()
        if self.unschedulable:
            return (Lack(Rule.STEP, reason=self.unschedulable),)
        why = objects.misfit(self.queue) or _why_waiting(self.workload)
        return (Lack(Rule.KUEUE, reason=why),)


@dataclass
class StoppedWorkloads:
    """Memory of the Workloads that runs had when somebody asked that the runs stop.

    It is found out once for each request: times of creation are by the clock of the API server,
    which may not agree with ours.
    """

    _uids: dict[tuple[str, datetime | None], str] = field(default_factory=dict)

    def note(
        self,
        requested: RequestedRun,
        request: ObservedRequest,
        workload: ObservedWorkload | None,
        now: datetime,
    ) -> bool:
        """Note the Workload of a run that was stopped by request; return whether it still has it.

        Args:
            requested: the run.
            request: RunRequest of the run.
            workload: Workload of the run, or None if there is none.
            now: the time.
        """
        if requested.preempted_for != BY_REQUEST or workload is None:
            return False
        created_at = workload.created_at
        is_old = created_at is not None and created_at < requested.waiting_since(now)
        stop = (request.uid, request.preempt_asked_at)
        if len(self._uids) >= _MOST_STOPS and stop not in self._uids:
            del self._uids[next(iter(self._uids))]
        return self._uids.setdefault(stop, workload.uid if is_old else "") == workload.uid


def workload_name(run: RunKey, request_uid: str) -> str:
    """Return the name of a run's Workload; a later run of the same name has another.

    Args:
        run: key of the run.
        request_uid: uid of its RunRequest.
    """
    digest = hashlib.sha256(request_uid.encode()).hexdigest()[:_HASH_CHARACTERS]
    room = MAX_NAME_CHARACTERS - len("run--") - len(digest)
    return f"run-{run.name[:room].rstrip('-.')}-{digest}"


def kueue_run(
    requested: RequestedRun,
    queues: RunQueues,
    objects: KueueObjects,
    stopped: StoppedWorkloads,
    now: datetime,
) -> KueueRun | None:
    """Return a run with its queue and Workload, or None if Kueue does not decide about it.

    Args:
        requested: any run.
        queues: all RunQueues.
        objects: Kueue's objects.
        stopped: memory of the Workloads of runs that were stopped by request.
        now: the time.
    """
    queue = queues.get(queues.of_run(requested.key.namespace, requested.queue_name))
    request = requested.request
    if queue is None or request is None or queue.spec.backend != QueueBackend.KUEUE:
        return None
    name = workload_name(requested.key, request.uid)
    workload = objects.workload(requested.key.namespace, name, request.uid)
    was_refused = workload is not None and objects.was_refused(workload)
    nodes: NodeGroups | None = None
    if workload is not None and workload.has_reservation:
        try:
            nodes = node_groups(objects.node_selectors(workload))
        except LimitError:
            # These are more flavors than a run can be limited to, so it is not limited.
            nodes = ()
    elif was_refused:
        # The planner still plans for these nodes: once all steps fit, another try is worth it.
        nodes = requested.status.assigned_nodes
    return KueueRun(
        requested=requested,
        request=request,
        queue=queue,
        priority=_priority(requested, queue, queues, now),
        workload=workload,
        nodes=nodes,
        was_refused=was_refused,
        is_outdated=stopped.note(requested, request, workload, now),
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


def _priority(
    requested: RequestedRun, queue: ObservedQueue, queues: RunQueues, now: datetime
) -> int:
    """Return the priority that the queue allows, grown since the run was submitted.

    It grows in steps: each is a write, and lets Kueue try the run again. It grows while the run is
    admitted too: Kueue compares current priorities, so runs of one priority would preempt each
    other in turn.
    """
    seconds = max(0.0, (now - requested.observed.submitted_at).total_seconds())
    hours = seconds // _AGING_SECONDS * _AGING_SECONDS / _SECONDS_PER_HOUR
    grown = math.floor(queue.spec.aging_per_hour * hours)
    return max(_LEAST, min(queues.allowed_priority(queue.key, requested.priority) + grown, _MOST))
