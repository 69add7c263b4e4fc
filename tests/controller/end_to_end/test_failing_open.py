"""Whatever of us is dead: runs come to their end, and what comes back is used again.

A test of something dead also looks at what tells operators: a condition, a flag, a probe, a log, or
a metric.
"""

import contextlib
from collections.abc import Iterator

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import (
    SLOW_FACTOR,
    bound,
    executors,
    schedulers_at_end,
    taxi,
)
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER, SCHEDULER, Installation
from tests.support.placements import planned_nodes

STOCK = "default-scheduler"
SHORT = chain("short", 0.1)


def test_without_the_extender_the_scheduler_decides_by_itself(installation, team):
    with installation.dead(EXTEND):
        run = team.submit(SHORT)
        schedulers = schedulers_at_end(team, run)
        assert not installation.is_ready(EXTEND)
        # Its own words, of each pod.
        assert "Skipping extender" in installation.processes[SCHEDULER].last_lines()
    assert schedulers == {"s1": DEFAULT_SCHEDULER}


def test_a_planner_that_dies_leaves_its_plan_behind(installation, team):
    run = team.submit(taxi())
    wait_until(lambda: team.placement(run), "the plan")
    wait_until(lambda: "train" in executors(team), "training to start")
    with installation.dead(PLANNER):
        schedulers_at_end(team, run)
        assert not installation.is_ready(PLANNER)
        plan = team.placement(run)
        pods = executors(team)
    assert plan is not None
    assert pods["predict"]["spec"]["nodeName"] == planned_nodes(plan)["predict"]


@contextlib.contextmanager
def without_scheduler(installation: Installation) -> Iterator[None]:
    """Ours is dead for a while; see `is_noticed`."""
    with installation.dead(SCHEDULER):
        installation.set_policy(schedulerStaleAfter="10m")
        try:
            yield
        finally:
            installation.set_policy(schedulerStaleAfter=None, unboundDeadline=None)


def is_noticed(installation: Installation) -> None:
    """That it is dead is said within seconds from now on, and its pods are made again.

    Not while it lives: on a busy machine it may renew its Lease later than that.
    """
    installation.set_policy(schedulerStaleAfter="3s", unboundDeadline="2s")


def reason_not_ready(installation: Installation) -> str:
    """What the policy says of our scheduler, which must not be good."""
    conditions = installation.policy()["status"]["conditions"]
    (condition,) = (each for each in conditions if each["type"] == "SchedulerReady")
    assert condition["status"] == "False"
    return str(condition["reason"])


def test_pods_of_a_dead_scheduler_are_made_again_for_the_stock_one(installation, team):
    deleted = installation.metric(PLANNER, "stranded_pods_deleted_total")
    run = team.submit(taxi(SLOW_FACTOR))
    wait_until(lambda: bound(team).get("train"), "training to start")
    with without_scheduler(installation):
        team.end_step(run, "train")
        stranded = wait_until(lambda: unbound(team), "pods that wait for it")
        is_noticed(installation)
        schedulers = schedulers_at_end(team, run)
        assert installation.policy()["status"]["schedulerReady"] is False
        assert reason_not_ready(installation) == "LeaseStale"
        assert installation.metric(PLANNER, "stranded_pods_deleted_total") > deleted
    assert schedulers["train"] == DEFAULT_SCHEDULER
    assert {schedulers[step] for step in stranded} == {STOCK}
    installation.wait_for_flag("schedulerReady", True)


def unbound(team: Team) -> set[str]:
    """Steps whose pods wait for our scheduler."""
    pods = executors(team)
    ours = {step for step, pod in pods.items() if pod["spec"]["schedulerName"] == DEFAULT_SCHEDULER}
    return ours - bound(team).keys()


def test_runs_that_start_under_a_dead_scheduler_are_left_to_the_stock_one(installation, team):
    with without_scheduler(installation):
        is_noticed(installation)
        installation.wait_for_flag("schedulerReady", False)
        assert reason_not_ready(installation) == "LeaseStale"
        run = team.submit(SHORT)
        assert schedulers_at_end(team, run) == {"s1": STOCK}
    installation.wait_for_flag("schedulerReady", True)


def test_a_paused_policy_marks_nothing(installation, team):
    installation.set_policy(paused=True)
    try:
        run = team.submit(SHORT)
        assert schedulers_at_end(team, run) == {"s1": STOCK}
    finally:
        installation.set_policy(paused=False)


def test_a_namespace_that_is_out_is_left_alone(installation):
    with team_of(installation, {ENABLED_LABEL: "false"}) as team:
        run = team.submit(SHORT)
        assert schedulers_at_end(team, run) == {"s1": STOCK}
        assert team.placement(run) is None
