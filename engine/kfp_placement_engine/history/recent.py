"""A dictionary of bounded size: what was not used for longest goes first."""

from collections.abc import Callable
from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(dict[KeyT, ValueT]):
    """Entries in the order in which they were used last; reading one does not count as use."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        """Begin with none.

        Args:
            most: how many entries are kept.
        """
        super().__init__()
        self._most = most

    def used(self, key: KeyT, make: Callable[[], ValueT]) -> ValueT:
        """The value of a key, made if there is none; the oldest entry goes if they are too many."""
        value = self[key] = self.pop(key) if key in self else make()
        if len(self) > self._most:
            del self[next(iter(self))]
        return value
