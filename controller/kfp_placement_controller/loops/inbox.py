"""Messages of other threads to the one that decides, in the order in which they came."""

import queue
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

DeciderT = TypeVar("DeciderT")

Message = Callable[[DeciderT, datetime], None]
"""Tells the decider something, in its own thread and with its time."""


class Inbox(Generic[DeciderT]):
    """Takes messages from any thread; one thread takes them out."""

    def __init__(self) -> None:
        """Hold none."""
        self._messages: queue.SimpleQueue[Message[DeciderT]] = queue.SimpleQueue()
        self._first: deque[Message[DeciderT]] = deque()

    def put(self, message: Message[DeciderT]) -> None:
        """Pass a message to the decider; returns at once."""
        self._messages.put(message)

    def put_first(self, message: Message[DeciderT]) -> None:
        """Pass a message that is taken out ahead of all others; returns at once.

        A renewed Lease is such a message: behind a backlog of many seconds it would come too late,
        and its holder would be taken for dead.
        """
        self._first.append(message)
        self.wake()

    def wake(self) -> None:
        """Let the decider look at once, with nothing to tell."""
        self._messages.put(_nothing)

    def next_message(self, wait_seconds: float = 0.0) -> Message[DeciderT] | None:
        """Return the next message, or None if there is none.

        Args:
            wait_seconds: longest wait for a message.
        """
        if self._first:
            return self._first.popleft()
        try:
            return self._messages.get(timeout=wait_seconds)
        except queue.Empty:
            return None


def _nothing(_decider: object, _now: datetime) -> None:
    """Wake the decider, and tell it nothing."""
