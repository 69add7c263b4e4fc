"""Status of a RunQueue: whether runs are admitted, how many there are, and what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.statuses.conditions import status_changes
from kfp_placement_engine.contract.keys import ENABLED_LABEL
from kfp_placement_engine.contract.run_queue import QueueBackend, amounts_of
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_engine.units.resources import Resources
from kfp_placement_kube.kinds import JsonObject

READY = "Ready"
VALID = "Valid"
BACKEND_READY = "BackendReady"
"""Types of the conditions of a RunQueue."""


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Numbers in the status of a RunQueue.

    Attributes:
        waiting: number of runs that wait.
        admitted: number of runs that were admitted and have not ended.
        used: demand of the admitted runs, for the resources that have a quota.
        wait_ratios: waits of the runs admitted last, as shares of their forecasts.
    """

    waiting: int
    admitted: int
    used: Resources
    wait_ratios: tuple[float, ...]


def findings_of(
    queue: ObservedQueue,
    situation: Situation,
    backend_problem: str | None,
    *,
    is_excluded: bool,
    is_paused: bool,
) -> list[ConditionFinding]:
    """Return the conditions to write into the status of a queue.

    Args:
        queue: the queue.
        situation: situation of all queues and runs.
        backend_problem: reason why its backend admits no new runs, while admitted runs continue;
            "" if it admits runs, None if its backend cannot fail.
        is_excluded: whether its namespace takes no part, so that its runs start at once.
        is_paused: whether the policy is paused.
    """
    has_rules = situation.queues.has_rules(queue.key)
    blocking_type = "" if has_rules else VALID
    if backend_problem:
        blocking_type = BACKEND_READY
    default = situation.queues.of_namespace(queue.key.namespace)
    if default is None:
        message = "the namespace has no RunQueue default: none of its runs waits; create one"
        ready = ConditionFinding(READY, False, "NoDefaultQueue", message)
    elif is_excluded:
        message = f"the namespace takes no part (label {ENABLED_LABEL}): its runs begin at once"
        ready = ConditionFinding(READY, False, "NamespaceExcluded", message)
    elif is_paused:
        ready = ConditionFinding(READY, False, "Paused", "the PlacementPolicy is paused")
    else:
        ready = _admitting(queue, default, situation.planner_problem, blocking_type)
    findings = [ready, _validity(queue, has_rules=has_rules)]
    if backend_problem is not None or queue.status.condition(BACKEND_READY) is not None:
        reason, message = "Ready", f"runs are admitted by {queue.spec.backend}"
        if backend_problem:
            reason, message = "NotReady", f"nobody new begins: {backend_problem}"
        findings.append(ConditionFinding(BACKEND_READY, not backend_problem, reason, message))
    return findings


def _admitting(
    queue: ObservedQueue, default: ObservedQueue, planner_problem: str, blocking_type: str
) -> ConditionFinding:
    """Return the condition `Ready` of a queue whose namespace takes part.

    Args:
        queue: the queue.
        default: queue `default` of the namespace: admission asks it whether new runs wait.
        planner_problem: reason why no planner writes what runs need, or "".
        blocking_type: type of the condition with the reason why no new run is admitted, or "" if
            runs are admitted.
    """
    if planner_problem:
        holds = default.holds_without_controller
        new = f"new runs {'wait' if holds else 'begin'}"
        if queue.key != default.key:
            new += f", as RunQueue {default.key.name} says for all of the namespace"
        old = "wait on" if queue.holds_without_controller else "begin after its holdDeadline"
        message = f"{planner_problem}; {new}; runs that wait in this queue {old}"
        return ConditionFinding(READY, holds, "PlannerDown", message)
    if blocking_type:
        message = f"new runs are held, and nobody is admitted: see condition {blocking_type}"
        return ConditionFinding(READY, True, "NotAdmitting", message)
    return ConditionFinding(READY, True, "Admitting", "runs are admitted")


def _validity(queue: ObservedQueue, *, has_rules: bool) -> ConditionFinding:
    """Return the condition `Valid`: whether the spec could be read, and what applies if not."""
    if not queue.problem:
        message = "the queue is as it is written"
        if queue.spec.backend == QueueBackend.KUEUE and queue.spec.weight != 1:
            message += "; weight has no effect: Kueue shares by fairSharing of its ClusterQueues"
        return ConditionFinding(VALID, True, "Valid", message)
    effect = (
        "the last valid version holds" if has_rules else "nobody is admitted; correct the queue"
    )
    return ConditionFinding(VALID, False, "Misconfigured", f"{effect}: {queue.problem}")


def queue_status_patch(
    queue: ObservedQueue, findings: Sequence[ConditionFinding], counts: QueueCounts, now: datetime
) -> JsonObject | None:
    """Return the patch of the status of a queue, or None if nothing changes.

    Args:
        queue: the queue as stored.
        findings: conditions to write, `Ready` first.
        counts: numbers to write.
        now: the time.
    """
    fields = {
        "observedGeneration": queue.generation,
        "ready": findings[0].holds,
        "waiting": counts.waiting,
        "admitted": counts.admitted,
        "waitRatios": [*counts.wait_ratios],
        "used": [each.model_dump(mode="json") for each in amounts_of(counts.used)],
    }
    return status_changes(queue.status, fields, findings, queue.generation, now) or None
