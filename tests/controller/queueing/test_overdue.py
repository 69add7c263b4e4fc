"""What queues may hold while those who admit runs are silent."""

from datetime import timedelta

import pytest

from kfp_placement_controller.queueing.overdue import (
    NO_LEASE,
    Holding,
    Silence,
    closed_condition,
    closing_patch,
    holding,
)
from tests.controller.queueing.builders import BROKEN, START
from tests.controller.queueing.scene import a_queue

STALE = timedelta(seconds=15)
READY = {"ready": True}


def at(seconds):
    return START + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "missing", "spec", "expected"),
    [
        (-5, (), {}, Holding.ALL),
        (15, (), {}, Holding.ALL),
        (16, (), {}, Holding.WAITING),
        (135, (), {}, Holding.WAITING),
        (136, (), {}, Holding.NONE),
        # One that holds without a controller does so for ever.
        (86400, (), {"onControllerDown": "hold"}, Holding.ALL),
        (1, ("queue",), {"onControllerDown": "hold"}, Holding.ALL),
        # One that is malformed does as it says.
        (86400, (), {"quota": BROKEN, "onControllerDown": "hold"}, Holding.ALL),
        (86400, (), {"quota": BROKEN, "onControllerDown": "run"}, Holding.NONE),
        (86400, (), {"quota": BROKEN, "onControllerDown": "later"}, Holding.ALL),
        (86400, (), {"quota": BROKEN}, Holding.NONE),
        (90, (), {"quota": BROKEN, "holdDeadline": "1m"}, Holding.NONE),
        (90, (), {"quota": BROKEN, "holdDeadline": "x"}, Holding.WAITING),
    ],
)
def test_runs_that_wait_begin_after_the_deadline_of_their_queue_and_new_ones_before(
    seconds, missing, spec, expected
):
    queue = a_queue(status=READY, **spec)
    assert holding(queue, Silence(START, missing), STALE, at(seconds)) is expected


@pytest.mark.parametrize(
    ("silence", "expected"),
    [
        (Silence(START), Holding.ALL),
        (Silence(START - timedelta(minutes=1)), Holding.NONE),
        (Silence(START, ["queue"]), Holding.NONE),
    ],
)
def test_without_a_queue_runs_begin_once_nobody_else_could_let_them(silence, expected):
    assert holding(None, silence, STALE, at(1)) is expected


def closed(queue, silence, seconds):
    """The queue as it is after the job has run, and what it may hold."""
    now = at(seconds)
    may = holding(queue, silence, STALE, now)
    patch = None if may is Holding.ALL else closing_patch(queue, closed_condition(silence), now)
    if patch is None:
        return queue, may
    before = queue.status.model_dump(mode="json", by_alias=True)
    return a_queue(status={**before, **patch}), may


def test_the_deadline_of_a_missing_lease_starts_when_that_is_first_seen():
    # For an hour the queue was not ready, but paused: that is no part of the deadline.
    paused = {
        "type": "Ready",
        "status": "False",
        "reason": "Paused",
        "message": "",
        "lastTransitionTime": (START - timedelta(hours=1)).isoformat(),
    }
    queue = a_queue(status={"ready": False, "conditions": [paused]})
    missing = Silence(START, ["kfp-placement-queue"])
    queue, may = closed(queue, missing, 5)
    assert may is Holding.WAITING
    assert queue.status.condition("Ready").reason == NO_LEASE
    assert "there is no Lease kfp-placement-queue" in queue.status.condition("Ready").message
    same, may = closed(queue, missing, 125)
    assert (same, may) == (queue, Holding.WAITING)
    assert closed(queue, missing, 126)[1] is Holding.NONE


def test_a_queue_that_is_closed_says_why_and_is_written_once():
    queue = a_queue(status=READY)
    queue, may = closed(queue, Silence(START), 16)
    assert may is Holding.WAITING
    assert queue.status.ready is False
    assert queue.status.condition("Ready").reason == "LeaseStale"
    assert closing_patch(queue, closed_condition(Silence(START)), at(60)) is None
