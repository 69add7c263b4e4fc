"""Patches of the PlacementPolicy: whether it is paused, and what the controller found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_engine.units.times import time_text

_Stored = Mapping[str, Any]
"""Part of a policy as it is stored."""

_COMPARED = ("status", "reason", "message")
"""Fields of a condition that `PolicyFinding.is_published_as` compares."""


@dataclass(frozen=True, slots=True)
class PolicyFinding(ConditionFinding):
    """A wanted condition of the PlacementPolicy, which admission and people should know.

    Attributes:
        flag: field of the status that says the same to admission; "" = none.
    """

    flag: str = ""

    def is_published_as(self, status: object, reason: object, message: object) -> bool:
        """Return whether a stored condition says this; with a flag, its message may differ."""
        is_same = (status, reason) == (str(self.holds), self.reason)
        return is_same and (bool(self.flag) or message == self.message)


def new_policy(*, paused: bool = False) -> dict[str, Any]:
    """Return a policy with defaults only."""
    return {"metadata": {"name": POLICY_NAME}, "spec": {"paused": True} if paused else {}}


def pause_patch(paused: bool) -> dict[str, Any]:
    """Return the merge patch that pauses the policy, or lets it go on."""
    return {"spec": {"paused": paused}}


def status_patch(
    metadata: _Stored,
    status: _Stored,
    conditions: Mapping[str, _Stored],
    findings: Sequence[PolicyFinding],
    now: datetime,
) -> dict[str, Any] | None:
    """Return the merge patch of the status, or None if the status says all that already.

    Args:
        metadata: metadata of the policy.
        status: all that it says now.
        conditions: the conditions in it, by type, in their order.
        findings: findings to report; conditions of other types stay as they are.
        now: the time.
    """
    changed = [
        each
        for each in findings
        if not each.is_published_as(*map(conditions.get(each.condition, {}).get, _COMPARED))
        or (each.flag and status.get(each.flag) is not each.holds)
    ]
    if not changed:
        return None
    generation = metadata.get("generation")
    new_conditions = {
        each.condition: _condition(conditions.get(each.condition, {}), each, now)
        | {"observedGeneration": generation}
        for each in changed
    }
    return {
        "metadata": {"resourceVersion": metadata.get("resourceVersion")},
        "status": {
            **{each.flag: each.holds for each in changed if each.flag},
            "observedGeneration": generation,
            "conditions": list({**conditions, **new_conditions}.values()),
        },
    }


def _condition(old: _Stored, finding: PolicyFinding, now: datetime) -> dict[str, Any]:
    since = old.get("lastTransitionTime") if old.get("status") == str(finding.holds) else None
    return {
        "type": finding.condition,
        "status": str(finding.holds),
        "reason": finding.reason,
        "message": finding.message,
        "lastTransitionTime": since or time_text(now),
    }
