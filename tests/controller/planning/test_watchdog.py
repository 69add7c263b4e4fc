"""The watchdog: a dead scheduler is noticed, its pods are freed, nobody else's are touched."""

from datetime import datetime

import pytest

from kfp_placement_controller.observed.liveness import (
    POLICY_VALID,
    HeldLease,
    LeaseWatch,
    policy_finding,
)
from kfp_placement_controller.planning.actions import DeletePod, SayFindings
from kfp_placement_controller.planning.watchdog import Watchdog, stranded_pods
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import Condition
from kfp_placement_engine.contract.policy import PlacementPolicySpec, PlacementPolicyStatus
from tests.controller.planning.builders import a_pod, a_policy, after

POLICY = PlacementPolicySpec()
ALL_USED = policy_finding("").message


def due_actions(watchdog, seconds, status=None, pods=(), policy=POLICY):
    return [
        *watchdog.scheduler_due(
            policy, status or PlacementPolicyStatus(), pods, after(seconds), seconds
        )
    ]


def a_status(**reasons):
    """What a policy says, by condition."""
    bad = {"NoLease", "LeaseStale", "NoPlanner", "NotInstalled"}
    return PlacementPolicyStatus(
        scheduler_ready=reasons["SchedulerReady"] not in bad,
        gates_ready=reasons["GatesReady"] not in bad,
        conditions=tuple(
            Condition(
                type=kind,
                status="False" if reason in bad else "True",
                reason=reason,
                message=ALL_USED if kind == POLICY_VALID else "",
                last_transition_time=after(0),
            )
            for kind, reason in reasons.items()
        ),
    )


def flags(actions):
    messages = [each for each in actions if isinstance(each, SayFindings)]
    findings = [finding for each in messages for finding in each.findings]
    return {finding.flag: finding.holds for finding in findings if finding.flag}


def renewed(clock):
    """A Lease as its holder has renewed it at that time of its own clock."""
    return HeldLease("scheduler-1", datetime.fromisoformat(f"2026-11-20T{clock}+00:00"))


def test_pods_are_not_gated_where_nobody_could_take_the_gates_off():
    watchdog = Watchdog(retry_seconds=2.0, sources=DEFAULT_SOURCES, may_gate=False)
    actions = due_actions(watchdog, 0)
    assert flags(actions)["gatesReady"] is False
    assert "NotInstalled" in [each.reason for action in actions for each in action.findings]


def a_renewed_lease():
    """Renewed after two seconds."""
    lease = LeaseWatch()
    lease.observe(renewed("07:00:00"), 0)
    lease.observe(renewed("07:00:02"), 2)
    return lease


def test_age_counts_from_the_last_change_by_our_own_clock():
    """The holder's clock may be an hour off."""
    lease = a_renewed_lease()
    lease.observe(renewed("07:00:02"), 9)
    assert lease.age_seconds(10) == 8


def test_a_lease_that_is_given_back_or_gone_is_as_old_as_its_last_renewal():
    lease = a_renewed_lease()
    assert lease.lease
    lease.observe(None, 11)
    assert not lease.lease
    assert not lease.has_renewed
    assert lease.age_seconds(12) == 10
    lease.observe(renewed("07:00:12"), 12)
    assert lease.lease
    assert (lease.has_renewed, lease.age_seconds(12)) == (False, 0)


def test_a_lease_never_seen_is_as_old_as_our_asking():
    lease = LeaseWatch()
    assert lease.age_seconds(5) == 0
    assert lease.age_seconds(25) == 20


def test_a_fresh_lease_is_said_once_and_a_stale_one_is_said():
    watchdog = Watchdog(2.0, DEFAULT_SOURCES)
    assert flags(due_actions(watchdog, 0)) == {"schedulerReady": False, "gatesReady": True}
    watchdog.scheduler_lease.observe(renewed("06:00:00"), 7)
    assert flags(due_actions(watchdog, 7)) == {"gatesReady": True}
    watchdog.scheduler_lease.observe(renewed("07:00:00"), 10)
    assert flags(due_actions(watchdog, 11)) == {"schedulerReady": True, "gatesReady": True}
    ready = a_status(SchedulerReady="LeaseFresh", GatesReady="PlannerLeads", Valid="Valid")
    assert due_actions(watchdog, 20, ready) == []
    assert flags(due_actions(watchdog, 25.1, ready))["schedulerReady"] is False


def test_a_planner_without_gates_takes_back_that_none_leads():
    watchdog = Watchdog(2.0, DEFAULT_SOURCES, may_gate=False)
    dead = a_status(SchedulerReady="NoLease", GatesReady="NoPlanner")
    assert due_actions(watchdog, 0, dead)
    alive = a_status(SchedulerReady="NoLease", GatesReady="NotInstalled", Valid="Valid")
    assert due_actions(watchdog, 10, alive) == []


def test_what_is_not_taken_over_is_said_again_but_not_at_once():
    watchdog = Watchdog(2.0, DEFAULT_SOURCES)
    assert due_actions(watchdog, 0)
    assert due_actions(watchdog, 1.9) == []
    assert due_actions(watchdog, 2.0)


def test_what_is_not_used_of_the_policy_is_said():
    watchdog = Watchdog(2.0, DEFAULT_SOURCES)
    ready = a_status(SchedulerReady="NoLease", GatesReady="PlannerLeads", Valid="Valid")
    watchdog.policy_problem = "spec.engine: must be an object, not 7"
    (written,) = due_actions(watchdog, 10, ready)
    (finding,) = (each for each in written.findings if each.condition == POLICY_VALID)
    assert (finding.holds, finding.reason) == (False, "Misconfigured")
    assert watchdog.policy_problem in finding.message


def test_the_policy_says_when_a_lease_is_stale():
    watchdog = Watchdog(2.0, DEFAULT_SOURCES)
    watchdog.scheduler_lease.observe(renewed("06:00:00"), -2)
    watchdog.scheduler_lease.observe(renewed("07:00:00"), 0)
    policy = a_policy(schedulerStaleAfter="30s")
    assert flags(due_actions(watchdog, 29, policy=policy))["schedulerReady"] is True


def stranded(seconds=100.0, age=1000.0, **fields):
    return stranded_pods([a_pod(**fields)], age, POLICY, after(seconds), DEFAULT_SOURCES)


def test_a_pod_of_a_dead_scheduler_is_deleted_after_its_deadline():
    assert stranded(60) == []
    assert len(stranded(60.1)) == 1
    assert stranded(100, age=15.0) == []
    assert len(stranded(100, age=15.1)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"node_name": "n1"},
        {"scheduler_name": "default-scheduler"},
        {"scheduler_name": "somebody-else"},
        {"workflow_uid": ""},
        {"deleting": True},
        {"gates": ("kueue.x-k8s.io/admission",)},
        {"phase": "Failed"},
        {"created_at": None},
    ],
)
def test_nobody_elses_pods_are_touched(fields):
    assert stranded(**fields) == []


@pytest.mark.parametrize("was_seen", [True, False])
def test_a_scheduler_that_restarts_keeps_its_pods(was_seen):
    """It gives its Lease back, and pods that wait for room are older than their deadline."""
    watchdog, pod = Watchdog(2.0, DEFAULT_SOURCES), a_pod()
    if was_seen:
        watchdog.scheduler_lease.observe(renewed("07:00:00"), 100)
        watchdog.scheduler_lease.observe(None, 100)

    def deleted(seconds):
        return [
            each
            for each in due_actions(watchdog, seconds, pods=[pod])
            if isinstance(each, DeletePod)
        ]

    assert deleted(100) == []
    assert deleted(115) == []
    assert deleted(115.1) == [DeletePod(pod)]


def test_a_pod_is_deleted_once_and_again_if_that_did_not_work():
    watchdog, pod = Watchdog(2.0, DEFAULT_SOURCES), a_pod()
    watchdog.scheduler_lease.observe(renewed("07:00:00"), 0)
    watchdog.scheduler_lease.observe(None, 0)
    ready = a_status(SchedulerReady="NoLease", GatesReady="PlannerLeads", Valid="Valid")
    for seconds, expected in ((100, 1), (101, 0), (102.5, 1)):
        actions = due_actions(watchdog, seconds, ready, [pod])
        assert actions == [DeletePod(pod)] * expected
