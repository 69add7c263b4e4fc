"""Items that wait to be worked on, of which each owner gives one in turn.

A module of its own, since events and gates both wait so: thousands of one keep no other waiting.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class InTurn(Generic[T]):
    """Items in the order of their owners' turns; not safe for threads without a lock.

    Attributes:
        most: largest number of items; None = any.
    """

    most: int | None = None
    _waiting: dict[str, deque[T]] = field(default_factory=dict)
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def put(self, owner: str, item: T) -> T | None:
        """Add an item; returns the one that is dropped for it, the last of who has most, if any."""
        self._waiting.setdefault(owner, deque()).append(item)
        if self.most is None or self._count < self.most:
            self._count += 1
            return None
        largest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        dropped = self._waiting[largest].pop()
        if not self._waiting[largest]:
            del self._waiting[largest]
        return dropped

    def take(self) -> T | None:
        """Return the next item, or None if none waits; its owner comes after the others."""
        if not self._waiting:
            return None
        owner = next(iter(self._waiting))
        own = self._waiting.pop(owner)
        item = own.popleft()
        if own:
            self._waiting[owner] = own
        self._count -= 1
        return item
