"""A change of one object, as a watch reports it and as callers that act on it get it."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")

Key = tuple[str, str]
"""Namespace ("" for kinds without) and name."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change of one object, before and after.

    Attributes:
        key: namespace and name.
        old: value before; None = the object is new.
        new: value now; None = the object is gone, or no longer of interest.
    """

    key: Key
    old: T | None
    new: T | None

    def apply_to(self, objects: MutableMapping[K, T], key: K) -> None:
        """Store the new value among others, or remove the old one if the object is gone.

        Args:
            objects: values of all objects.
            key: key of this object among them.
        """
        if self.new is None:
            objects.pop(key, None)
        else:
            objects[key] = self.new
