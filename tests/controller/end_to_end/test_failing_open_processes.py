"""Processes of ours that are killed or hang, and the API server that goes: no run waits for ever.

Each test also looks at what tells operators: a condition, a flag, a probe or a metric.
"""

import contextlib
from collections.abc import Iterator

from kfp_placement_engine.contract.keys import API_VERSION, DEFAULT_SCHEDULER
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.placements import wait_until_success_is_shown
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controller.end_to_end.teams import LASTING_SECONDS
from tests.controlplane.argo.watching import Watched, version_of
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER, Installation


def test_runs_that_nobody_plans_go_where_the_extender_finds_best(installation, team):
    unplanned = installation.metric(EXTEND, "answers_total", verb="filter")
    with installation.dead(PLANNER):
        run = team.submit(chain("unplanned", 0.1, 0.1))
        schedulers = schedulers_at_end(team, run)
        assert team.placement(run) is None
        assert not installation.is_ready(PLANNER)
    assert set(schedulers.values()) == {DEFAULT_SCHEDULER}
    assert installation.metric(EXTEND, "answers_total", verb="filter") > unplanned
    # Until its Lease runs out, nobody leads; runs go on, as has been seen.
    wait_until(lambda: installation.metric(PLANNER, "leading"), "the planner to lead again")


def test_without_planner_and_extender_the_scheduler_is_a_stock_one(installation, team):
    with installation.dead(PLANNER, EXTEND):
        run = team.submit(chain("alone", 0.1, 0.1))
        schedulers = schedulers_at_end(team, run)
        assert not installation.is_ready(PLANNER)
        assert not installation.is_ready(EXTEND)
    # The flag is still up, as nobody is left to say otherwise; the scheduler is alive.
    assert set(schedulers.values()) == {DEFAULT_SCHEDULER}


def test_an_extender_that_hangs_costs_half_a_second_a_question(installation, team):
    with installation.paused(EXTEND):
        run = team.submit(chain("stalled", 0.1, 0.1, 0.1))
        schedulers = schedulers_at_end(team, run)
        assert not installation.is_ready(EXTEND)
    assert set(schedulers.values()) == {DEFAULT_SCHEDULER}
    wait_until(lambda: installation.is_ready(EXTEND), "the extender to answer again")


def test_the_api_server_may_restart_while_runs_are_under_way(installation, team):
    # A planner that was killed before waits for its own Lease; the run would be over by then.
    wait_until(lambda: installation.metric(PLANNER, "leading"), "the planner to lead")
    errors = installation.metric(PLANNER, "api_errors_total")
    run = team.submit(chain("through", 3, 0.2, 0.2))
    wait_until(lambda: team.placement(run), "the plan")
    wait_until(lambda: "s1" in executors(team), "the first step")
    installation.restart_api_server()
    # A server that has just started may take pods before it knows its admission policies.
    schedulers = set(schedulers_at_end(team, run).values())
    assert schedulers <= {DEFAULT_SCHEDULER, "default-scheduler"}
    wait_until_success_is_shown(team, run)
    assert installation.metric(PLANNER, "api_errors_total") > errors


@contextlib.contextmanager
def epochs_written(installation: Installation) -> Iterator[list[int]]:
    """The epochs of all placements in the order in which they were written."""
    seen: dict[int, int] = {}
    epochs: list[int] = []

    def changed(item: JsonObject) -> None:
        seen[version_of(item)] = item["spec"]["epoch"]
        epochs[:] = [seen[version] for version in sorted(seen)]

    watch = Watched(installation.api, API_VERSION, "PipelinePlacement", changed)
    watch.start()
    try:
        yield epochs
    finally:
        watch.stop()


def test_a_planner_that_wakes_up_overwrites_nothing_of_its_successor(installation, team):
    """The leader hangs with a run under way; another takes over; then the old one goes on."""
    with installation.another_planner() as successor, epochs_written(installation) as epochs:
        run = team.submit(chain("taken-over", LASTING_SECONDS, 0.2, 0.2))
        first = wait_until(lambda: team.placement(run), "the plan").spec.epoch
        with installation.paused(PLANNER):
            wait_until(lambda: installation.metric(successor, "leading"), "the successor")
            wait_until(lambda: epochs[-1] > first, "the successor to write")
        # What it had decided before it hung, and what it learns now, is for another to write.
        wait_until(lambda: not installation.metric(PLANNER, "leading"), "the old one to notice")
        late = team.submit(chain("late", 0.2))
        team.end_step(run)
        ends_of = [team.wait_for_end(name) for name in (late, run)]
        assert {each["status"]["phase"] for each in ends_of} == {"Succeeded"}
        wait_until_success_is_shown(team, run)
        assert epochs == sorted(epochs)
        assert epochs[-1] > first
    wait_until(lambda: installation.metric(PLANNER, "leading"), "the old one to lead again")
