"""What is promised of a run that is held back: since its start, and only until it has begun."""

from typing import Any

import pytest

from tests.controller.histories.test_history_policy import say
from tests.controller.planning.noisy_cluster import NoisyCluster, cluster_with_past

RUNS = 4


def waiting(runs: int = RUNS) -> tuple[NoisyCluster, str]:
    """A run that is held back from its submission on, after others of its pipeline."""
    cluster = cluster_with_past(runs)
    name = cluster.begin_run(runs)
    cluster.suspend(name)
    return cluster, name


def status_of(cluster: NoisyCluster, run: str) -> Any:
    return cluster.placement(run).status


def says_when_or_why_not(cluster: NoisyCluster, run: str) -> bool:
    """Return whether the placement of a run says when it ends, or why that is unknown."""
    written = any(key[1] == run for key in cluster.placements)
    if not written or cluster.placement(run).status is None:
        return False
    status = status_of(cluster, run)
    return status.ends_after_start is not None or bool(status.ends_unknown)


def test_a_run_that_waits_is_promised_since_its_start():
    cluster, name = waiting()
    cluster.run(lambda: says_when_or_why_not(cluster, name))
    status, spec = status_of(cluster, name), cluster.placement(name).spec
    assert status.ends is None
    assert spec.first_ends is None
    promised = status.ends_after_start
    cluster.pass_time(40 * 60)
    begun_at = cluster.now
    cluster.suspend(name, suspended=False)
    cluster.run()
    placement = cluster.placement(name)
    waited = (begun_at - placement.spec.submitted_at).total_seconds()
    assert waited > 2000
    assert status_of(cluster, name).ends_after_start is None
    first = placement.spec.first_ends
    since_start = [each - waited for each in (first.low, first.typical, first.high)]
    assert since_start == pytest.approx([promised.low, promised.typical, promised.high], abs=10)
    # What the run teaches does not count its wait either.
    took = cluster.history().past_runs()[-1].seconds
    assert took is not None
    assert took < 600


def test_it_says_why_nothing_is_known():
    cluster, name = waiting(runs=0)
    cluster.run(lambda: says_when_or_why_not(cluster, name))
    assert status_of(cluster, name).ends_unknown == "no run seen"
    cluster.suspend(name, suspended=False)
    cluster.run()
    assert status_of(cluster, name).ends_unknown is None


def test_a_run_that_is_stopped_halfway_has_no_such_promise():
    cluster, name = waiting()
    cluster.suspend(name, suspended=False)
    before = len(cluster.pods())
    cluster.run(lambda: len(cluster.pods()) > before)
    cluster.suspend(name)
    cluster.pass_time(15 * 60)
    assert status_of(cluster, name).ends_after_start is None


def test_it_follows_the_policy_at_its_next_forecast():
    cluster, name = waiting()
    cluster.run(lambda: says_when_or_why_not(cluster, name))
    assert cluster.placement(name).confidence == 0.9
    say(cluster, confidence="50%")
    cluster.pass_time(15 * 60)
    assert cluster.placement(name).confidence == 0.5
