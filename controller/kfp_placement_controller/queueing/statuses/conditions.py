"""Conditions of RunQueues and RunRequests: those wanted, and the changes to the stored ones."""

from collections.abc import Sequence
from datetime import datetime

from kfp_placement_engine.contract.custom_resources import Condition
from kfp_placement_engine.contract.shared_parts import ConditionFinding, ResourceStatus
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.kinds import JsonObject

MAX_CONDITION_CHARACTERS = 1000
"""Longest message of a condition."""


def status_changes(
    stored: ResourceStatus,
    fields: JsonObject,
    findings: Sequence[ConditionFinding],
    generation: int | None,
    now: datetime,
) -> JsonObject:
    """Return the fields to change in a status.

    Args:
        stored: the status as stored.
        fields: wanted values of its fields, except for the conditions.
        findings: wanted conditions; those of other types stay.
        generation: generation of the spec that was read, or None to leave it out.
        now: the time.
    """
    before = stored.model_dump(mode="json", by_alias=True)
    changed = {name: value for name, value in fields.items() if before.get(name) != value}
    conditions = changed_conditions(findings, stored.conditions, generation, now)
    if conditions is not None:
        changed["conditions"] = conditions
    return changed


def changed_conditions(
    findings: Sequence[ConditionFinding],
    stored: Sequence[Condition],
    generation: int | None,
    now: datetime,
) -> list[JsonObject] | None:
    """Return the list of conditions to write into a status, or None if nothing changes.

    Args:
        findings: wanted conditions.
        stored: conditions as stored; those of other types stay.
        generation: generation of the spec that was read, or None to leave it out.
        now: the time.
    """
    before = {each.type: each for each in stored}
    made = []
    for each in findings:
        old, since = before.get(each.condition), now
        if old is not None and old.status == str(each.holds):
            since = old.last_transition_time
        observed = {} if generation is None else {"observedGeneration": generation}
        made.append(condition_object(each, since) | observed)
    if not any(_differs(before.get(each["type"]), each) for each in made):
        return None
    types = {each["type"] for each in made}
    return made + [
        each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in before.values()
        if each.type not in types
    ]


def condition_object(finding: ConditionFinding, since: datetime) -> JsonObject:
    """Return a condition in the JSON form of a status.

    Args:
        finding: the condition.
        since: time of its last transition.
    """
    return {
        "type": str(finding.condition),
        "status": str(finding.holds),
        "reason": str(finding.reason),
        "message": finding.message[:MAX_CONDITION_CHARACTERS],
        "lastTransitionTime": time_text(since),
    }


def _differs(old: Condition | None, new: JsonObject) -> bool:
    return old is None or (old.status, old.reason, old.message, old.observed_generation) != (
        new["status"],
        new["reason"],
        new["message"],
        new.get("observedGeneration"),
    )
