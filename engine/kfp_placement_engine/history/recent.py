"""A dictionary of bounded size: what was not used for longest goes first."""

from typing import TypeVar

MOST_STEPS = 10_000
"""Largest number of steps that are kept; those that were not seen for longest go first."""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(dict[KeyT, ValueT]):
    """Entries in the order in which they were used last; reading one does not count as use."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        """Begin with none.

        Args:
            most: largest number of entries.
        """
        super().__init__()
        self._most = most

    def use(self, key: KeyT, value: ValueT) -> None:
        """Keep a value; the oldest entry goes if they are too many."""
        self.pop(key, None)
        self[key] = value
        if len(self) > self._most:
            del self[next(iter(self))]
