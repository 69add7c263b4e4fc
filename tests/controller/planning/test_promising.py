"""When runs end is said again as they go on."""

import gc
import weakref
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from kfp_placement_controller.histories.known_pasts import KnownPasts
from kfp_placement_controller.planning import promising
from kfp_placement_engine.model.promise import Promise, StepPromise
from kfp_placement_engine.planning.past_runs import outlook
from tests.controller.planning.noisy_cluster import NoisyCluster, cluster_with_past
from tests.support.defects import fail, times_said

RUNS = 4
"""Number of past runs after which promises are made."""


def begun() -> tuple[NoisyCluster, str]:
    """A run whose first step has a promise and runs."""
    cluster = cluster_with_past(RUNS)
    name = cluster.begin_run(10)
    cluster.run(partial(is_running, cluster, name))
    return cluster, name


def is_running(cluster: NoisyCluster, name: str) -> bool:
    placement = cluster.placements.get(("team", name))
    status = None if placement is None else placement.status
    return status is not None and status.ends is not None and status.phase == "Running"


def status_of(cluster: NoisyCluster, name: str) -> Any:
    return cluster.placement(name).status


def later(promise: Promise, seconds: float) -> Promise:
    """The steps end later, the run does not."""
    steps = {
        name: StepPromise(each.starts, each.ends.later(seconds))
        for name, each in promise.steps.items()
    }
    return replace(promise, steps=steps)


def test_what_is_promised_of_steps_follows_though_the_run_ends_as_before():
    cluster, name = begun()
    run = cluster.tracked(name)
    new = later(run.promises.last, 1200.0)
    run.promises.take(new, 0.0, run.held_seconds, may_be_first=False)
    assert run.promises.last.steps == new.steps


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
    histories, run = cluster.coordinator.histories, cluster.tracked(name)
    past = histories.past("team", run.reading.graph.name)
    assert run.reading.past is past
    held: list[weakref.ref[Any]] = [weakref.ref(past), weakref.ref(past.past)]
    del past
    cluster.run()
    assert run.observed.ended
    pasts = histories.pasts
    histories.pasts = KnownPasts(pasts.stored, pasts.keep_days, pasts.warnings)
    del pasts
    gc.collect()
    assert [each() for each in held] == [None, None]
    assert len(cluster.coordinator.registry.runs) == RUNS + 1


def test_what_was_promised_by_a_clock_that_was_wrong_is_promised_again():
    """An hour ahead for a time: the run is not said to take an hour longer for the rest of it."""
    cluster, name = begun()
    before = status_of(cluster, name).ends
    wrong = timedelta(hours=1)
    cluster.set_clock(wrong)
    tick(cluster)
    ahead = status_of(cluster, name).ends
    assert ahead.low > before.high
    cluster.set_clock(-wrong)
    tick(cluster)
    after = status_of(cluster, name).ends
    usual, name = begun()
    for _ in range(2):
        tick(usual)
    expected = status_of(usual, name).ends
    assert after.typical == pytest.approx(expected.typical, rel=0.05)


def tick(cluster: NoisyCluster) -> None:
    """The planner looks again for two minutes in which nothing happens."""
    for _ in range(8):
        for action in cluster.coordinator.tick(cluster.now):
            cluster.carry_out(action)
        cluster.now += timedelta(seconds=15)


def test_a_run_whose_promise_is_a_defect_hides_those_of_no_other(monkeypatch, caplog):
    cluster, name = begun()
    other = cluster.begin_run(11)
    sound = outlook.promise_of
    reading = cluster.tracked(name).reading

    def fail_once(outlook: Any, graph: Any, *more: Any) -> Promise:
        if graph is reading.graph:
            fail()
        return sound(outlook, graph, *more)

    monkeypatch.setattr(promising, "promise_of", fail_once)
    cluster.run(partial(is_running, cluster, other))
    cluster.run()
    assert times_said(caplog) == 1


def test_a_step_that_takes_long_moves_the_end_of_its_run():
    cluster, name = begun()
    before = status_of(cluster, name).ends
    cluster.workload.factor["work"] = 10.0
    cluster.pass_time(15 * 60)
    after = status_of(cluster, name).ends
    assert after.low > before.low
    assert after.typical > before.high
