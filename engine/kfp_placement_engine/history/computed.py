"""A dictionary of what is computed when it is first asked for."""

from collections.abc import Callable
from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Computed(dict[KeyT, ValueT]):
    """Values by their keys, each computed once, until all are forgotten."""

    def __init__(self, compute: Callable[[KeyT], ValueT], most: int) -> None:
        """Begin with none.

        Args:
            compute: makes the value of a key.
            most: how many are kept; one more, and all others are forgotten.
        """
        super().__init__()
        self._compute = compute
        self._most = most

    def __missing__(self, key: KeyT) -> ValueT:
        value = self._compute(key)
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value
