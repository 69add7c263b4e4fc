"""The PlacementPolicy `default`: made again when it is gone, and what we found said in its status.

An admission policy whose parameter is missing does nothing, so there is always one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.metrics import PAUSED, SCHEDULER_READY
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicy
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.readers.fields import as_list, as_mapping
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import ConflictError, NotFoundError

MAX_TRIES = 5
"""`plan` and every `extend` write the same status."""


@dataclass(frozen=True, slots=True)
class Finding:
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


def ensure_policy(client: KubeClient) -> JsonObject:
    """The policy; if there is none, one with defaults only is made.

    Raises:
        KubernetesError: refused, or no answer.
    """
    found = client.get(POLICIES, POLICY_NAME)
    if found is not None:
        return found
    try:
        return client.create(POLICIES, {"metadata": {"name": POLICY_NAME}, "spec": {}})
    except ConflictError:
        # Another replica has been faster.
        return client.get(POLICIES, POLICY_NAME) or ensure_policy(client)


def show_policy(policy: PlacementPolicy | None) -> None:
    """Tell the metrics what admission goes by; None = there is no policy, and it does nothing."""
    status = None if policy is None else policy.status
    SCHEDULER_READY.set(bool(status and status.scheduler_ready))
    PAUSED.set(policy is not None and policy.spec.paused)


def set_paused(client: KubeClient, paused: bool) -> None:
    """Pause the policy, or let it go on.

    Raises:
        KubernetesError: refused, or no answer.
    """
    ensure_policy(client)
    client.patch(POLICIES, POLICY_NAME, "", {"spec": {"paused": paused}})


def write_findings(client: KubeClient, findings: Sequence[Finding], now: datetime) -> bool:
    """Say in the status what we found; returns False if it says so already.

    Args:
        client: the API server.
        findings: what we found; conditions of other types stay as they are.
        now: the time.

    Raises:
        InputError: the status has another form.
        KubernetesError: refused, or no answer.
    """
    for tries_left in reversed(range(MAX_TRIES)):
        patch = findings_patch(ensure_policy(client), findings, now)
        if patch is None:
            return False
        try:
            client.patch(POLICIES, POLICY_NAME, "", patch, subresource="status")
            return True
        except (ConflictError, NotFoundError):
            if not tries_left:
                raise
    return False


def findings_patch(
    policy: Mapping[str, Any], findings: Sequence[Finding], now: datetime
) -> JsonObject | None:
    """The merge patch of the status; None = it says all that already.

    A message alone, which may hold an age, is no change.

    Raises:
        InputError: the status has another form.
    """
    metadata = as_mapping(policy.get("metadata"), "policy: metadata")
    status = as_mapping(policy.get("status"), "policy: status")
    known = {
        as_mapping(each, "policy: condition").get("type"): each
        for each in as_list(status.get("conditions"), "policy: conditions")
    }
    generation = metadata.get("generation")
    changed = [
        finding
        for finding in findings
        if _differs(known.get(finding.condition), finding)
        or (finding.flag and status.get(finding.flag) is not finding.holds)
    ]
    if not changed:
        return None
    for finding in changed:
        old = known.get(finding.condition, {})
        since = old.get("lastTransitionTime") if old.get("status") == str(finding.holds) else None
        known[finding.condition] = {
            "type": finding.condition,
            "status": str(finding.holds),
            "reason": finding.reason,
            "message": finding.message,
            "lastTransitionTime": since or time_text(now),
            "observedGeneration": generation,
        }
    return {
        "metadata": {"resourceVersion": metadata.get("resourceVersion")},
        "status": {
            **{finding.flag: finding.holds for finding in changed if finding.flag},
            "observedGeneration": generation,
            "conditions": list(known.values()),
        },
    }


def _differs(condition: Mapping[str, Any] | None, finding: Finding) -> bool:
    if condition is None:
        return True
    said = condition.get("status"), condition.get("reason")
    return said != (str(finding.holds), finding.reason)
