"""Writes of one run's Workload, and of its status.

Of writes that depend on each other only the first is made: the next decision sees its effect.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kfp_placement_controller.kinds import RUN_REQUESTS
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue import applied_statuses
from kfp_placement_controller.queueing.kueue.actions import (
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    KueueAction,
    PatchWorkload,
)
from kfp_placement_controller.queueing.kueue.kueue_run import KueueRun, workload_name
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_engine.contract.keys import RUNS_RESOURCE
from kfp_placement_engine.contract.quota_units import QuotaUnits, quota_units
from kfp_placement_engine.contract.run_request import RequestedEnd
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.quantities import format_resources
from kfp_placement_engine.units.resources import Resources
from kfp_placement_kube.kinds import JsonObject


def for_run(
    run: KueueRun, objects: KueueObjects, now: datetime, *, waits: bool
) -> Iterator[KueueAction]:
    """Yield the writes for a run that waits, or that may run and keeps its Workload to its end.

    Args:
        run: the run, with its Workload.
        objects: Kueue's objects.
        now: the time.
        waits: whether the run waits.
    """
    workload, key = run.workload, run.requested.key
    if workload is None:
        if not (waits and run.unschedulable):
            yield from _demand(run, objects)
    elif workload.is_evicted:
        # A run that still runs must stop first.
        if waits:
            yield ClearAdmission(key, workload.name, workload.uid)
    elif workload.is_finished or (waits and run.is_outdated):
        # The next decision creates a new Workload.
        yield _deletion(key, workload)
    elif workload.has_reservation:
        yield from _for_reservation(run, workload, objects, now)
    elif waits and (run.was_refused or run.unschedulable):
        if not run.was_refused or _may_fit(run, objects):
            yield _deletion(key, workload)
    elif workload.reclaimed:
        # PodSets cannot change their names while units of the old ones are given back.
        yield applied_statuses.reclaimable_status(workload, {})
    else:
        yield from _demand(run, objects)


def for_draining(run: KueueRun, taken: Resources) -> Iterator[KueueAction]:
    """Yield the writes for a run that was preempted and still has pods.

    Args:
        run: the run, with its Workload.
        taken: resources that its pods take.
    """
    if run.workload is not None and run.workload.has_reservation:
        yield from applied_statuses.reclaim_if_changed(run.workload, Demand(peak=taken))


def for_other(workload: ObservedWorkload, request: ObservedRequest, now: datetime) -> KueueAction:
    """Return the write for a run that has ended, or that has left Kueue.

    Args:
        workload: Workload of the run, not finished.
        request: RunRequest that owns the Workload.
        now: the time.
    """
    end = None if request.spec is None else request.spec.end
    if end is None:
        return _deletion(request.key, workload)
    return applied_statuses.finished_status(
        workload, succeeded=end == RequestedEnd.SUCCEEDED, now=now
    )


def _for_reservation(
    run: KueueRun, workload: ObservedWorkload, objects: KueueObjects, now: datetime
) -> Iterator[KueueAction]:
    if run.requested.demand is not None:
        yield from applied_statuses.reclaim_if_changed(workload, run.requested.demand)
    ours = {name: state for name, state in workload.checks.items() if name in objects.checks}
    if run.is_planned and "Pending" in ours.values():
        yield applied_statuses.check_status(workload, ours, run.unschedulable, now)
    yield from _demand(run, objects)


def _may_fit(run: KueueRun, objects: KueueObjects) -> bool:
    """Return whether a refused run is worth another try: its steps fit now, or flavors changed.

    Another try without a reason would reserve quota or preempt others, and be refused again.
    """
    fits = run.is_planned and not run.unschedulable
    return fits or not objects.offers(run.queue, run.nodes or ())


def _demand(run: KueueRun, objects: KueueObjects) -> Iterator[KueueAction]:
    """Ask for what a run needs now, if its Workload does not."""
    local, demand = objects.local_queue(run.queue), run.requested.demand
    if local is None or demand is None or objects.misfit(run.queue):
        return
    units: Sequence[QuotaUnits] = quota_units(demand)
    if RUNS_RESOURCE not in local.resources:
        # All else that a run needs the ClusterQueue must have quota for, as for every Workload. A
        # run without requests still needs one, to wait in line.
        units = units[1:] or (QuotaUnits(units[0].name, 1, {}),)
    if run.workload is None:
        yield CreateWorkload(run.requested.key, _body(run, _spec(run, local.name, units)))
    else:
        yield from _correction(run, run.workload, local.name, units)


def _spec(run: KueueRun, queue_name: str, units: Sequence[QuotaUnits]) -> JsonObject:
    return {
        "queueName": queue_name,
        "priority": run.priority,
        "podSets": [_pod_set(each) for each in units],
    }


def _body(run: KueueRun, spec: JsonObject) -> JsonObject:
    key, request_uid = run.requested.key, run.request.uid
    owner = {
        "apiVersion": RUN_REQUESTS.api_version,
        "kind": RUN_REQUESTS.kind,
        "name": key.name,
        "uid": request_uid,
        "controller": True,
    }
    return {
        "metadata": {
            "name": workload_name(key, request_uid),
            "namespace": key.namespace,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _correction(
    run: KueueRun, workload: ObservedWorkload, queue_name: str, units: Sequence[QuotaUnits]
) -> Iterator[PatchWorkload]:
    """Yield the patch that corrects a Workload.

    With a reservation, only the priority can be changed; units are given back instead.
    """
    changed = {"priority"} if workload.priority != run.priority else set()
    if not workload.has_reservation:
        if workload.local_queue != queue_name:
            changed.add("queueName")
        if workload.pod_sets != tuple(units):
            changed.add("podSets")
    if changed:
        wanted = _spec(run, queue_name, units)
        patch = {
            "metadata": {"resourceVersion": workload.version},
            "spec": {name: wanted[name] for name in wanted if name in changed},
        }
        yield PatchWorkload(run.requested.key, workload.name, patch)


def _deletion(run: RunKey, workload: ObservedWorkload) -> DeleteWorkload:
    return DeleteWorkload(run, workload.name, workload.uid)


def _pod_set(units: QuotaUnits) -> JsonObject:
    container = {
        "name": "unit",
        # No such pod ever runs: quota is reserved for it, and the run's own pods use that.
        "image": "none",
        "resources": {"requests": format_resources(units.requests)},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"name": units.name, "count": units.count, "template": template}
