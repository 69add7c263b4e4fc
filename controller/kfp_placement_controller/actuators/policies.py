"""The PlacementPolicy `default`: it is made again when it is gone, and its status has our findings.

An admission policy whose parameter is missing does nothing, so there is always one.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.metrics import PAUSED, SCHEDULER_ALIVE
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicy
from kfp_placement_engine.contract.policy_status import (
    PolicyFinding,
    new_policy,
    pause_patch,
    status_patch,
)
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import JsonObject

_POLICY = Place("policy")


def ensure_policy(client: KubeClient) -> JsonObject:
    """Return the policy; if there is none, one with defaults only is made.

    Raises:
        KubernetesError: refused, or no answer.
    """
    policy = client.get(POLICIES, POLICY_NAME)
    if policy is not None:
        return policy
    try:
        return client.create(POLICIES, new_policy())
    except WriteConflictError:
        # Another replica has been faster.
        return client.get(POLICIES, POLICY_NAME) or ensure_policy(client)


def show_policy(policy: PlacementPolicy | None) -> None:
    """Tell the metrics what admission decides by; None = no policy, and it does nothing."""
    status = None if policy is None else policy.status
    SCHEDULER_ALIVE.set(bool(status and status.scheduler_ready))
    PAUSED.set(policy is not None and policy.spec.paused)


def set_paused(client: KubeClient, paused: bool) -> None:
    """Pause the policy, or let it go on.

    Raises:
        KubernetesError: refused, or no answer.
    """
    ensure_policy(client)
    client.patch(POLICIES, POLICY_NAME, "", pause_patch(paused))


def write_findings(client: KubeClient, findings: Sequence[PolicyFinding], now: datetime) -> bool:
    """Say in the status what we found; returns False if it says so already.

    `plan` and every `extend` write the same status, so others may come before.

    Args:
        client: the API server.
        findings: findings of this process; conditions of other types stay as they are.
        now: the time.

    Raises:
        InputError: the status is malformed.
        KubernetesError: refused, or no answer.
    """

    def write(policy: JsonObject) -> bool:
        patch = findings_patch(policy, findings, now)
        if patch is None:
            return False
        client.patch(POLICIES, POLICY_NAME, "", patch, subresource="status")
        return True

    read = partial(ensure_policy, client)
    return modify(read(), write, read, retry_on=(WriteConflictError, NotFoundError))


def findings_patch(
    policy: JsonObject, findings: Sequence[PolicyFinding], now: datetime
) -> JsonObject | None:
    """Return the merge patch of the status, or None if the status has all findings already.

    Args:
        policy: policy as the API server prints it.
        findings: findings of this process; conditions of other types stay as they are.
        now: the time.

    Raises:
        InputError: the status is malformed.
    """
    raw = Fields(policy, _POLICY)
    metadata, status = raw.mapping("metadata"), raw.flat("status")
    conditions = map(status.where("condition").mapping, status.entries("conditions"))
    by_type = {str(each.get("type")): each for each in conditions}
    return status_patch(metadata, status.raw, by_type, findings, now)
