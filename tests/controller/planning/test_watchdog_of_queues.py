"""What the planner does about queues while nobody admits runs."""

from dataclasses import replace

import pytest

from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.planning.actions import CloseQueue
from kfp_placement_controller.planning.watchdog import Watchdog
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import RunQueueSpec, RunQueueStatus
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import START, after

KEY = QueueKey("team", "default")
OPEN = ObservedQueue(KEY, "1", 1, status=RunQueueStatus(ready=True))
POLICY = PlacementPolicySpec()


def a_watchdog(*queues: ObservedQueue) -> Watchdog:
    """One that has seen the queue's process renew its Lease at `START`."""
    watchdog = Watchdog(retry_seconds=5, sources=DEFAULT_SOURCES)
    watchdog.queue_lease.observe(HeldLease("queue-1", START), 0.0)
    for queue in queues:
        watchdog.queue_changed(Change((queue.key.namespace, queue.key.name), None, queue))
    return watchdog


@pytest.fixture
def watchdog():
    return a_watchdog(OPEN)


def closes(watchdog: Watchdog, seconds: float) -> bool:
    """Whether the queue is to hold no more runs from then on."""
    due = list(watchdog.queue_due(POLICY, seconds))
    assert all(isinstance(each, CloseQueue) and each.queue.key == KEY for each in due)
    return len(due) == 1


def test_a_queue_is_closed_once_its_lease_is_stale_and_again_while_that_does_not_work(watchdog):
    assert not closes(watchdog, 15)
    assert closes(watchdog, 16)
    assert not closes(watchdog, 18)
    assert closes(watchdog, 22)
    closed = replace(OPEN, status=RunQueueStatus(ready=False))
    watchdog.queue_changed(Change(("team", "default"), OPEN, closed))
    assert not closes(watchdog, 60)


def test_a_queue_that_is_renewed_is_left_alone(watchdog):
    watchdog.queue_lease.observe(HeldLease("queue-1", after(10)), 10.0)
    assert not closes(watchdog, 20)


def test_a_queue_that_holds_without_a_controller_stays_open():
    holding = replace(OPEN, spec=RunQueueSpec(on_controller_down="hold"))
    assert not closes(a_watchdog(holding), 60)


def test_a_malformed_queue_is_closed_as_well(watchdog):
    malformed = replace(OPEN, problem="spec.quota: no")
    watchdog.queue_changed(Change(("team", "default"), OPEN, malformed))
    assert closes(watchdog, 16)


def test_a_lease_that_was_given_back_counts_from_its_last_renewal(watchdog):
    watchdog.queue_lease.observe(None, 1.0)
    assert not closes(watchdog, 15)
    assert closes(watchdog, 16)


def test_a_queue_that_is_gone_is_forgotten(watchdog):
    watchdog.queue_changed(Change(("team", "default"), OPEN, None))
    assert not closes(watchdog, 60)


def test_who_begins_to_lead_gives_the_queue_its_time_again(watchdog):
    """As after an outage of the API server, in which nobody could renew a Lease."""
    watchdog.queue_lease.restart()
    assert not closes(watchdog, 40)
    assert not closes(watchdog, 55)
    assert closes(watchdog, 56)
