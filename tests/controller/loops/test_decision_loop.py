"""Pauses of a loop: changes of a burst collect; work that is left does not wait for them."""

from datetime import UTC, datetime, timedelta

from kfp_placement_controller.loops.decision_loop import (
    BACKLOG_PAUSE_SECONDS,
    PAUSE_SECONDS,
    DecisionLoop,
)
from kfp_placement_controller.loops.inbox import Inbox

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Work:
    """Three pieces, of which each decision does one; changes come while the loop pauses."""

    def __init__(self) -> None:
        self.left = 3
        self.changes = 0
        self.decided: list[int] = []

    def next_at(self, now: datetime) -> datetime:
        """Decide again at once while a piece is left."""
        return now if self.left else now + timedelta(seconds=60)

    def change(self, _now: datetime) -> None:
        """Take a change in."""
        self.changes += 1


class Loop(DecisionLoop[Work]):
    """A loop whose decisions note how many changes they know."""

    name = "loop"

    def _decide(self) -> None:
        self.decider.left = max(0, self.decider.left - 1)
        self.decider.decided.append(self.decider.changes)


def test_changes_of_a_burst_share_a_decision_and_what_is_left_waits_for_none(monkeypatch):
    work, inbox, pauses = Work(), Inbox[Work](), list[float]()
    loop = Loop(work, inbox, lambda: START, lambda: 0.0)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if seconds == PAUSE_SECONDS:
            for _ in range(5):
                inbox.put(Work.change)
        if work.changes:
            loop.stop()

    monkeypatch.setattr("time.sleep", sleep)
    loop.run(lambda: True, lambda: None)
    assert pauses == [BACKLOG_PAUSE_SECONDS] * 2 + [PAUSE_SECONDS] * 2
    assert work.decided == [0, 0, 0, 5]
