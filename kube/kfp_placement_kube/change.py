"""What has happened to an object, as a watch reports it and as callers that act on it get it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace ("" for kinds without) and name."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What has happened to an object.

    Attributes:
        key: namespace and name.
        old: what was known of it; None = it is new.
        new: what it is now; None = it is gone, or no longer of interest.
    """

    key: Key
    old: T | None
    new: T | None
