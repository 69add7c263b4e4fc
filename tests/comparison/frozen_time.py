"""Lets the time of day stand still, for commands that print ages; durations go on as they do."""

import datetime
import time
from typing import Any

NOW = datetime.datetime(2026, 11, 20, 10, 3, tzinfo=datetime.UTC)
"""Three minutes after the stored runs were submitted."""

_REAL = datetime.datetime


class _AnyDatetime(type):
    """What libraries in C make is no subclass of ours and a time all the same."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _REAL)


class FrozenDatetime(_REAL, metaclass=_AnyDatetime):
    """A `datetime` whose now is always the same."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        """The time, in a zone or in UTC without saying so."""
        return NOW.astimezone(tz) if tz is not None else NOW.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        """The time in UTC without saying so."""
        return NOW.replace(tzinfo=None)


def freeze() -> None:
    """Stop the clock; before anything is imported that takes its name."""
    seconds = NOW.timestamp()
    datetime.datetime = FrozenDatetime  # type: ignore[misc]
    time.time = lambda: seconds
    time.time_ns = lambda: int(seconds * 1e9)
