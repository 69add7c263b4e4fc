"""Runs are forecast again as they go on."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

from kfp_placement_controller.planning.forecasts import _is_overdue
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import Promise, StepPromise
from tests.controller.planning.noisy_cluster import NoisyCluster

SMALL = 2
"""Iterations of the loop."""

RUNS = 4
"""After which promises are made."""


def begun() -> tuple[NoisyCluster, str]:
    """A run whose first step has a promise and runs."""
    cluster = NoisyCluster()
    for number in range(RUNS):
        cluster.play(number, iterations=SMALL)
    name = cluster.begin_run(10, iterations=SMALL)
    cluster.run(partial(is_running, cluster, name))
    return cluster, name


def is_running(cluster: NoisyCluster, name: str) -> bool:
    placement = cluster.placements.get(("team", name))
    status = None if placement is None else placement.status
    return status is not None and status.ends is not None and status.phase == "Running"


def tracked(cluster: NoisyCluster, name: str) -> TrackedRun:
    return cluster.coordinator.registry.runs[RunKey("team", name)]


def later(promise: Promise, seconds: float) -> Promise:
    """The steps end later, the run does not."""
    steps = {
        name: StepPromise(each.starts, each.ends.later(seconds))
        for name, each in promise.steps.items()
    }
    return replace(promise, steps=steps)


def test_what_is_promised_of_steps_follows_though_the_run_ends_as_before():
    cluster, name = begun()
    run = tracked(cluster, name)
    assert run.promise is not None
    new = later(run.promise, 1200.0)
    run.promised(SimpleNamespace(promise=new, release_seconds=0.0))  # type: ignore[arg-type]
    assert run.promise.steps == new.steps


def test_a_step_is_not_overdue_by_a_promise_that_a_later_forecast_has_moved_a_little():
    cluster, name = begun()
    run = tracked(cluster, name)
    assert run.promise is not None
    end = max(run.promise.steps[each].ends.typical_seconds for each in ["first"])
    now = run.observed.submitted_at + timedelta(seconds=end + 1)
    assert _is_overdue(run, now)
    new = later(run.promise, 5.0)
    run.promised(SimpleNamespace(promise=new, release_seconds=0.0))  # type: ignore[arg-type]
    assert run.promise is not new
    assert not _is_overdue(run, now)
