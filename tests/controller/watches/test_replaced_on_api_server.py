"""RunQueues that are replaced, as the watches of `queue` report them."""

import threading
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.queueing.builtin.backend import BuiltinBackend
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change
from tests.controlplane.waiting import wait_until
from tests.support.manifests import a_queue

ROUNDS = 20
AT_ONCE = 5
"""Replacements in a row."""


class Followed:
    """A coordinator that learns of RunQueues from a watch, in the thread of the test."""

    def __init__(self) -> None:
        self.coordinator = QueueCoordinator(DEFAULT_SOURCES, (BuiltinBackend(),), time.monotonic)
        self.inbox: Inbox[QueueCoordinator] = Inbox()

    def changed(self, change: Change[Any]) -> None:
        """Pass a change on, in the thread of the watch."""
        self.inbox.put(lambda coordinator, _now: coordinator.handle(RUN_QUEUES, change))

    def max_runs(self, namespace: str, wait_seconds: float = 0.0) -> int | None:
        """What the queue of a namespace allows, once everything was taken in; None = no queue."""
        while message := self.inbox.next_message(wait_seconds):
            message(self.coordinator, datetime.now(UTC))
        queue = self.coordinator.queues.get(QueueKey(namespace, "default"))
        return None if queue is None else queue.spec.quota.runs

    def allows(self, namespace: str, max_runs: int) -> bool:
        return self.max_runs(namespace) == max_runs


@pytest.fixture
def followed(client, our_kinds):
    listener = Followed()
    watches = WatchGroup(client)
    watches.add(RUN_QUEUES, observe_queue, listener.changed)
    watches.start()
    yield listener
    watches.stop()


@pytest.fixture
def busy():
    """Another thread that computes all the time, as decisions do: the watch gets behind."""
    over = threading.Event()

    def compute() -> None:
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("busy")
def test_a_queue_that_is_replaced_stays_known(control_plane, followed, namespace):
    api = control_plane.api
    for last in range(AT_ONCE, ROUNDS * AT_ONCE + 1, AT_ONCE):
        for number in range(last - AT_ONCE + 1, last + 1):
            api.delete(a_queue(namespace))
            api.create(a_queue(namespace, quota={"runs": number}))
        wait_until(partial(followed.allows, namespace, last), f"queue {last}")
        assert followed.max_runs(namespace, wait_seconds=0.2) == last
