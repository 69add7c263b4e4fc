"""The clocks of the processes that decide: what follows when somebody sets the time of day."""

from datetime import UTC, timedelta
from typing import Any

import pytest

from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import CloseQueue, DeletePod
from kfp_placement_controller.planning.rounds import PlanningRound
from tests.controller.planning.builders import START
from tests.controller.planning.simulated_cluster import SimulatedCluster
from tests.controller.planning.test_recordings import a_cluster, recorded_workflow

STEPS = [timedelta(hours=1), timedelta(hours=-1)]


def test_the_time_of_day_has_a_zone():
    assert wall_clock().tzinfo is UTC


def test_a_pause_lasts_from_its_beginning_and_without_one_not_at_all():
    assert [lasts(2.0, 10.0, moment) for moment in (10.0, 11.9, 12.0)] == [True, True, False]
    assert not lasts(2.0, None, 10.0)


def a_cluster_with_leases() -> SimulatedCluster:
    """One whose scheduler and queue have renewed their Leases a moment ago."""
    cluster = a_cluster()
    for second in range(2):
        lease = HeldLease("one", START + timedelta(seconds=second))
        cluster.coordinator.scheduler_lease(lease)
        cluster.coordinator.queue_lease(lease)
    return cluster


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_is_set_makes_no_lease_stale(step):
    cluster = a_cluster_with_leases()
    cluster.set_clock(step)
    watchdog = cluster.coordinator.watchdog
    leases = (watchdog.scheduler_lease, watchdog.queue_lease)
    assert [each.age_seconds(cluster.monotonic()) for each in leases] == [0.0, 0.0]
    actions = cluster.coordinator.tick(cluster.now)
    assert not [each for each in actions if isinstance(each, DeletePod | CloseQueue)]


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_is_set_holds_up_no_round(step):
    cluster = a_cluster_with_leases()
    cluster.submit(recorded_workflow("taxi"))
    cluster.tell()
    cluster.coordinator.tick(cluster.now)
    cluster.set_clock(step)
    assert cluster.coordinator.next_at(cluster.now) - cluster.now <= timedelta(seconds=1)
    cluster.now += timedelta(seconds=1)
    actions = cluster.coordinator.tick(cluster.now)
    assert [each for each in actions if isinstance(each, PlanningRound)]


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_is_set_lets_no_loop_look_stuck(step):
    class Loop(DecisionLoop[Any]):
        name = "made-up"

        def _decide(self) -> None:
            """Nothing is decided."""

    cluster = a_cluster()
    loop = Loop(cluster.coordinator, Inbox(), lambda: cluster.now, cluster.monotonic)
    cluster.set_clock(step)
    assert loop.stuck() == ""
