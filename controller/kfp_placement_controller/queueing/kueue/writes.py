"""What to write for one run into objects of Kueue; pure.

At most one thing that others follow from: what follows is seen when that is done.
"""

from collections.abc import Iterator
from datetime import datetime

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue import statuses, workloads
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.kueue.runs import KueueRun
from kfp_placement_engine.contract.run_request import RequestedEnd
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.resources import Resources


def for_waiting(run: KueueRun, objects: KueueObjects, now: datetime) -> Iterator[KueueAction]:
    """For a run that waits.

    Args:
        run: which.
        objects: Kueue's.
        now: the time.
    """
    workload, key = run.workload, run.known.key
    if workload is None:
        if not run.unschedulable:
            yield from _creation(run, objects)
    elif workload.is_evicted:
        yield workloads.clearing(key, workload)
    elif workload.is_finished or run.is_outdated:
        # A new one is made.
        yield workloads.deletion(key, workload)
    elif workload.has_reservation:
        yield from _for_reservation(run, workload, objects, now)
    elif run.was_refused:
        if _may_fit(run, objects):
            yield workloads.deletion(key, workload)
    elif run.unschedulable:
        yield workloads.deletion(key, workload)
    else:
        yield from _for_pending(run, workload, objects)


def for_running(run: KueueRun, objects: KueueObjects, now: datetime) -> Iterator[KueueAction]:
    """For a run that may run: it keeps its Workload to its end.

    Args:
        run: which.
        objects: Kueue's.
        now: the time.
    """
    workload = run.workload
    if workload is None:
        yield from _creation(run, objects)
    elif workload.is_finished:
        yield workloads.deletion(run.known.key, workload)
    elif workload.is_evicted:
        # It stops first.
        return
    elif workload.has_reservation:
        yield from _for_reservation(run, workload, objects, now)
    else:
        yield from _for_pending(run, workload, objects)


def for_draining(run: KueueRun, taken: Resources) -> Iterator[KueueAction]:
    """For a run that was preempted and still has pods.

    Args:
        run: which.
        taken: by its pods.
    """
    if run.workload is not None and run.workload.has_reservation:
        yield from statuses.reclaim(run.workload, Demand(peak=taken))


def for_other(workload: ObservedWorkload, request: ObservedRequest, now: datetime) -> KueueAction:
    """For a run that has ended, or about which Kueue does not decide any more.

    Args:
        workload: of the run, not finished.
        request: owns it.
        now: the time.
    """
    end = None if request.spec is None else request.spec.end
    if end is None:
        return workloads.deletion(request.key, workload)
    return statuses.finish(workload, succeeded=end == RequestedEnd.SUCCEEDED, now=now)


def _for_reservation(
    run: KueueRun, workload: ObservedWorkload, objects: KueueObjects, now: datetime
) -> Iterator[KueueAction]:
    if run.known.demand is not None:
        yield from statuses.reclaim(workload, run.known.demand)
    ours = {name: state for name, state in workload.checks.items() if name in objects.checks}
    if run.is_planned and "Pending" in ours.values():
        yield statuses.answer(workload, ours, run.unschedulable, now)
    yield from _correction(run, workload, objects)


def _for_pending(
    run: KueueRun, workload: ObservedWorkload, objects: KueueObjects
) -> Iterator[KueueAction]:
    # PodSets cannot change their names while units of the old ones are given back.
    if workload.reclaimed:
        yield statuses.take_back(workload)
    else:
        yield from _correction(run, workload, objects)


def _may_fit(run: KueueRun, objects: KueueObjects) -> bool:
    """Whether a run that was refused is worth another try: by its nodes, or since flavors changed.

    Trying again without a reason would reserve quota or preempt others, and be refused again.
    """
    fits = run.is_planned and not run.unschedulable
    return fits or not objects.offers(run.queue, run.nodes or ())


def _creation(run: KueueRun, objects: KueueObjects) -> Iterator[KueueAction]:
    local, demand = objects.local_queue(run.queue), run.known.demand
    if local is not None and demand is not None and not objects.misfit(run.queue):
        units = workloads.pod_sets(demand, local.resources)
        yield workloads.creation(run.known.key, run.request.uid, local.name, run.priority, units)


def _correction(
    run: KueueRun, workload: ObservedWorkload, objects: KueueObjects
) -> Iterator[KueueAction]:
    local, demand = objects.local_queue(run.queue), run.known.demand
    if local is not None and demand is not None and not objects.misfit(run.queue):
        units = workloads.pod_sets(demand, local.resources)
        yield from workloads.correction(run.known.key, workload, local.name, run.priority, units)
