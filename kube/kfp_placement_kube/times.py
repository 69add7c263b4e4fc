"""Times as the API server writes them."""

from datetime import UTC, datetime

from kfp_placement_kube.exceptions import MalformedError


def read_time(value: object, place: str) -> datetime | None:
    """A time of the API, or None where there is none.

    Raises:
        MalformedError: it is not a time.
    """
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise MalformedError(f"{place}: {value!r:.40} is not a time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def micro_time_text(time: datetime) -> str:
    """To the microsecond, as `metav1.MicroTime`: Leases and Events."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
