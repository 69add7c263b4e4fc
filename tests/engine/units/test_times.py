"""Times as the API server writes them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.units.times import parse_time, time_text

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01T13:00:00+01:00",
        "2026-03-01T12:00:00.000000Z",
        "2026-03-01T12:00:00",
    ],
)
def test_times_are_read_in_every_zone(text):
    """A time without a zone is UTC."""
    assert parse_time(text) == NOON


@pytest.mark.parametrize("text", ["", "noon", "2026-03-01T25:00:00Z"])
def test_other_text_is_refused_and_shown(text):
    with pytest.raises(InputError, match="is not a time"):
        parse_time(text)


def test_times_are_written_to_the_second_in_utc():
    local = NOON.astimezone(timezone(timedelta(hours=5))) + timedelta(milliseconds=900)
    assert time_text(local) == "2026-03-01T12:00:00Z"
    assert time_text(NOON.replace(year=1)) == "0001-03-01T12:00:00Z"
