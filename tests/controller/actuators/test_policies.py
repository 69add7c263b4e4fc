"""What is said in the policy's status."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import REGISTRY

from kfp_placement_controller.actuators.policies import findings_patch, show_policy
from kfp_placement_controller.metrics import PAUSED, SCHEDULER_ALIVE
from kfp_placement_engine.contract.policy import (
    PlacementPolicy,
    PlacementPolicySpec,
    PlacementPolicyStatus,
)
from kfp_placement_engine.contract.policy_status import PolicyFinding as Finding

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
READY = Finding("SchedulerReady", True, "LeaseFresh", "renewed 1 s ago", flag="schedulerReady")
STALE = Finding("SchedulerReady", False, "LeaseStale", "renewed 20 s ago", flag="schedulerReady")


def a_policy(**status):
    metadata = {"name": "default", "resourceVersion": "5", "generation": 2}
    return {"metadata": metadata, "spec": {}, "status": status}


def patch_for(policy, *findings, now=NOW):
    """What is to be written, which is something."""
    patch = findings_patch(policy, findings, now)
    assert patch is not None
    return patch


def after(policy, *findings, now=NOW):
    """The policy once the patch is in force."""
    patch = patch_for(policy, *findings, now=now)
    return {**policy, "status": {**policy["status"], **patch["status"]}}


def test_a_first_finding_sets_flag_and_condition():
    patch = patch_for(a_policy(), READY)
    assert patch["metadata"] == {"resourceVersion": "5"}
    assert patch["status"]["schedulerReady"] is True
    (condition,) = patch["status"]["conditions"]
    assert condition == {
        "type": "SchedulerReady",
        "status": "True",
        "reason": "LeaseFresh",
        "message": "renewed 1 s ago",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "observedGeneration": 2,
    }


def test_what_is_said_already_is_not_written_again():
    policy = after(a_policy(), READY)
    older = Finding("SchedulerReady", True, "LeaseFresh", "renewed 3 s ago", flag="schedulerReady")
    assert findings_patch(policy, [READY], NOW) is None
    assert findings_patch(policy, [older], NOW) is None


def test_without_a_flag_a_new_message_is_written():
    policy = after(a_policy(), Finding("Valid", False, "Misconfigured", "a: must be a list"))
    other = Finding("Valid", False, "Misconfigured", "b: must be a list")
    assert after(policy, other)["status"]["conditions"][0]["message"] == other.message
    assert findings_patch(after(policy, other), [other], NOW) is None


def test_a_flag_that_somebody_has_changed_is_set_right():
    policy = after(a_policy(), READY)
    policy["status"]["schedulerReady"] = False
    assert patch_for(policy, READY)["status"]["schedulerReady"] is True


def test_a_change_keeps_the_conditions_of_others():
    policy = after(a_policy(), READY, Finding("GatesReady", True, "Leading", "", flag="gatesReady"))
    changed = after(policy, STALE, now=NOW + timedelta(minutes=1))["status"]
    assert {each["type"]: each["status"] for each in changed["conditions"]} == {
        "SchedulerReady": "False",
        "GatesReady": "True",
    }
    assert changed["gatesReady"] is True
    assert changed["schedulerReady"] is False


def test_the_time_of_the_transition_stays_while_only_the_reason_changes():
    policy = after(a_policy(), STALE)
    gone = Finding("SchedulerReady", False, "LeaseMissing", "", flag="schedulerReady")
    (condition,) = after(policy, gone, now=NOW + timedelta(hours=1))["status"]["conditions"]
    assert condition["reason"] == "LeaseMissing"
    assert condition["lastTransitionTime"] == "2026-11-21T12:00:00Z"


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (None, (0, 0)),
        (PlacementPolicy(), (0, 0)),
        (PlacementPolicy(status=PlacementPolicyStatus(scheduler_ready=True)), (1, 0)),
        (PlacementPolicy(spec=PlacementPolicySpec(paused=True)), (0, 1)),
    ],
    ids=["none", "new", "ready", "paused"],
)
def test_metrics_tell_what_admission_goes_by(policy, shown):
    for before in (1, 0):
        SCHEDULER_ALIVE.set(before)
        PAUSED.set(before)
        show_policy(policy)
        names = ("kfp_placement_scheduler_ready", "kfp_placement_paused")
        assert tuple(map(REGISTRY.get_sample_value, names)) == shown
