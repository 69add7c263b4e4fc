"""What the status of a RunQueue says: whether runs are admitted, how many, and what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kfp_placement_controller.queueing.conditions import ConditionFinding, condition_dicts
from kfp_placement_engine.contract.keys import ENABLED_LABEL
from kfp_placement_engine.contract.resources import Condition
from kfp_placement_engine.contract.run_queue import amounts_of
from kfp_placement_engine.model.resources import Resources

READY = "Ready"
VALID = "Valid"
BACKEND_READY = "BackendReady"
"""Conditions of a RunQueue."""


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """What a queue has.

    Attributes:
        waiting: runs that wait.
        admitted: runs that were admitted and have not ended.
        used: what these demand of the resources that have a quota.
        wait_ratios: of the runs admitted last, how long they waited as shares of their forecasts.
    """

    waiting: int = 0
    admitted: int = 0
    used: Resources = field(default_factory=dict)
    wait_ratios: tuple[float, ...] = ()


def readiness(
    *,
    has_default: bool,
    is_excluded: bool,
    is_paused: bool,
    planner_problem: str,
    holds_without_controller: bool,
    nobody_admitted: str,
) -> ConditionFinding:
    """Whether new runs may be held; said by the process that admits them, while it leads.

    Args:
        has_default: the namespace has a RunQueue `default`, by which it takes part.
        is_excluded: the namespace takes no part, so admission leaves its runs alone in any case.
        is_paused: the policy is.
        planner_problem: why no planner tells what runs need; "" = one does.
        holds_without_controller: the queue lets runs wait in that case.
        nobody_admitted: the condition that says why nobody new is admitted; "" = runs are.
    """
    if not has_default:
        message = "the namespace has no RunQueue default: none of its runs waits; create one"
        return ConditionFinding(READY, False, "NoDefaultQueue", message)
    if is_excluded:
        message = f"the namespace takes no part (label {ENABLED_LABEL}): its runs begin at once"
        return ConditionFinding(READY, False, "NamespaceExcluded", message)
    if is_paused:
        return ConditionFinding(READY, False, "Paused", "the PlacementPolicy is paused")
    if planner_problem and not holds_without_controller:
        return ConditionFinding(READY, False, "PlannerDown", f"{planner_problem}; new runs begin")
    if planner_problem:
        return ConditionFinding(READY, True, "PlannerDown", f"{planner_problem}; all runs wait")
    if nobody_admitted:
        message = f"new runs are held, and nobody is admitted: see condition {nobody_admitted}"
        return ConditionFinding(READY, True, "NotAdmitting", message)
    return ConditionFinding(READY, True, "Admitting", "runs are admitted")


def validity(problem: str, *, has_rules: bool = True) -> ConditionFinding:
    """Whether the queue can be read; if not, the last one that could holds, or nobody is admitted.

    Args:
        problem: why not; "" = it can.
        has_rules: it could be read once.
    """
    if not problem:
        return ConditionFinding(VALID, True, "Valid", "the queue is as it is written")
    what = "the last valid version holds" if has_rules else "nobody is admitted; correct the queue"
    return ConditionFinding(VALID, False, "Misconfigured", f"{what}: {problem}")


def backing(backend: str, problem: str) -> ConditionFinding:
    """Whether the backend of a queue can admit anybody; while it cannot, admitted runs go on.

    Args:
        backend: its name.
        problem: why not; "" = it can.
    """
    if problem:
        return ConditionFinding(BACKEND_READY, False, "NotReady", f"nobody new begins: {problem}")
    return ConditionFinding(BACKEND_READY, True, "Ready", f"runs are admitted by {backend}")


def status_patch(
    stored: Mapping[str, Any],
    known: Mapping[str, Condition],
    findings: Sequence[ConditionFinding],
    counts: QueueCounts,
    generation: int | None,
    now: datetime,
) -> dict[str, Any] | None:
    """What to change in a status; None = it says all that already.

    Args:
        stored: the fields of the status as they are.
        known: its conditions, by type.
        findings: what to report.
        counts: likewise.
        generation: of the spec that was read.
        now: the time.
    """
    fields = {
        "ready": next(each.holds for each in findings if each.condition == READY),
        "waiting": counts.waiting,
        "admitted": counts.admitted,
        "waitRatios": [*counts.wait_ratios],
        "used": [each.model_dump(mode="json") for each in amounts_of(counts.used)],
    }
    changed = {name: value for name, value in fields.items() if stored.get(name) != value}
    conditions = condition_dicts(findings, known, generation, now)
    if conditions is not None:
        changed["conditions"] = conditions
    if changed and generation is not None:
        changed["observedGeneration"] = generation
    return changed or None
