"""What other threads have to tell the coordinator, in the order in which it came."""

import queue
from collections.abc import Callable
from datetime import datetime

from kfp_placement_controller.planning.coordinator import Coordinator

Message = Callable[[Coordinator, datetime], None]
"""Tells the coordinator something, in its own thread and with its time."""


class Inbox:
    """Takes messages from any thread; one thread takes them out."""

    def __init__(self) -> None:
        """Hold none."""
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def put(self, message: Message) -> None:
        """Pass a message to the coordinator; returns at once."""
        self._messages.put(message)

    def wake(self) -> None:
        """Let the coordinator look at once, with nothing to tell."""
        self._messages.put(_nothing)

    def next_message(self, wait_seconds: float = 0.0) -> Message | None:
        """The next message; None = there is none.

        Args:
            wait_seconds: for one to come.
        """
        try:
            return self._messages.get(timeout=wait_seconds)
        except queue.Empty:
            return None


def _nothing(_coordinator: Coordinator, _now: datetime) -> None:
    """Only wakes the coordinator."""
