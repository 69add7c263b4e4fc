"""Runs that no search plans, or none soon, are forecast by the plans that were made at once."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from kfp_placement_controller.planning.forecasts import PAUSE
from kfp_placement_controller.planning.run_promises import RunPromises
from kfp_placement_controller.planning.triggers import Trigger
from tests.controller.planning.noisy_cluster import NoisyCluster, a_coordinator, a_run
from tests.controller.planning.test_forecasts import (
    RUNS,
    SMALL,
    begun,
    is_running,
    status_of,
    tracked,
)
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, task


def a_single_step(name: str) -> dict[str, Any]:
    """A run whose only step starts long before a search comes round."""
    run = a_run(name, SMALL)
    run["spec"]["templates"][0]["dag"]["tasks"] = [task("work")]
    return run


def pass_time(cluster: NoisyCluster, minutes: float) -> None:
    """Whatever happens in so many minutes."""
    until = cluster.now + timedelta(minutes=minutes)
    cluster.run(lambda: cluster.now > until)


def test_a_run_whose_steps_all_start_before_a_search_has_an_end_all_the_same():
    cluster = NoisyCluster()
    said = []
    for number in range(3):
        cluster.now += timedelta(minutes=10)
        name = f"nightly-{number}"
        cluster.submit(a_single_step(name), settings=NO_DEFAULTS)
        pass_time(cluster, 1)
        status, plan = status_of(cluster, name), tracked(cluster, name).plan
        assert plan is not None
        assert plan.quick
        said.append(status.ends_unknown or status.ends is not None)
        cluster.run()
    assert said == ["no run seen", True, True]


def test_what_a_forecast_promises_first_is_written_and_lasts_over_a_failover():
    cluster = NoisyCluster()
    for number in range(RUNS):
        cluster.submit(a_single_step(f"nightly-{number}"), settings=NO_DEFAULTS)
        cluster.run()
        cluster.now += timedelta(minutes=10)
    name = "nightly-last"
    cluster.submit(a_single_step(name), settings=NO_DEFAULTS)
    cluster.run(partial(is_running, cluster, name))
    first = cluster.first_ends(name)
    cluster.hand_over(a_coordinator(), 2)
    cluster.run()
    assert cluster.first_ends(name) == first
    assert cluster.history().past_runs()[-1].played_seconds == pytest.approx(first.played)


def test_a_plan_made_at_once_is_forecast_where_no_search_of_the_run_comes_for_some_time():
    cluster, name = begun()
    forecasts, tracked_run = cluster.coordinator.forecasts, tracked(cluster, name)
    assert tracked_run.plan is not None
    tracked_run.put_into_force(replace(tracked_run.plan, quick=True, planned_at=cluster.now))
    tracked_run.promises = RunPromises()
    forecasts.forget(tracked_run.key)
    (run,) = cluster.coordinator.registry.planned()
    tracked_run.pending = {Trigger.NEW_RUN}
    assert tracked_run.unstarted()
    assert not forecasts._is_due(run, cluster.now + PAUSE / 2)
    assert forecasts._is_due(run, cluster.now + PAUSE)
    # The search that was asked for has failed, and no other one is.
    tracked_run.pending = set()
    assert forecasts._is_due(run, cluster.now)


def test_a_run_that_goes_on_after_a_break_is_forecast_though_nothing_is_left_to_start():
    cluster, name = begun()
    cluster.workload.factor["last"] = 20
    cluster.run(lambda: cluster.states(name)["last"] == "running")
    cluster.suspend(name)
    cluster.run(lambda: status_of(cluster, name).ends is None)
    cluster.suspend(name, suspended=False)
    cluster.run(lambda: status_of(cluster, name).ends is not None)
    before = status_of(cluster, name).ends
    assert before is not None
    pass_time(cluster, 10)
    after = status_of(cluster, name).ends
    assert after is not None
    assert after.low > before.high


def test_a_run_under_way_hears_of_the_first_that_ends_though_other_pipelines_are_known():
    cluster = NoisyCluster()
    for number in range(RUNS):
        cluster.play(number, iterations=SMALL)
    names = ["single-1", "single-2"]
    for factor, name in zip([10, 20], names, strict=True):
        cluster.workload.factor["work"] = factor
        run = a_single_step(name)
        run["metadata"]["generateName"] = "single-"
        cluster.submit(run, settings=NO_DEFAULTS)
        pass_time(cluster, 5)
    assert [status_of(cluster, name).ends_unknown for name in names] == ["no run seen"] * 2
    cluster.run(lambda: cluster.players["single-1"].phase == "Succeeded")
    pass_time(cluster, 2)
    assert cluster.states("single-2") == {"work": "running"}
    assert status_of(cluster, "single-2").ends is not None
