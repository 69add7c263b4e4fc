"""The policy on a real API server."""

from datetime import UTC, datetime

import pytest

from kfp_placement_controller.actuators.policies import ensure_policy, set_paused, write_findings
from kfp_placement_controller.kinds import POLICIES
from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
from kfp_placement_engine.contract.policy_status import PolicyFinding

pytestmark = pytest.mark.usefixtures("our_kinds")

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
READY = PolicyFinding("SchedulerReady", True, "LeaseFresh", "", flag="schedulerReady")
NO_GATES = PolicyFinding("GatesReady", False, "NoPlanner", "", flag="gatesReady")


@pytest.fixture
def policy(client):
    """Reads the policy; it is gone before and after the test."""

    def read():
        return read_resource(PlacementPolicy, client.get(POLICIES, "default"))

    client.delete(POLICIES, "default")
    yield read
    client.delete(POLICIES, "default")


def test_a_policy_that_is_missing_is_made_with_the_defaults(client, policy):
    ensure_policy(client)
    assert policy().spec == PlacementPolicy().spec
    client.delete(POLICIES, "default")
    ensure_policy(client)
    assert policy().spec == PlacementPolicy().spec


def test_what_an_admin_has_written_stays(client, policy):
    client.create(POLICIES, {"metadata": {"name": "default"}, "spec": {"paused": True}})
    ensure_policy(client)
    write_findings(client, [READY], NOW)
    assert policy().spec.paused


def test_findings_are_written_once(client, policy):
    assert write_findings(client, [READY, NO_GATES], NOW)
    status = policy().status
    assert (status.scheduler_ready, status.gates_ready) == (True, False)
    assert status.condition("GatesReady").reason == "NoPlanner"
    assert status.observed_generation == 1
    assert not write_findings(client, [READY, NO_GATES], NOW)


def test_a_policy_that_was_deleted_is_there_again_with_what_was_found(client, policy):
    write_findings(client, [READY], NOW)
    client.delete(POLICIES, "default")
    assert write_findings(client, [READY], NOW)
    assert policy().status.scheduler_ready


def test_the_policy_can_be_paused_and_go_on(client, policy):
    set_paused(client, True)
    assert policy().spec.paused
    set_paused(client, False)
    assert not policy().spec.paused
