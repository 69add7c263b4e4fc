"""Runs as Kueue's Workloads: the object of a run, and what is asked for by it; pure."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from kfp_placement_controller.kinds import (
    KUEUE_API_VERSION,
    RUN_REQUESTS,
    WORKLOADS,
)
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue.actions import (
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    PatchWorkload,
)
from kfp_placement_engine.contract.keys import RUNS_RESOURCE
from kfp_placement_engine.contract.quota_units import QuotaUnits, quota_units
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.quantities import format_resources

MAX_NAME_CHARACTERS = 253
"""Of an object."""

_HASH_CHARACTERS = 10


def workload_name(run: RunKey, request_uid: str) -> str:
    """The name of a run's Workload: a later run of the same name has another.

    Args:
        run: that the Workload is of.
        request_uid: of its RunRequest.
    """
    digest = hashlib.sha256(request_uid.encode()).hexdigest()[:_HASH_CHARACTERS]
    room = MAX_NAME_CHARACTERS - len("run--") - len(digest)
    return f"run-{run.name[:room].rstrip('-.')}-{digest}"


def pod_sets(demand: Demand, covered: Collection[str]) -> tuple[QuotaUnits, ...]:
    """What a run reserves.

    Args:
        demand: what it needs.
        covered: resources that the ClusterQueue has quota for. It need not count runs; all else
            that a run needs it must have, as for every Workload.
    """
    units = quota_units(demand)
    if RUNS_RESOURCE in covered:
        return units
    # A run without requests still needs a Workload, to wait in line.
    return units[1:] or (QuotaUnits(units[0].name, 1, {}),)


def creation(
    run: RunKey,
    request_uid: str,
    local_queue: str,
    priority: int,
    units: Sequence[QuotaUnits],
) -> CreateWorkload:
    """Ask for quota for a run.

    Args:
        run: that the Workload is of.
        request_uid: of its RunRequest, which owns the Workload.
        local_queue: where it waits.
        priority: among others.
        units: what it reserves.
    """
    owner = {
        "apiVersion": RUN_REQUESTS.api_version,
        "kind": RUN_REQUESTS.kind,
        "name": run.name,
        "uid": request_uid,
        "controller": True,
    }
    body = {
        "apiVersion": KUEUE_API_VERSION,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": workload_name(run, request_uid),
            "namespace": run.namespace,
            "ownerReferences": [owner],
        },
        "spec": {
            "queueName": local_queue,
            "priority": priority,
            "podSets": [_pod_set(each) for each in units],
        },
    }
    return CreateWorkload(run, body)


def correction(
    run: RunKey,
    workload: ObservedWorkload,
    local_queue: str,
    priority: int,
    units: Sequence[QuotaUnits],
) -> Iterator[PatchWorkload]:
    """Ask for what is wanted by now, if anything else is asked for.

    What is reserved cannot be changed; it is given back by `reclaim`. Only the priority can be
    changed at any time.

    Args:
        run: that the Workload is of.
        workload: as it is.
        local_queue: where it is to wait.
        priority: among others.
        units: what it is to reserve.
    """
    spec: dict[str, Any] = {}
    if workload.priority != priority:
        spec["priority"] = priority
    if not workload.has_reservation:
        if workload.local_queue != local_queue:
            spec["queueName"] = local_queue
        if workload.pod_sets is None or not _are_same(workload.pod_sets, units):
            spec["podSets"] = [_pod_set(each) for each in units]
    if spec:
        patch = {"metadata": {"resourceVersion": workload.version}, "spec": spec}
        yield PatchWorkload(run, workload.name, patch)


def clearing(run: RunKey, workload: ObservedWorkload) -> ClearAdmission:
    """Give back what is reserved for a Workload that was evicted."""
    return ClearAdmission(run, workload.name, workload.uid)


def deletion(run: RunKey, workload: ObservedWorkload) -> DeleteWorkload:
    """Withdraw what is asked for."""
    return DeleteWorkload(run, workload.name, workload.uid)


def _pod_set(units: QuotaUnits) -> dict[str, Any]:
    container = {
        "name": "unit",
        # Nothing runs it: quota is reserved for it, and the run's own pods take it.
        "image": "none",
        "resources": {"requests": format_resources(units.requests)},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"name": units.name, "count": units.count, "template": template}


def _are_same(some: Sequence[QuotaUnits], others: Sequence[QuotaUnits]) -> bool:
    return [(each.name, each.count, dict(each.requests)) for each in some] == [
        (each.name, each.count, dict(each.requests)) for each in others
    ]
