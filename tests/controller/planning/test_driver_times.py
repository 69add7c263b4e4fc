"""Promises where KFP's drivers take longer one hour than the next, played in memory."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kfp_placement_engine.contract.placement import FirstEnds
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


def a_run(name: str) -> Any:
    """Steps of KFP in a row, without a hint."""

    def body() -> None:
        last: tuple[Any, ...] = ()
        for number in range(STEPS):
            last = (step(f"s{number}", *last, duration=None),)

    run = compiled("nightly", body)
    run["metadata"]["name"] = name
    return run


class Driven:
    """Runs of one pipeline, one after the other."""

    def __init__(self) -> None:
        self.cluster = PlayedCluster(node_object("n0"), coordinator=a_coordinator())
        self._runs: list[str] = []

    def play(self, driver_seconds: Sequence[float]) -> list[tuple[FirstEnds | None, float]]:
        """What was promised first, and what each run took; a driver takes so long in it."""
        return [self._play(each) for each in driver_seconds]

    def _play(self, driver_seconds: float) -> tuple[FirstEnds | None, float]:
        cluster, name = self.cluster, f"run-{len(self._runs)}"
        self._runs.append(name)
        cluster.now += timedelta(minutes=10)
        settings = WorkloadSettings(driver_seconds, step_seconds=60, spread=0.05, start_seconds=0)
        cluster.kubelets = Kubelets(Workload(settings))
        cluster.submit(a_run(name))
        cluster.run()
        placement = cluster.placement(name)
        assert placement.status is not None
        assert placement.status.makespan_seconds is not None
        return placement.spec.first_ends, placement.status.makespan_seconds

    def forget_pods(self) -> None:
        """All runs so far are deleted with their pods."""
        for name in self._runs:
            self.cluster.players.pop(name, None)
        self.cluster.tell()


def holds(ends: FirstEnds | None, took: float) -> bool:
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
