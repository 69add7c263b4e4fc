"""Times as the API server writes them."""

from datetime import UTC, datetime


def micro_time_text(time: datetime) -> str:
    """To the microsecond, as `metav1.MicroTime`: Leases and Events."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
