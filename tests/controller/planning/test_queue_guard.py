"""What the planner does about queues while nobody admits runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.planning.actions import CloseQueue
from kfp_placement_controller.planning.guard import QueueGuard
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import RunQueueSpec, RunQueueStatus
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
KEY = QueueKey("team", "default")
OPEN = ObservedQueue(KEY, "1", 1, status=RunQueueStatus(ready=True))
POLICY = PlacementPolicySpec()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_guard(*queues: ObservedQueue) -> QueueGuard:
    """One that has seen the queue's process renew its Lease at `START`."""
    guard = QueueGuard(retry_seconds=5)
    guard.lease.observe(HeldLease("queue-1", START), START)
    for queue in queues:
        guard.queue_changed(Change((queue.key.namespace, queue.key.name), None, queue))
    return guard


def closes(guard: QueueGuard, seconds: float) -> bool:
    """Whether the queue is to hold no more runs from then on."""
    return list(guard.due(POLICY, at(seconds))) == [CloseQueue(KEY)]


def test_a_queue_is_closed_once_its_lease_is_stale_and_again_while_that_does_not_work():
    guard = a_guard(OPEN)
    assert not closes(guard, 15)
    assert closes(guard, 16)
    assert not closes(guard, 18)
    assert closes(guard, 22)
    closed = replace(OPEN, status=RunQueueStatus(ready=False))
    guard.queue_changed(Change(("team", "default"), OPEN, closed))
    assert not closes(guard, 60)


def test_a_queue_that_is_renewed_is_left_alone():
    guard = a_guard(OPEN)
    guard.lease.observe(HeldLease("queue-1", at(10)), at(10))
    assert not closes(guard, 20)


def test_a_queue_that_holds_without_a_controller_stays_open():
    holding = replace(OPEN, spec=RunQueueSpec(on_controller_down="hold"))
    assert not closes(a_guard(holding), 60)


def test_a_malformed_queue_is_closed_as_well():
    guard = a_guard(OPEN)
    malformed = replace(OPEN, problem="spec.quota: no")
    guard.queue_changed(Change(("team", "default"), OPEN, malformed))
    assert closes(guard, 16)


def test_a_lease_that_was_given_back_counts_from_its_last_renewal():
    guard = a_guard(OPEN)
    guard.lease.observe(None, at(1))
    assert not closes(guard, 15)
    assert closes(guard, 16)


def test_a_queue_that_is_gone_is_forgotten():
    guard = a_guard(OPEN)
    guard.queue_changed(Change(("team", "default"), OPEN, None))
    assert not closes(guard, 60)
