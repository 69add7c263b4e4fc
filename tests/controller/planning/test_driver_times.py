"""Promises where KFP's drivers take longer one hour than the next, played in memory."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_engine.contract.placement import EndRange, FirstEnds
from tests.controller.end_to_end.small_pipelines import compiled, step
from tests.controller.planning.noisy_cluster import a_coordinator
from tests.controller.planning.played_cluster import PlayedCluster
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.kubernetes import node_object

STEPS = 4
QUICK, SLOW = 2.0, 12.0
"""What a driver takes, in seconds."""

LEAST_KEPT = 0.85
ELSEWHERE_SECONDS = 40.0
"""The same in another namespace."""


def a_run(name: str, steps: int = STEPS) -> Any:
    """Steps of KFP in a row, without a hint."""

    def body() -> None:
        last: tuple[Any, ...] = ()
        for number in range(steps):
            last = (step(f"s{number}", *last, duration=None),)

    run = compiled("nightly", body)
    run["metadata"]["name"] = name
    return run


class Driven:
    """Runs of one pipeline, one after the other.

    Attributes:
        cluster: where they run.
        live: the last value of `status.ends` at the middle of each run, and what it took.
    """

    def __init__(self, steps: int = STEPS) -> None:
        self.cluster = PlayedCluster(node_object("n0"), coordinator=a_coordinator())
        self.live: list[tuple[EndRange | None, float]] = []
        self._steps = steps
        self._runs: list[str] = []

    def play(
        self, driver_seconds: Sequence[float], namespace: str = "team"
    ) -> list[tuple[FirstEnds | None, float]]:
        """What was promised first, and what each run took; a driver takes so long in it."""
        return [self._play(each, namespace) for each in driver_seconds]

    def _play(self, driver_seconds: float, namespace: str) -> tuple[FirstEnds | None, float]:
        cluster, name = self.cluster, f"run-{len(self._runs)}"
        self._runs.append(name)
        cluster.now += timedelta(minutes=10)
        settings = WorkloadSettings(driver_seconds, step_seconds=60, spread=0.05, start_seconds=0)
        cluster.kubelets = Kubelets(Workload(settings))
        cluster.submit(a_run(name, self._steps), namespace=namespace)
        half = timedelta(seconds=self._steps * (60 + driver_seconds) / 2)
        half_at = cluster.now + half
        cluster.run(lambda: cluster.now >= half_at)
        status = cluster.placement(name).status
        said = None if status is None else status.ends
        cluster.run()
        placement = cluster.placement(name)
        assert placement.status is not None
        assert placement.status.makespan_seconds is not None
        self.live.append((said, placement.status.makespan_seconds))
        return placement.spec.first_ends, placement.status.makespan_seconds

    def forget_pods(self) -> None:
        """All runs so far are deleted with their pods."""
        for name in self._runs:
            self.cluster.players.pop(name, None)
        self.cluster.tell()


def holds(ends: FirstEnds | EndRange | None, took: float) -> bool:
    assert ends is not None
    return ends.low <= took <= ends.high


def test_a_busy_hour_makes_promises_of_the_next_no_earlier_or_later():
    driven = Driven()
    before = driven.play([QUICK] * 6)[3:]
    driven.play([SLOW] * 2)
    after = driven.play([QUICK] * 6)
    kept = [holds(*each) for each in before + after]
    assert sum(kept) >= LEAST_KEPT * len(kept)


def test_a_restarted_planner_promises_the_same_whatever_drivers_it_has_seen():
    promised = []
    for is_restarted in (False, True):
        driven = Driven()
        driven.play([SLOW] * 6)
        if is_restarted:
            driven.forget_pods()
            driven.cluster.hand_over(a_coordinator(), 2)
        ((ends, took),) = driven.play([SLOW])
        assert holds(ends, took)
        promised.append(ends)
    assert promised[0] == promised[1]


def test_drivers_that_take_longer_from_now_on_are_followed():
    driven = Driven()
    driven.play([QUICK] * 6)
    ((usual, _),) = driven.play([QUICK])
    last, took = driven.play([SLOW] * 12)[-1]
    assert usual is not None
    assert last is not None
    assert holds(last, took)
    assert last.typical > usual.typical + 3 * (SLOW - QUICK)


def test_a_slow_first_run_spoils_no_promise_of_later_ones_while_they_run():
    driven = Driven()
    driven.play([5 * SLOW, *[QUICK] * 11])
    kept = [holds(*each) for each in driven.live[4:]]
    assert sum(kept) >= LEAST_KEPT * len(kept)


@pytest.mark.parametrize("steps", [1, 2])
def test_no_promise_follows_the_drivers_of_other_namespaces(steps):
    """However few drivers the runs of a pipeline have."""
    driven = Driven(steps)
    driven.play([ELSEWHERE_SECONDS] * 6, "other")
    driven.play([QUICK] * 4, "team")
    history = driven.cluster.histories.stored["team", "nightly"]["status"]
    for run in history["runs"]:
        assert run["driverSeconds"] == pytest.approx(QUICK, abs=0.5)
        if "playedSeconds" in run:
            assert run["playedSeconds"] == pytest.approx(run["seconds"], rel=0.2)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_restarted_planner_promises_the_same_of_small_pipelines(steps):
    promised = []
    for is_restarted in (False, True):
        driven = Driven(steps)
        driven.play([SLOW] * 5)
        if is_restarted:
            driven.forget_pods()
            driven.cluster.hand_over(a_coordinator(), 2)
        promised.append(driven.play([SLOW])[0][0])
    assert promised[0] == promised[1]
