"""Pauses between two tries, by a clock that somebody may set."""

from datetime import datetime


def lasts(seconds: float, since: datetime | None, now: datetime) -> bool:
    """Whether a pause goes on; a clock that was set back must not make it longer.

    Args:
        seconds: its length.
        since: when it began; None = it has not.
        now: the time.
    """
    return since is not None and 0 <= (now - since).total_seconds() < seconds
