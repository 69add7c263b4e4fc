"""Warning, from the PlacementPolicy, that new pods are not placed or new runs not planned."""

from collections.abc import Mapping
from typing import Any

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.kinds import POLICIES, objects
from kfp_placement_engine.contract.custom_resources import Condition, read_stored_policy
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.policy import Actuator
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.formatting import sentence, shown

_GATES_READY = "GatesReady"
_NO_PLANNER = "NoPlanner"
"""Condition of gates, and its reason while no planner leads, whether gates are installed or not."""

_NO_POLICY = (
    "placement is off: there is no PlacementPolicy, new pods go to the default scheduler; a planner"
    " that works makes one"
)
_PAUSED = (
    "placement is paused{}: new pods go to the default scheduler; `release --resume` lets it go on"
)


def why_off(api: ClusterApi) -> str:
    """Return why new pods go to the default scheduler or new runs get no plan, for people.

    The text is empty if neither is the case, or if we have no right to read the policy.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    default = f"metadata.name={POLICY_NAME}"
    try:
        raw = next(objects(api, POLICIES, field_selector=default), None)
    except (ClusterForbiddenError, ClusterMissingError):
        return ""
    return _NO_POLICY if raw is None else _why_off(raw)


def _why_off(raw: Mapping[str, Any]) -> str:
    try:
        policy = read_stored_policy(dict(raw)).policy
    except InputError as error:
        return sentence(f"the PlacementPolicy cannot be read: {error}")
    if policy.spec.paused:
        return _PAUSED.format(_paused_since(raw))
    status = policy.status
    if policy.spec.actuator is Actuator.GATES:
        ready, kind, cause = status and status.gates_ready, _GATES_READY, "no planner opens gates"
    else:
        ready = status and status.scheduler_ready
        kind, cause = "SchedulerReady", "our scheduler is not alive"
    condition = None if status is None else status.condition(kind)
    if status is not None and ready:
        # Under the extender pods are placed without a planner too, but new runs get no plan.
        gates = status.condition(_GATES_READY)
        if gates is None or (gates.status, gates.reason) != ("False", _NO_PLANNER):
            return ""
        return sentence(f"no planner is alive, new runs get no plan{_since(gates)}")
    return sentence(f"{cause}, new pods go to the default scheduler{_since(condition)}")


def _since(condition: Condition | None) -> str:
    if condition is None:
        return ": no status has been reported yet"
    since = f" since {time_text(condition.last_transition_time)}"
    return f"{since} ({condition.reason}): {condition.message}"


def _paused_since(raw: Mapping[str, Any]) -> str:
    """Return ` since TIME`, when `paused` was written as the API server records it, or ""."""
    try:
        policy = Fields(raw, Place("policy"))
        for entry in policy.fields("metadata").each("managedFields"):
            if "f:paused" in entry.fields("fieldsV1").fields("f:spec"):
                return f" since {shown(entry.text('time'), 40)}"
    except InputError:
        pass  # the sentence does without
    return ""
