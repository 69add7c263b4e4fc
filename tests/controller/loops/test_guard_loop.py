"""The guard's thread: it waits for what is known, and outlives a defect."""

import gc
import threading
from typing import Any
from unittest.mock import Mock

import pytest

from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore
from kfp_placement_controller.loops import guard_loop
from kfp_placement_controller.loops.guard_loop import GuardLoop

PATIENCE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(guard_loop, "TICK_SECONDS", 0.001)
    yield
    # The loop freezes what is there when it begins.
    gc.unfreeze()


def a_guard(tick: Any) -> Mock:
    return Mock(Guard, tick=Mock(side_effect=tick))


def test_a_defect_ends_one_round_and_not_all(caplog):
    went_on = threading.Event()

    def tick():
        if guard.tick.call_count == 1:
            raise RuntimeError("a defect")
        if guard.tick.call_count == 3:
            went_on.set()

    store = Mock(KnowledgeStore)
    store.forget_moments.side_effect = RuntimeError
    guard = a_guard(tick)
    loop = GuardLoop(guard, store, lambda: True)
    loop.start()
    assert went_on.wait(PATIENCE_SECONDS)
    loop.stop()
    assert "defect in the guard" in caplog.text
    assert store.forget_moments.call_count >= 3


def test_nothing_is_guarded_before_everything_is_known():
    asked = threading.Event()

    def is_synced():
        asked.set()
        return False

    guard = a_guard(None)
    loop = GuardLoop(guard, Mock(KnowledgeStore), is_synced)
    loop.start()
    assert asked.wait(PATIENCE_SECONDS)
    loop.stop()
    guard.tick.assert_not_called()
