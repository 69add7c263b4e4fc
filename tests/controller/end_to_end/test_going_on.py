"""What a planner finds when it begins to lead, and our scheduler that restarts in good order."""

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.placements import wait_until_success_is_shown
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team
from tests.controller.end_to_end.test_situations import full
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLANNER, SCHEDULER
from tests.support.taxi_cluster import CLOUD, HOME, NITLAB


def test_a_planner_whose_lease_is_deleted_goes_on(installation, team):
    run = team.submit(chain("long", LASTING_SECONDS, 0.2))
    wait_until(lambda: epoch(team, run) >= 0, "the plan")
    # So that the epoch is one that a new Lease does not have.
    installation.kill(PLANNER)
    installation.restart(PLANNER)
    before = wait_until(lambda: epoch(team, run), "the new epoch")
    lease = team.api.get(
        "coordination.k8s.io/v1", "Lease", "kfp-placement-planner", "kfp-placement"
    )
    team.api.delete(lease)
    wait_until(lambda: epoch(team, run) > before, "a higher epoch")
    team.end_step(run)
    team.wait_for_success(run)
    wait_until_success_is_shown(team, run)


def test_a_run_whose_namespace_was_out_for_a_while_is_told_to_its_end(installation, team):
    run = team.submit(chain("toggled", LASTING_SECONDS, 0.2, 0.2))
    wait_until(lambda: revision(team, run) > 1, "a better plan")
    before = team.placement(run)
    team.label(ENABLED_LABEL, "false")
    installation.restart(PLANNER)
    wait_until(lambda: installation.metric(PLANNER, "leading"), "the planner to lead")
    team.label(ENABLED_LABEL, None)
    team.end_step(run)
    team.wait_for_success(run)
    wait_until_success_is_shown(team, run)
    after = team.placement(run)
    assert after.metadata.uid == before.metadata.uid
    assert after.spec.first_makespan_seconds == before.spec.first_makespan_seconds


def test_a_scheduler_that_restarts_in_good_order_keeps_its_waiting_pods(installation, team):
    deleted = installation.metric(PLANNER, "stranded_pods_deleted_total")
    with full(team, {CLOUD: "7500m", HOME: "1500m", NITLAB: "1500m"}):
        run = team.submit(chain("waiting", 0.1, cpu="1"))
        before = wait_until(lambda: the_pod(team), "the pod")
        installation.set_policy(unboundDeadline="1s", schedulerStaleAfter="60s")
        try:
            process = installation.processes[SCHEDULER]
            process.stop()
            installation.wait_for_flag("schedulerReady", False)
            process.start()
            installation.wait_ready(SCHEDULER)
            installation.wait_for_flag("schedulerReady", True)
        finally:
            installation.set_policy(unboundDeadline=None, schedulerStaleAfter=None)
    team.wait_for_success(run)
    after = the_pod(team)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["schedulerName"] == DEFAULT_SCHEDULER
    assert installation.metric(PLANNER, "stranded_pods_deleted_total") == deleted


def the_pod(team: Team) -> JsonObject:
    """That of the only step; empty if there is none yet."""
    return executors(team).get("s1", {})


def epoch(team: Team, run: str) -> int:
    placement = team.placement(run)
    return -1 if placement is None else placement.spec.epoch


def revision(team: Team, run: str) -> int:
    placement = team.placement(run)
    return 0 if placement is None else placement.spec.revision
