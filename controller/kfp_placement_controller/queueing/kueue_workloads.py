"""Runs as Kueue's Workloads: the object of a run, and every change of one; pure."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    KUEUE_API_VERSION,
    RUN_REQUESTS,
    WORKLOADS,
)
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue_actions import (
    ApplyStatus,
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    FieldManager,
    PatchWorkload,
)
from kfp_placement_engine.contract.keys import RUNS_RESOURCE
from kfp_placement_engine.contract.quota_units import QuotaUnits, quota_units, units_needed
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.quantities import format_resources
from kfp_placement_engine.model.times import time_text

MAX_NAME_CHARACTERS = 253
"""Of an object."""

MAX_MESSAGE_CHARACTERS = 1024
"""Of a condition or a check."""

_HASH_CHARACTERS = 10

_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Reasons of evictions after which a Workload waits again at once; after others, Kueue decides."""


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


def reclaim(workload: ObservedWorkload, demand: Demand) -> Iterator[ApplyStatus]:
    """Give back what a run no longer needs, unless that is given back.

    Kueue lets nobody take units back while quota is reserved: a demand that has grown changes
    nothing.

    Args:
        workload: has a reservation.
        demand: what the run still needs.
    """
    pod_sets = workload.pod_sets or ()
    needed = units_needed(pod_sets, demand)
    before = {name: count for name, count in workload.reclaimed.items() if count}
    given = {
        each.name: max(each.count - needed[each.name], before.get(each.name, 0))
        for each in pod_sets
    }
    given = {name: count for name, count in given.items() if count}
    if pod_sets and given != before:
        yield _reclaimed(workload, given)


def take_back(workload: ObservedWorkload) -> ApplyStatus:
    """Let a Workload without a reservation ask for all that its podSets say."""
    return _reclaimed(workload, {})


def answer(
    workload: ObservedWorkload, checks: Collection[str], unschedulable: str, now: datetime
) -> ApplyStatus:
    """Say that the planner has planned the run on the nodes of the assigned flavors.

    Args:
        workload: has a reservation.
        checks: names of all its AdmissionChecks that we answer.
        unschedulable: why these nodes cannot take one of its steps, or "". Then checks are
            rejected: "retry" would keep the quota reserved while others could use it.
        now: the time.
    """
    message = unschedulable or "the run is planned on the nodes of its flavors"
    entry = {
        "state": "Rejected" if unschedulable else "Ready",
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "lastTransitionTime": time_text(now),
    }
    listed = [{"name": name, **entry} for name in sorted(checks)]
    return _applied(workload, FieldManager.CHECK, {"admissionChecks": listed})


def finish(workload: ObservedWorkload, *, succeeded: bool, now: datetime) -> ApplyStatus:
    """Say that the run has ended: its quota is free."""
    word = "Succeeded" if succeeded else "Failed"
    finished = _condition("Finished", True, word, f"the run has {word.lower()}", now)
    return _applied(workload, FieldManager.FINISH, {"conditions": [finished]})


def clearing(run: RunKey, workload: ObservedWorkload) -> ClearAdmission:
    """Give back what is reserved for a Workload that was evicted."""
    return ClearAdmission(run, workload.name, workload.uid)


def deletion(run: RunKey, workload: ObservedWorkload) -> DeleteWorkload:
    """Withdraw what is asked for."""
    return DeleteWorkload(run, workload.name, workload.uid)


def report(check: str, problem: str, now: datetime) -> ApplyStatus:
    """Say whether the planner answers an AdmissionCheck.

    Args:
        check: name of the AdmissionCheck.
        problem: why it does not; "" = it does.
        now: the time.
    """
    message = problem or "the planner plans the runs of this check"
    reason = "NoPlanner" if problem else "PlannerLeads"
    active = _condition("Active", not problem, reason, message, now)
    body = {
        "apiVersion": KUEUE_API_VERSION,
        "kind": ADMISSION_CHECKS.kind,
        "metadata": {"name": check},
        "status": {"conditions": [active]},
    }
    return ApplyStatus(ADMISSION_CHECKS, "", check, FieldManager.CHECK, body)


def without_admission(raw: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    """An evicted Workload whose quota is free, as its status is replaced; None = it has none.

    What it has given back is asked for again: it comes back with its whole podSets.

    Args:
        raw: the object as it is now.
        now: the time.
    """
    status = raw.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    found = {
        each["type"]: each
        for each in conditions or ()
        if isinstance(each, Mapping) and isinstance(each.get("type"), str)
    }
    evicted, reserved = found.get("Evicted", {}), found.get("QuotaReserved", {})
    if (evicted.get("status"), reserved.get("status")) != ("True", "True"):
        return None
    reason, message = str(evicted.get("reason") or "Evicted"), str(evicted.get("message") or "")
    made = (
        _condition("Requeued", reason in _REQUEUED_AT_ONCE, reason, message, now),
        _condition("QuotaReserved", False, "Pending", message, now),
        _condition("Admitted", False, "NoReservation", "The workload has no reservation", now),
    )
    cleared = deepcopy({**raw})
    for field in ("admission", "reclaimablePods"):
        cleared["status"].pop(field, None)
    kept = {name: each for name, each in found.items() if name}
    cleared["status"]["conditions"] = [*{**kept, **{each["type"]: each for each in made}}.values()]
    return cleared


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


def _reclaimed(workload: ObservedWorkload, given: Mapping[str, int]) -> ApplyStatus:
    listed = [{"name": name, "count": count} for name, count in sorted(given.items())]
    return _applied(workload, FieldManager.RECLAIM, {"reclaimablePods": listed})


def _applied(
    workload: ObservedWorkload, manager: FieldManager, status: Mapping[str, Any]
) -> ApplyStatus:
    body = {
        "apiVersion": KUEUE_API_VERSION,
        "kind": WORKLOADS.kind,
        # With its uid, no other Workload of this name is changed.
        "metadata": {
            "name": workload.name,
            "namespace": workload.namespace,
            "uid": workload.uid,
        },
        "status": status,
    }
    return ApplyStatus(WORKLOADS, workload.namespace, workload.name, manager, body)


def _condition(
    condition: str, holds: bool, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    return {
        "type": condition,
        "status": str(holds),
        "reason": reason,
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "lastTransitionTime": time_text(now),
    }
