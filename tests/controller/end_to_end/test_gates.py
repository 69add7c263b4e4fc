"""The other way to place pods: gates come off in the plan's order, the stock scheduler binds."""

import contextlib
import subprocess
import sys

import pytest

from kfp_placement_engine.contract.keys import PLAN_GATE
from tests.controller.end_to_end.taxi_runs import STEPS, executors, is_marked, taxi
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLAN, Installation
from tests.support.taxi_cluster import CLOUD, HOME

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_pods_go_where_they_are_planned_under_the_stock_scheduler(gated_installation, gated_team):
    run = gated_installation.submit(taxi(), gated_team)
    ended = gated_installation.wait_for_end(run, gated_team)

    assert ended["status"]["phase"] == "Succeeded"
    pods = executors(gated_installation, gated_team)
    assert set(pods) == STEPS
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"default-scheduler"}
    # All of them were held back, and given their node when it was their turn.
    assert all("nodeAffinity" in pod["spec"]["affinity"] for pod in pods.values())
    drivers = [pod for pod in gated_installation.pods(gated_team) if not is_marked(pod)]
    assert not any(pod["spec"].get("affinity") for pod in drivers)
    assert pods["train"]["spec"]["nodeName"] == CLOUD
    assert pods["predict"]["spec"]["nodeName"] == HOME


def test_the_last_resort_brings_a_run_to_its_end_when_all_else_is_dead(
    gated_installation, gated_team
):
    """The shipped job's command with the shipped account, again and again, as the CronJob does."""
    installation = gated_installation
    installation.set_policy(gateDeadline="2s")
    with contextlib.ExitStack() as dead:
        for process in (PLAN.format(1), EXTEND):
            installation.kill(process)
            dead.callback(installation.restart, process)
        # Nobody is left to say that nobody opens gates.
        assert installation.policy()["status"]["gatesReady"] is True
        run = installation.submit(taxi(), gated_team)
        freed: list[str] = []

        def ended() -> bool:
            freed.extend(released(installation))
            return bool(installation.workflow(run, gated_team).get("status", {}).get("finishedAt"))

        wait_until(ended, "the job to bring the run to its end", 90, lambda: freed)
    installation.set_policy(gateDeadline=None)
    assert installation.workflow(run, gated_team)["status"]["phase"] == "Succeeded"
    assert len(freed) == len(STEPS)


def test_with_all_of_ours_dead_a_restart_after_the_deadline_frees_every_pod(
    gated_installation, gated_team
):
    """The guarantee: no gate of ours outlives its deadline and one restart of `extend`."""
    installation = gated_installation
    installation.set_policy(gateDeadline="2s", schedulerStaleAfter="3s")
    planner = PLAN.format(1)
    try:
        installation.kill(planner)
        installation.kill(EXTEND)
        run = installation.submit(taxi(), gated_team)
        wait_until(lambda: is_held(installation, gated_team), "a pod to be held", 60)
        # As its kubelet would; the planner stays dead.
        installation.restart(EXTEND)
        ended = installation.wait_for_end(run, gated_team, 90)
        assert installation.metric(EXTEND, "gates_overdue_total") >= 1
        assert installation.policy()["status"]["gatesReady"] is False
    finally:
        installation.restart(planner)
        installation.set_policy(gateDeadline=None, schedulerStaleAfter=None)
    assert ended["status"]["phase"] == "Succeeded"
    installation.wait_for_flag("gatesReady", True)


def is_held(installation: Installation, namespace: str) -> bool:
    """Whether our gate is all that keeps a pod."""
    gates = [pod["spec"].get("schedulingGates") for pod in installation.pods(namespace)]
    return [{"name": PLAN_GATE}] in gates


def released(installation: Installation) -> list[str]:
    """The pods that one run of the job has freed."""
    command = [sys.executable, "-m", "kfp_placement_controller.main", *installation.release()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("freed ")]
