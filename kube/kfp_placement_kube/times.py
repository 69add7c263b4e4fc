"""Times in the formats of the API server."""

from datetime import UTC, datetime


def micro_time_text(time: datetime) -> str:
    """Return a time to the microsecond, as `metav1.MicroTime` in Leases and Events."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
