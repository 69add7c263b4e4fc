"""Steps that fail and are tried again, in a cluster in memory: what later runs are promised."""

from datetime import timedelta

import pytest

from kfp_placement_engine.model.history import PastRun
from tests.controller.planning.noisy_cluster import NoisyCluster, a_coordinator, a_run
from tests.controlplane.argo.small_workflows import NO_DEFAULTS

USUAL = 5
"""Runs in which no attempt fails, before the others."""


class RetryingCluster(NoisyCluster):
    """Steps may be tried again, and attempts fail when somebody says so.

    Attributes:
        backoff: how long a step waits for its next attempt, as a Workflow says it; "" = not at all.
    """

    backoff = ""

    def begin_run(self, number, namespace="team", iterations=2, **container):
        self.now += timedelta(minutes=10)
        run = a_run(f"nightly-{number}", iterations, **container)
        for template in run["spec"]["templates"]:
            if "container" in template:
                template["retryStrategy"] = {
                    "limit": 3,
                    "retryPolicy": "Always",
                    **({"backoff": {"duration": self.backoff}} if self.backoff else {}),
                }
        self.submit(run, settings=NO_DEFAULTS, namespace=namespace)
        return run["metadata"]["name"]

    def play_failing(self, number: int, step: str, seconds: float) -> PastRun:
        """A run in which the first attempt at a step fails after so long; what it has taught."""
        run = self.begin_run(number)
        self.run(lambda: self._running(run, step) is not None)
        until = self.now + timedelta(seconds=seconds)
        self.run(lambda: self.now >= until)
        self.kubelets.fail(str(self._running(run, step)), self.now)
        self._dirty = True
        self.run()
        return self.history().past_runs()[-1]

    def _running(self, run: str, step: str) -> str | None:
        pods = self.players[run].cluster.pods.items()
        return next((name for name, pod in pods if is_of(pod, step)), None)


def is_of(pod, step):
    name = pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"]
    return f".{step}" in name and pod["status"].get("phase") == "Running"


def with_usual_runs() -> RetryingCluster:
    cluster = RetryingCluster()
    for number in range(USUAL):
        cluster.play(number)
    return cluster


@pytest.fixture
def cluster() -> RetryingCluster:
    return with_usual_runs()


def test_a_run_teaches_what_it_took_for_attempts_that_failed(cluster):
    past = cluster.play_failing(USUAL, "last", 30)
    (retried,) = past.retried
    assert (retried.step, retried.failed, retried.steps) == ("last", 1, 1)
    assert retried.seconds == pytest.approx(30, abs=3)
    assert past.failed_seconds == pytest.approx(retried.seconds, abs=1)
    assert past.replayed_seconds + past.failed_seconds == pytest.approx(past.seconds, rel=0.05)


def test_so_does_one_whose_object_does_not_say_what_happened(cluster):
    """Argo keeps it elsewhere; the pods are there."""
    cluster.offload_nodes = True
    past = cluster.play_failing(USUAL, "last", 30)
    (retried,) = past.retried
    assert (retried.step, retried.failed, retried.steps) == ("last", 1, 1)
    assert retried.seconds == pytest.approx(30, abs=3)


@pytest.mark.parametrize(("backoff", "is_learned"), [("15m", True), ("80m", False)])
def test_waits_for_the_next_attempt_are_no_interruptions_up_to_an_hour(
    cluster, backoff, is_learned
):
    cluster.backoff = backoff
    past = cluster.play_failing(USUAL, "last", 30)
    assert [each.step for each in past.retried] == ["last"] * is_learned
    assert (past.seconds is not None) is is_learned


def test_later_runs_may_be_as_late_and_are_not_expected_to(cluster):
    before = cluster.first_ends(f"nightly-{USUAL - 1}")
    cluster.play_failing(USUAL, "first", 100)
    after = cluster.first_ends(cluster.play(USUAL + 1))
    assert after.typical == pytest.approx(before.typical, rel=0.1)
    assert after.high > before.high + 40


def test_a_planner_that_starts_promises_the_same(cluster):
    cluster.play_failing(USUAL, "first", 100)
    first = cluster.first_ends(cluster.play(USUAL + 1))
    restarted = with_usual_runs()
    restarted.play_failing(USUAL, "first", 100)
    restarted.hand_over(a_coordinator(), 2)
    again = restarted.first_ends(restarted.play(USUAL + 1))
    assert (again.low, again.typical, again.high) == pytest.approx(
        (first.low, first.typical, first.high), rel=0.01
    )
