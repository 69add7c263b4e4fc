"""Whatever of us is dead: runs come to their end, and what comes back is used again."""

import contextlib
from collections.abc import Iterator

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from tests.controller.end_to_end.taxi_runs import STEPS, executors, taxi
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLAN, SCHEDULER, Installation

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

STOCK = "default-scheduler"
PLANNER = PLAN.format(1)


@contextlib.contextmanager
def dead(installation: Installation, process: str) -> Iterator[None]:
    """A process that is killed for a while."""
    installation.kill(process)
    try:
        yield
    finally:
        installation.restart(process)


def test_without_the_extender_the_scheduler_decides_by_itself(installation, team):
    with dead(installation, EXTEND):
        run = installation.submit(taxi(), team)
        ended = installation.wait_for_end(run, team)
    assert ended["status"]["phase"] == "Succeeded"
    pods = executors(installation, team)
    assert set(pods) == STEPS
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {DEFAULT_SCHEDULER}


def test_a_planner_that_dies_leaves_its_plan_behind(installation, team):
    run = installation.submit(taxi(), team)
    wait_until(lambda: installation.placement(run, team), "the plan")
    wait_until(lambda: "train" in executors(installation, team), "training to start")
    with dead(installation, PLANNER):
        ended = installation.wait_for_end(run, team)
        assert ended["status"]["phase"] == "Succeeded"
        plan = installation.placement(run, team)
        pods = executors(installation, team)
    assert plan is not None
    assert pods["predict"]["spec"]["nodeName"] == plan.planned_nodes()["predict"]


@pytest.fixture
def short_deadlines(installation: Installation) -> Iterator[None]:
    """A dead scheduler is noticed after 3 s, and its pods are made again after 2 s."""
    installation.set_policy(schedulerStaleAfter="3s", unboundDeadline="2s")
    yield
    installation.set_policy(schedulerStaleAfter=None, unboundDeadline=None)


@pytest.mark.usefixtures("short_deadlines")
def test_pods_of_a_dead_scheduler_are_made_again_for_the_stock_one(installation, team):
    run = installation.submit(taxi(), team)
    wait_until(lambda: "train" in executors(installation, team), "training to start")
    with dead(installation, SCHEDULER):
        ended = installation.wait_for_end(run, team, timeout_seconds=90)
        assert ended["status"]["phase"] == "Succeeded"
        assert installation.policy()["status"]["schedulerReady"] is False
        pods = executors(installation, team)
    assert pods["train"]["spec"]["schedulerName"] == DEFAULT_SCHEDULER
    assert pods["evaluate"]["spec"]["schedulerName"] == STOCK
    installation.wait_for_flag("schedulerReady", True)


@pytest.mark.usefixtures("short_deadlines")
def test_runs_that_start_under_a_dead_scheduler_are_left_to_the_stock_one(installation, team):
    with dead(installation, SCHEDULER):
        installation.wait_for_flag("schedulerReady", False)
        run = installation.submit(taxi(), team)
        installation.wait_for_end(run, team)
        pods = executors(installation, team)
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {STOCK}
    installation.wait_for_flag("schedulerReady", True)


def test_a_paused_policy_marks_nothing(installation, team):
    installation.set_policy(paused=True)
    try:
        run = installation.submit(taxi(), team)
        installation.wait_for_end(run, team)
    finally:
        installation.set_policy(paused=False)
    pods = executors(installation, team)
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {STOCK}


def test_a_namespace_that_is_out_is_left_alone(installation):
    with installation.namespace({ENABLED_LABEL: "false"}) as team:
        run = installation.submit(taxi(), team)
        installation.wait_for_end(run, team)
        pods = executors(installation, team)
        assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {STOCK}
        assert installation.placement(run, team) is None
