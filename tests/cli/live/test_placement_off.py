"""`list` and `explain` say it where new pods are not placed by us."""

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


def a_policy(spec=None, status=None, **metadata):
    metadata = {"name": "default", **metadata}
    policy = {"kind": "PlacementPolicy", "metadata": metadata, "spec": spec or {}}
    return policy if status is None else {**policy, "status": status}


CASES = {
    "paused": a_policy({"paused": True}),
    "paused since": a_policy({"paused": True}, managedFields=[{"fieldsV1": {}}, SET_AT]),
    "hostile since": a_policy({"paused": True}, managedFields=[7]),
    "no scheduler": a_policy(status={"schedulerReady": False, "conditions": [STALE]}),
    "never alive": a_policy(),
    "gates without the feature": a_policy(
        {"actuator": "gates"},
        {"gatesReady": False, "schedulerReady": True, "conditions": [NO_PLANNER]},
    ),
    "no planner under the extender": a_policy(
        status={"schedulerReady": True, "gatesReady": False, "conditions": [NO_PLANNER]}
    ),
    "unreadable": a_policy(labels=7),
    "paused, and a part is unreadable": a_policy({"paused": True, "engine": {"islands": 0}}),
}


@pytest.mark.parametrize("command", [["list"], ["explain", "taxi-x7k2p"]], ids=lambda each: each[0])
@pytest.mark.parametrize("policy", CASES.values(), ids=CASES)
def test_placement_is_off(live, cluster, command, policy, golden):
    cluster.put(policy)
    result = live(*command)
    assert result.exit_code == 0
    golden(result.stderr)
    document = live.document(*command)
    assert result.stderr == f"Warning: {document['placementOff']}\n"


def test_there_is_no_policy(live, cluster, golden):
    cluster.serve(POLICIES)
    golden(live("list").stderr)


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
    cluster.put(policy)
    assert live("list").stderr == ""
    assert live.document("list")["placementOff"] is None


def test_who_may_not_read_the_policy_is_told_nothing(live, cluster):
    cluster.refused[POLICIES.path()] = ClusterForbiddenError("may not")
    assert live("list").stderr == ""
