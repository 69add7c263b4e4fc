"""Messages from other threads to the thread that decides, in the order of their arrival."""

import queue
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

DeciderT = TypeVar("DeciderT")

Message = Callable[[DeciderT, datetime], None]
"""A call on the decider with the current time, made in the decider's thread."""


class Inbox(Generic[DeciderT]):
    """Queue of messages that any thread fills and one thread empties."""

    def __init__(self) -> None:
        """Start without messages."""
        self._messages: queue.SimpleQueue[Message[DeciderT]] = queue.SimpleQueue()
        self._first: deque[Message[DeciderT]] = deque()

    def put(self, message: Message[DeciderT]) -> None:
        """Queue a message for the decider, without waiting."""
        self._messages.put(message)

    def put_first(self, message: Message[DeciderT]) -> None:
        """Queue an urgent message ahead of all others, without waiting.

        A renewed Lease is urgent: behind a backlog of many seconds it would arrive so late that
        its holder would seem dead.
        """
        self._first.append(message)
        self.wake()

    def wake(self) -> None:
        """Make the decider decide now, without a message that changes anything."""
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
    """Change nothing: this message only wakes the decider."""
