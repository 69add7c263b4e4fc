"""Statuses of Kueue's objects: units given back, answered checks, and ended runs."""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from datetime import datetime

from kfp_placement_controller.kinds import ADMISSION_CHECKS, WORKLOADS
from kfp_placement_controller.observed.kueue_quotas import ObservedCheck
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.kueue.actions import ApplyStatus, FieldManager
from kfp_placement_controller.queueing.statuses.conditions import condition_object
from kfp_placement_engine.contract.quota_units import units_needed
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.kinds import JsonObject

MAX_MESSAGE_CHARACTERS = 1024
"""Longest message of a check."""

_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Reasons for evictions after which a Workload waits again at once; after others, Kueue decides."""


_DEACTIVATED = "Deactivated"
"""Prefix of the reasons for evictions of inactive Workloads; the cause follows it."""


def reclaim_if_changed(workload: ObservedWorkload, demand: Demand) -> Iterator[ApplyStatus]:
    """Yield the status that gives back units the run no longer needs, unless they are given back.

    Kueue lets nobody take units back while quota is reserved: a demand that has grown changes
    nothing.

    Args:
        workload: Workload with a reservation.
        demand: demand of the steps that have not ended.
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
        yield reclaimable_status(workload, given)


def reclaimable_status(workload: ObservedWorkload, given: Mapping[str, int]) -> ApplyStatus:
    """Return the status with the units given back.

    Without a reservation they can be asked for again.

    Args:
        workload: Workload of the run.
        given: number of units of each podSet.
    """
    listed = [{"name": name, "count": count} for name, count in sorted(given.items())]
    return _applied(workload, FieldManager.RECLAIM, {"reclaimablePods": listed})


def check_status(
    workload: ObservedWorkload, checks: Collection[str], unschedulable: str, now: datetime
) -> ApplyStatus:
    """Return the status that says whether the nodes of the assigned flavors can take the run.

    Args:
        workload: Workload with a reservation.
        checks: names of all its AdmissionChecks that we answer.
        unschedulable: reason why these nodes cannot take one of its steps, or "". With a reason,
            checks are rejected: "retry" would keep the quota reserved while others could use it.
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


def finished_status(workload: ObservedWorkload, *, succeeded: bool, now: datetime) -> ApplyStatus:
    """Return the status that says that the run has ended: its quota is free."""
    word = "Succeeded" if succeeded else "Failed"
    finished = condition_object(
        ConditionFinding("Finished", True, word, f"the run has {word.lower()}"), now
    )
    return _applied(workload, FieldManager.FINISH, {"conditions": [finished]})


def check_report(check: ObservedCheck, problem: str, now: datetime) -> Iterator[ApplyStatus]:
    """Yield the status that says whether the planner answers an AdmissionCheck, if it is new.

    Args:
        check: the AdmissionCheck.
        problem: reason why the planner does not answer it, or "".
        now: the time.
    """
    message = problem or "the planner plans the runs of this check"
    stored = check.active
    if stored is not None and (stored.holds, stored.message) == (not problem, message):
        return
    reason = "NoPlanner" if problem else "PlannerLeads"
    active = condition_object(ConditionFinding("Active", not problem, reason, message), now)
    body = {"metadata": {"name": check.name}, "status": {"conditions": [active]}}
    yield ApplyStatus(ADMISSION_CHECKS, FieldManager.CHECK, body)


def without_admission(raw: JsonObject, now: datetime) -> JsonObject | None:
    """Return an evicted Workload without its admission, or None if it is not evicted.

    Units that it has given back are asked for again: it waits with its whole podSets.

    Args:
        raw: the object as it is now.
        now: the time.
    """
    listed = raw.get("status", {}).get("conditions", ())
    conditions = {each["type"]: each for each in listed}
    evicted, reserved = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    if (evicted.get("status"), reserved.get("status")) != ("True", "True"):
        return None
    reason, message = evicted["reason"], evicted.get("message", "")
    if reason.startswith(_DEACTIVATED):
        # Kueue compares the whole reason when the Workload is active again.
        reason = _DEACTIVATED
    made = (
        ConditionFinding("Requeued", reason in _REQUEUED_AT_ONCE, reason, message),
        ConditionFinding("QuotaReserved", False, "Pending", message),
        ConditionFinding("Admitted", False, "NoReservation", "The workload has no reservation"),
    )
    cleared: JsonObject = deepcopy(raw)
    for field in ("admission", "reclaimablePods"):
        cleared["status"].pop(field, None)
    conditions |= {each.condition: condition_object(each, now) for each in made}
    cleared["status"]["conditions"] = [*conditions.values()]
    return cleared


def _applied(workload: ObservedWorkload, manager: FieldManager, status: JsonObject) -> ApplyStatus:
    body = {
        # With its uid, no other Workload of this name is changed.
        "metadata": {"name": workload.name, "namespace": workload.namespace, "uid": workload.uid},
        "status": status,
    }
    return ApplyStatus(WORKLOADS, manager, body)
