"""What to write into the PlacementPolicy: whether it is paused, and what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.model.times import time_text


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """Something that admission and people should know.

    Attributes:
        condition: its type, such as `SchedulerReady`.
        holds: whether it is so.
        reason: one word.
        message: for people.
        flag: field of the status that says the same to admission; "" = none.
    """

    condition: str
    holds: bool
    reason: str
    message: str
    flag: str = ""


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """What the policy says now, as it is.

    Attributes:
        resource_version: of the object.
        generation: of its spec.
        status: all of it.
        conditions: by type, in their order.
    """

    resource_version: object
    generation: object
    status: Mapping[str, Any]
    conditions: Mapping[str, Mapping[str, Any]]


def new_policy(*, paused: bool = False) -> dict[str, Any]:
    """A policy with defaults only."""
    return {"metadata": {"name": POLICY_NAME}, "spec": {"paused": True} if paused else {}}


def pause_patch(paused: bool) -> dict[str, Any]:
    """The merge patch that pauses the policy, or lets it go on."""
    return {"spec": {"paused": paused}}


def status_patch(
    stored: StoredStatus, findings: Sequence[PolicyFinding], now: datetime
) -> dict[str, Any] | None:
    """The merge patch of the status; None = it says all that already.

    A message alone, which may hold an age, is not a change.

    Args:
        stored: what the policy says.
        findings: what to report; conditions of other types stay as they are.
        now: the time.
    """
    changed = [each for each in findings if _is_news(stored, each)]
    if not changed:
        return None
    conditions = {
        **stored.conditions,
        **{each.condition: _condition(stored, each, now) for each in changed},
    }
    return {
        "metadata": {"resourceVersion": stored.resource_version},
        "status": {
            **{each.flag: each.holds for each in changed if each.flag},
            "observedGeneration": stored.generation,
            "conditions": list(conditions.values()),
        },
    }


def _is_news(stored: StoredStatus, finding: PolicyFinding) -> bool:
    condition = stored.conditions.get(finding.condition)
    if condition is None:
        return True
    stored_state = condition.get("status"), condition.get("reason")
    if stored_state != (str(finding.holds), finding.reason):
        return True
    return bool(finding.flag) and stored.status.get(finding.flag) is not finding.holds


def _condition(stored: StoredStatus, finding: PolicyFinding, now: datetime) -> dict[str, Any]:
    old = stored.conditions.get(finding.condition, {})
    since = old.get("lastTransitionTime") if old.get("status") == str(finding.holds) else None
    return {
        "type": finding.condition,
        "status": str(finding.holds),
        "reason": finding.reason,
        "message": finding.message,
        "lastTransitionTime": since or time_text(now),
        "observedGeneration": stored.generation,
    }
