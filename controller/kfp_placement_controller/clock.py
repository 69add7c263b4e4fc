"""The time of day of this machine."""

from datetime import UTC, datetime


def wall_clock() -> datetime:
    """Return the time of day; somebody may set it."""
    return datetime.now(UTC)
