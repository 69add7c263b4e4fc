"""Times as the API server writes them (RFC 3339), both ways."""

from datetime import UTC, datetime

from kfp_placement_engine.exceptions import InputError


def parse_time(text: str) -> datetime:
    """Read a time; one without a zone is UTC.

    Raises:
        InputError: it is not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{text!r:.40} is not a time") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def read_moment(value: object) -> datetime | None:
    """Read a time that others wrote; None = there is none, or it is malformed."""
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        return None
    try:
        return parse_time(value).astimezone(UTC)
    except (InputError, OverflowError):
        return None


def time_text(time: datetime) -> str:
    """Write a time to the second, as `metav1.Time`."""
    return time.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
