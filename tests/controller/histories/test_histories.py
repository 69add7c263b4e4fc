"""Runs that teach the runs after them, simulated in memory: what is kept, and what is promised."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.learning import run_learning
from kfp_placement_controller.planning.actions import Action
from kfp_placement_engine.contract.placement import EndRange
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import PODS, Kind
from tests.controller.planning import simulated_cluster
from tests.controller.planning.noisy_cluster import (
    TYPICAL_SECONDS,
    NoisyCluster,
    cluster_with_past,
    promises_counted,
)

RUNS, SEEDS = 12, 3
KNOWN_AFTER = 3
"""Number of runs after which promises must hold."""

LEAST_KEPT = 0.85
WIDE = 8
"""Iterations of the loop of large runs."""

BEFORE = 6
"""Runs that are seen before something happens."""


def promise_holds(cluster: NoisyCluster, run: str) -> bool | None:
    """Whether the first promise of a run has held; None = there was none."""
    placement = cluster.placement(run)
    ends, status = placement.spec.first_ends, placement.status
    if ends is None:
        return None
    assert status.makespan_seconds is not None
    return ends.low <= status.makespan_seconds <= ends.high


def promised_ends(cluster: NoisyCluster, run: str) -> EndRange | None:
    """What is promised of a run now."""
    status = cluster.placement(run).status
    return None if status is None else status.ends


def test_an_ended_run_is_kept():
    cluster = NoisyCluster(iterations=WIDE)
    run = cluster.simulate_run(0)
    history = cluster.history()
    assert history.spec.pipeline == "nightly"
    (past,) = history.past_runs()
    assert past.uid == "workflow-0"
    assert len(past.steps) == 10
    assert past.planned_seconds is None
    assert past.seconds is not None
    assert cluster.placement(run).spec.first_ends is None
    assert cluster.placement(run).status is not None
    assert len({each.identity.iteration for each in past.steps}) == 9


def test_first_promises_hold_from_the_fourth_run_on():
    kept: list[bool | None] = []
    for seed in range(SEEDS):
        cluster = NoisyCluster(seed, iterations=WIDE)
        of_seed = [promise_holds(cluster, cluster.simulate_run(number)) for number in range(RUNS)]
        assert of_seed[0] is None
        kept += of_seed[KNOWN_AFTER:]
    assert None not in kept
    assert sum(map(bool, kept)) >= LEAST_KEPT * len(kept)


def test_a_step_that_takes_longer_widens_the_next_promise_and_is_followed():
    cluster = cluster_with_past(BEFORE, iterations=WIDE)
    usual = cluster.first_ends(cluster.simulate_run(BEFORE))
    cluster.workload.factor["last"] = 3
    cluster.simulate_run(BEFORE + 1)
    widened = cluster.first_ends(cluster.simulate_run(BEFORE + 2))
    assert widened.high - widened.low > usual.high - usual.low
    runs = [cluster.simulate_run(BEFORE + 3 + number) for number in range(3)]
    assert promise_holds(cluster, runs[-1])
    expected = usual.typical + 2 * TYPICAL_SECONDS["last"]
    assert cluster.first_ends(runs[-1]).typical == pytest.approx(expected, rel=0.1)


def test_a_new_leader_goes_on_with_what_is_stored():
    """What it promises is what the one before it would have promised."""
    promised = []
    for is_handed_over in (False, True):
        cluster = cluster_with_past(BEFORE, iterations=WIDE)
        if is_handed_over:
            cluster.hand_over()
        promised.append(cluster.first_ends(cluster.simulate_run(BEFORE)))
        assert len(cluster.history().past_runs()) == BEFORE + 1
    assert promised[0] == promised[1]


def test_a_new_leader_in_the_middle_of_a_run_keeps_its_promise():
    cluster = cluster_with_past(BEFORE, iterations=WIDE)
    run = cluster.begin_run(9)
    cluster.run(lambda: len(cluster.pods()) >= len(TYPICAL_SECONDS) + 10 * BEFORE)
    promised = cluster.first_ends(run)
    cluster.hand_over()
    cluster.run()
    assert cluster.first_ends(run) == promised
    last = cluster.history().past_runs()[-1]
    assert last.planned_seconds == pytest.approx(promised.planned, abs=0.1)
    assert last.seconds is not None


class LatePods(NoisyCluster):
    """Ends of pods are heard of later than that of their run."""

    LAG = timedelta(seconds=0.3)

    def __init__(self) -> None:
        super().__init__()
        self._late: list[tuple[datetime, Change[Any]]] = []
        self._handle, self._tick = self.coordinator.handle, self.coordinator.tick
        self.coordinator.handle = self._hear  # type: ignore[method-assign]
        self.coordinator.tick = self._decide  # type: ignore[method-assign]

    def _hear(self, kind: Kind, change: Change[Any], now: datetime) -> None:
        if kind == PODS and change.new is not None and change.new.phase == "Succeeded":
            self._late.append((now + self.LAG, change))
        else:
            self._handle(kind, change, now)

    def _decide(self, now: datetime) -> list[Action]:
        due = [each for each in self._late if each[0] <= now]
        self._late = [each for each in self._late if each[0] > now]
        for _, change in due:
            self._handle(PODS, change, now)
        return self._tick(now)


def test_a_last_pod_that_is_heard_of_after_its_run_teaches():
    cluster = LatePods()
    cluster.simulate_run(0)
    cluster.pass_time(60)
    (past,) = cluster.history().past_runs()
    assert {each.identity.step for each in past.steps} == {"first", "work[*]", "last"}


def test_a_run_under_way_hears_of_the_first_that_ends():
    """Both have begun before anything was known: the second then has an end."""
    cluster = NoisyCluster()
    first = cluster.begin_run(0)
    cluster.run(lambda: ("team", first) in cluster.placements)
    cluster.now -= timedelta(minutes=9)
    second = cluster.begin_run(1)
    cluster.run(lambda: cluster.states(first).get("last") == "running")
    cluster.workload.factor["last"] = 20
    cluster.run(lambda: cluster.workflows[first].phase == "Succeeded")
    assert promised_ends(cluster, second) is None
    cluster.pass_time(3 * 60)
    assert cluster.workflows[second].phase == "Running"
    assert promised_ends(cluster, second) is not None


def test_a_planner_that_starts_works_out_no_run_that_is_known(monkeypatch):
    cluster = cluster_with_past(3)
    worked_out = []
    monkeypatch.setattr(run_learning, "ended_run", lambda *_: worked_out.append(1))
    writes = cluster.histories.writes
    cluster.hand_over()
    cluster.pass_moments(20)
    assert worked_out == []
    assert cluster.histories.writes == writes
    assert len(cluster.history().past_runs()) == 3


def test_many_ended_runs_are_learned_from_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(run_learning, "LEARNED_AT_ONCE", 1)
    cluster = cluster_with_past(
        4, coordinator=simulated_cluster.a_coordinator(evaluation_seconds=5)
    )
    cluster.hand_over()
    learned_counts = []
    for _ in range(12):
        cluster.look()
        runs = cluster.coordinator.registry.runs.values()
        learned_counts.append(sum(each.learned_end is not None for each in runs))
        cluster.now += timedelta(seconds=5)
    assert 0 < learned_counts[1] < 4
    assert learned_counts[-1] == 4


def test_a_promise_counts_once_though_the_next_planner_learns_from_its_run_again():
    cluster = cluster_with_past(BEFORE)
    cluster.histories.refuses = True
    run = cluster.simulate_run(10)
    assert cluster.first_ends(run)
    counted = sum(promises_counted().values())
    cluster.hand_over()
    cluster.pass_time(60)
    assert sum(promises_counted().values()) == counted
    cluster.histories.refuses = False
    cluster.simulate_run(11)
    assert len(cluster.history().past_runs()) == BEFORE + 2
    assert sum(promises_counted().values()) == counted + 1
