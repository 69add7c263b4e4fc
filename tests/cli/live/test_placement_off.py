"""`list` and `explain` say it where new pods are not placed by us."""

import json

import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import POLICIES
from tests.cli.live.conftest import condition

STALE = condition("SchedulerReady", reason="LeaseStale", message="not renewed for 15 s")
NO_PLANNER = condition("GatesReady", reason="NoPlanner", message="features/gates not installed")
NOT_INSTALLED = condition("GatesReady", reason="NotInstalled", message="a planner leads")
SET_AT = {
    "manager": "kfp-placement",
    "time": "2026-11-20T09:00:00Z",
    "fieldsV1": {"f:spec": {"f:paused": {}}},
}
TO_DEFAULT = "new pods go to the default scheduler"


def a_policy(spec=None, status=None, **metadata):
    found = {"metadata": {"name": "default", **metadata}, "spec": spec or {}}
    return found if status is None else {**found, "status": status}


CASES = {
    "paused": (a_policy({"paused": True}), f"placement is paused: {TO_DEFAULT}"),
    "paused since": (
        a_policy({"paused": True}, managedFields=[{"fieldsV1": {}}, SET_AT]),
        "placement is paused since 2026-11-20T09:00:00Z: ",
    ),
    "hostile since": (
        a_policy({"paused": True}, managedFields=[7]),
        f"placement is paused: {TO_DEFAULT}",
    ),
    "no scheduler": (
        a_policy(status={"schedulerReady": False, "conditions": [STALE]}),
        f"our scheduler is not alive, {TO_DEFAULT} since 2026-11-20T10:00:01Z (LeaseStale):"
        " not renewed for 15 s",
    ),
    "never alive": (a_policy(), f"our scheduler is not alive, {TO_DEFAULT}: nobody has said"),
    "gates without the feature": (
        a_policy(
            {"actuator": "gates"},
            {"gatesReady": False, "schedulerReady": True, "conditions": [NO_PLANNER]},
        ),
        "no planner opens gates, new pods go to the default scheduler since 2026-11-20T10:00:01Z"
        " (NoPlanner): features/gates not installed",
    ),
    "no planner under the extender": (
        a_policy(status={"schedulerReady": True, "gatesReady": False, "conditions": [NO_PLANNER]}),
        "no planner is alive, new runs get no plan since 2026-11-20T10:00:01Z (NoPlanner): ",
    ),
    "unreadable": (a_policy({"actuator": "magic"}), "the PlacementPolicy cannot be read: "),
}


@pytest.mark.parametrize("command", [["list"], ["explain", "taxi-x7k2p"]], ids=lambda each: each[0])
@pytest.mark.parametrize(("policy", "warning"), CASES.values(), ids=CASES)
def test_placement_is_off(live, cluster, command, policy, warning):
    cluster.put(POLICIES, policy)
    result = live(*command)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"Warning: {warning}")
    document = json.loads(live(*command, "-o", "json").stdout)
    assert document["placementOff"].startswith(warning)


def test_there_is_no_policy(live, cluster):
    cluster.serve(POLICIES)
    assert "placement is off: there is no PlacementPolicy" in live("list").stderr


@pytest.mark.parametrize(
    "policy",
    [
        a_policy(status={"schedulerReady": True, "gatesReady": False}),
        a_policy(
            status={"schedulerReady": True, "gatesReady": False, "conditions": [NOT_INSTALLED]}
        ),
        a_policy({"actuator": "gates"}, {"schedulerReady": False, "gatesReady": True}),
    ],
    ids=["extender", "extender, no gates installed", "gates"],
)
def test_placement_is_on(live, cluster, policy):
    cluster.put(POLICIES, policy)
    assert live("list").stderr == ""
    assert json.loads(live("list", "-o", "json").stdout)["placementOff"] is None


def test_who_may_not_read_the_policy_is_told_nothing(live, cluster):
    cluster.refused[POLICIES.path()] = ClusterForbiddenError("may not")
    assert live("list").stderr == ""
