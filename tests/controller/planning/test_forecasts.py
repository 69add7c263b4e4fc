"""Runs are forecast again as they go on."""

import gc
import weakref
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kfp_placement_controller.planning.forecasts import (
    MOST_FAILURES,
    PAUSE,
    _Asked,
    _is_overdue,
    _Made,
)
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_controller.planning.run_variants import key_text
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.placement import PipelinePlacementStatus
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import Promise, StepPromise, TimeRange
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


def status_of(cluster: NoisyCluster, name: str) -> PipelinePlacementStatus:
    status = cluster.placement(name).status
    assert status is not None
    return status


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
    assert run.promises.last is not None
    new = later(run.promises.last, 1200.0)
    run.promises.take(new, 0.0, run.held_seconds, may_be_first=False)
    assert run.promises.last.steps == new.steps


def test_a_step_is_not_overdue_by_a_promise_that_a_later_forecast_has_moved_a_little():
    cluster, name = begun()
    run = tracked(cluster, name)
    assert run.promises.last is not None
    end = max(run.promises.last.steps[each].ends.typical_seconds for each in ["first"])
    now = run.observed.submitted_at + timedelta(seconds=end + 1)
    assert _is_overdue(run, now)
    new = later(run.promises.last, 5.0)
    run.promises.take(new, 0.0, run.held_seconds, may_be_first=False)
    assert run.promises.last is not new
    assert not _is_overdue(run, now)


def test_a_step_that_should_have_started_is_overdue_and_so_is_a_run_that_should_have_ended():
    cluster, name = begun()
    run = tracked(cluster, name)
    assert run.promises.expected is not None
    assert run.promises.expected.ends is not None
    ends, starts = run.promises.expected.ends, run.promises.expected.steps["last"].starts
    never = TimeRange(1e6, 1e6, 1e6)
    steps = {"last": StepPromise(starts, never)}
    submitted_at = run.observed.submitted_at
    run.promises.expected = Promise(ends=never, steps=steps)
    assert not _is_overdue(run, submitted_at + timedelta(seconds=starts.high_seconds - 1))
    assert _is_overdue(run, submitted_at + timedelta(seconds=starts.high_seconds + 1))
    run.promises.expected = Promise(ends=ends)
    assert not _is_overdue(run, submitted_at + timedelta(seconds=ends.high_seconds - 1))
    assert _is_overdue(run, submitted_at + timedelta(seconds=ends.high_seconds + 1))


def test_forecasts_of_a_namespace_that_fail_pause_those_of_no_other():
    cluster, name = begun()
    cluster.run()
    for number in range(RUNS):
        cluster.play(number, "other", SMALL)
    name, other = cluster.begin_run(11, "team", SMALL), cluster.begin_run(12, "other", SMALL)
    cluster.run(lambda: ("other", other) in cluster.placements)
    forecasts, key = cluster.coordinator.forecasts, RunKey("team", name)
    for number in range(3):
        forecasts._has_failed(key, RoundFailure(number, "it was killed", died=True), cluster.now)
    pauses = {name: each.length for name, each in forecasts._pauses.items()}
    assert pauses == {"team": 4 * PAUSE}
    asked = cluster.rounds[:]
    until = cluster.now + 4 * PAUSE
    cluster.run(lambda: cluster.now > until - timedelta(seconds=5))
    of_forecasts = [each.round for each in cluster.rounds[len(asked) :] if each.round.is_forecast]
    assert {run.key for each in of_forecasts for run in each.to_replan} == {f"other/{other}"}


def test_a_forecast_of_a_run_that_is_gone_is_not_that_of_the_next_of_its_name():
    cluster, name = begun()
    run, forecasts = tracked(cluster, name), cluster.coordinator.forecasts
    before, promise = run.promises.last, run.promises.last
    assert promise is not None
    forecasts._asked = _Asked(1_000_000, run.key, "uid of an earlier run", False)
    plan: Any = SimpleNamespace(promise=later(promise, 1200.0), release_seconds=0.0)
    result = RoundResult(1_000_000, {key_text(run.key): plan})
    assert forecasts.ended(result, cluster.now)
    assert run.promises.last is before
    forecasts._asked = _Asked(1_000_000, run.key, "uid of an earlier run", False)
    made = dict(forecasts._made)
    assert forecasts.ended(RoundFailure(1_000_000, "it was killed", died=True), cluster.now)
    assert forecasts._made == made
    forecasts._asked = _Asked(1_000_000, run.key, run.observed.uid, False)
    assert forecasts.ended(result, cluster.now)
    assert run.promises.last is not before


def test_a_run_made_again_under_its_name_is_forecast_whatever_failed_before():
    cluster, name = begun()
    forecasts, key = cluster.coordinator.forecasts, RunKey("team", name)
    for number in range(MOST_FAILURES):
        forecasts._has_failed(key, RoundFailure(number, "it was killed", died=True), cluster.now)
    (run,) = cluster.coordinator.registry.planned()
    at = cluster.now + timedelta(days=1)
    assert not forecasts._is_due(run, at)
    forecasts.forget(key)
    assert forecasts._is_due(run, at)


def test_a_run_that_is_suspended_halfway_has_no_end():
    cluster, name = begun()
    cluster.suspend(name)
    cluster.run(lambda: status_of(cluster, name).ends is None)
    assert status_of(cluster, name).ends_unknown == "the run is held back"
    cluster.suspend(name, suspended=False)
    cluster.run(lambda: status_of(cluster, name).ends is not None)


def test_a_run_that_has_ended_holds_no_past():
    """It may stay for days; what past runs tell is large, and there may be another by then."""
    cluster, name = begun()
    histories, run = cluster.coordinator.histories, tracked(cluster, name)
    assert run.variant.reading is not None
    past = histories.past("team", run.variant.reading.graph.name)
    assert past is not None
    assert run.variant.reading.past is past
    held: list[weakref.ref[Any]] = [weakref.ref(past), weakref.ref(past.past)]
    del past
    cluster.run()
    assert run.observed.ended
    histories._pasts._kept.clear()
    gc.collect()
    assert [each() for each in held] == [None, None]
    assert len(cluster.coordinator.registry.runs) == RUNS + 1


def test_a_clock_that_was_set_back_holds_up_no_forecast():
    cluster, name = begun()
    forecasts, key = cluster.coordinator.forecasts, RunKey("team", name)
    run = next(each for each in cluster.coordinator.registry.planned() if each.key == key)
    forecasts._made[key] = _Made(cluster.now, frozenset())
    assert not forecasts._is_due(run, cluster.now + PAUSE / 2)
    assert forecasts._is_due(run, cluster.now - timedelta(hours=1))
    forecasts._has_failed(key, RoundFailure(1, "it was killed", died=True), cluster.now)
    pause = forecasts._pauses["team"]
    assert lasts(pause.length, pause.since, cluster.now)
    assert not lasts(pause.length, pause.since, cluster.now - timedelta(hours=1))


def test_what_was_promised_by_a_clock_that_was_wrong_is_promised_again():
    """An hour ahead for a time: the run is not said to take an hour longer for the rest of it."""
    cluster, name = begun()
    before = status_of(cluster, name).ends
    assert before is not None
    wrong = timedelta(hours=1)
    cluster.now += wrong
    tick(cluster)
    ahead = status_of(cluster, name).ends
    assert ahead is not None
    assert ahead.low > before.high
    cluster.now -= wrong
    cluster.coordinator.clock_set(-wrong)
    tick(cluster)
    after = status_of(cluster, name).ends
    assert after is not None
    assert after.typical == pytest.approx(before.typical, rel=0.2)


def tick(cluster: NoisyCluster) -> None:
    """The planner looks again for two minutes in which nothing happens."""
    for _ in range(8):
        for action in cluster.coordinator.tick(cluster.now):
            cluster._carry_out(action)
        cluster.now += timedelta(seconds=15)
