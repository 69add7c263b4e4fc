"""What the PlacementPolicy says of past runs: how sure promises are, and how long runs count."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_engine.contract.custom_resources import read_stored_policy
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import START, a_past_run
from tests.controller.planning.noisy_cluster import NoisyCluster, cluster_with_past
from tests.controller.planning.simulated_cluster import NO_PULLS
from tests.support.histories import a_history

RUNS = 4


def say(cluster: NoisyCluster, **history: Any) -> None:
    """The policy says this of past runs from now on."""
    raw = {"metadata": {"name": "default"}, "spec": {**NO_PULLS, "history": history}}
    policy = read_stored_policy(raw)
    cluster.coordinator.handle(POLICIES, Change(("", "default"), None, policy), cluster.now)


def test_a_server_that_is_not_asked_is_said_in_the_policy():
    cluster = cluster_with_past(RUNS)
    say(cluster, memory="prometheus", prometheusURL="http://name:password@prometheus")
    assert "history.prometheusURL" in cluster.coordinator.watchdog.policy_problem
    say(cluster, memory="off")
    assert cluster.coordinator.watchdog.policy_problem == ""


def test_ranges_are_as_sure_as_the_policy_says():
    widths = {}
    for confidence in ("50%", "95%"):
        cluster = cluster_with_past(RUNS)
        say(cluster, confidence=confidence)
        placement = cluster.placement(cluster.simulate_run(RUNS))
        ends = placement.spec.first_ends
        assert placement.spec.confidence == float(confidence[:2]) / 100
        widths[confidence] = ends.high - ends.low
    assert widths["50%"] < widths["95%"]


def test_a_run_that_goes_on_is_promised_with_the_new_confidence():
    cluster = cluster_with_past(RUNS)
    name = cluster.begin_run(RUNS)
    cluster.run(lambda: cluster.placement(name).spec.first_ends is not None)
    first = cluster.placement(name)
    assert (first.spec.confidence, first.confidence) == (0.9, 0.9)
    assert first.status.confidence is None
    say(cluster, confidence="50%")
    cluster.run(lambda: cluster.placement(name).confidence == 0.5)
    status = cluster.placement(name).status
    assert status.ends is not None
    assert status.confidence == 0.5
    assert cluster.placement(name).spec.confidence == 0.9


OLD, NEW = a_past_run("p", 1), a_past_run("p", 2, ended_at=START + timedelta(days=60))
STEP = OLD.steps[0].identity


@pytest.mark.parametrize(("days", "runs"), [(30, 1), (90, 2)])
def test_runs_count_as_long_as_the_policy_says(days, runs):
    cluster = NoisyCluster()
    say(cluster, keepDays=days)
    cluster.histories.put(a_history("p", [OLD, NEW]))
    cluster.tell()
    # By its own past, and by that of the namespace.
    for each in (STEP, replace(STEP, pipeline="q")):
        past: Any = cluster.coordinator.histories.past("team", each.pipeline)
        forecast = past.past.steps.predict(each)
        assert forecast.basis.runs == runs


def test_a_shorter_time_leaves_out_what_is_known_already():
    cluster = NoisyCluster()
    cluster.histories.put(a_history("p", [OLD, NEW]))
    cluster.tell()
    before = cluster.coordinator.histories.past("team", "p")
    say(cluster, keepDays=30)
    after: Any = cluster.coordinator.histories.past("team", "p")
    assert after is not before
    forecast = after.past.steps.predict(STEP)
    assert forecast.basis.runs == 1
