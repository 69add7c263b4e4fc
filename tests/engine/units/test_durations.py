"""Durations and round trips: exact, both ways, in each of the forms in which they are written."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.durations import (
    MAX_DURATION_SECONDS,
    MAX_LATENCY_MS,
    duration_text,
    exact_duration_text,
    exact_latency_text,
    exact_seconds_text,
    format_addable_duration,
    format_duration,
    given_round_trip_text,
    latency_text,
    marked_round_trip_text,
    parse_duration,
    parse_latency_ms,
    plain_decimal,
    round_trip_figure,
    round_trip_text,
    whole_seconds_text,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20m", 1200.0),
        ("1h30m", 5400.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("2d", 172_800.0),
        ("90", 90.0),
        (90, 90.0),
        (0.25, 0.25),
        (1e-05, 1e-05),
        ("1m0.5s", 60.5),
        ("3us", 3e-06),
        ("3µs", 3e-06),
        ("0", 0.0),
        ("7.", 7.0),
        ("20min", 1200.0),
        ("20 minutes", 1200.0),
        ("1 minute", 60.0),
        ("1 Hour 30 mins", 5400.0),
        ("1h 30m", 5400.0),
        ("5 m", 300.0),
        (" 2hrs ", 7200.0),
        ("90 sec", 90.0),
        ("1.5 days", 129_600.0),
        ("250 milliseconds", 0.25),
        (timedelta(minutes=20), 1200.0),
        (timedelta(microseconds=1), 1e-06),
        (timedelta(0), 0.0),
    ],
)
def test_durations_are_go_s_and_days_and_bare_seconds(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "20",
        "m",
        "1y",
        "5 M",
        "20 minutess",
        "min",
        "1h 30",
        "20 m x",
        "1,5h",
        "--1s",
        float("nan"),
        float("inf"),
        True,
    ],
)
def test_other_text_is_no_duration(text):
    """Only the bare number among these is one."""
    if text == "20":
        assert parse_duration(text) == 20.0
        return
    with pytest.raises(QuantityError, match="duration"):
        parse_duration(text)


def test_negative_and_absurd_durations_are_refused():
    for negative in ("-5m", -0.5, timedelta(seconds=-1)):
        with pytest.raises(QuantityError, match="negative"):
            parse_duration(negative)
    with pytest.raises(QuantityError, match="ten years"):
        parse_duration("4000d")
    with pytest.raises(QuantityError, match="an hour"):
        parse_latency_ms("2h")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        (timedelta(milliseconds=20), 20.0),
        ("0.289", 0.289),
        ("0.8ms", 0.8),
        ("300us", 0.3),
        ("1s", 1000.0),
        (40.1, 40.1),
        ("0.1", 0.1),
    ],
)
def test_latencies_are_exact_and_bare_ones_are_milliseconds(text, milliseconds):
    assert parse_latency_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["30min", "5 ms", "1 second"])
def test_a_latency_is_not_in_words(text):
    """Labels of nodes that read as one are taken for one."""
    with pytest.raises(QuantityError, match="latency"):
        parse_latency_ms(text)


@given(st.timedeltas(timedelta(0), timedelta(days=3660)))
def test_a_timedelta_is_read_exactly(time):
    assert parse_duration(time) == time.total_seconds()


@given(st.floats(0, MAX_LATENCY_MS))
def test_a_latency_written_plainly_is_read_exactly(milliseconds):
    assert parse_latency_ms(f"{plain_decimal(milliseconds)}ms") == milliseconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.8, "800ms"),
        (0.0832, "83ms"),
        (0.00512, "5.1ms"),
        (1e-5, "0.01ms"),
        (1e-9, "0s"),
        (0.9994, "999ms"),
        (0.9996, "1s"),
        (3.25, "3.25s"),
        (45, "45s"),
        (1200, "20m"),
        (5400, "1h30m"),
        (187_200, "2d4h"),
        (59.7, "1m"),
        (3661, "1h1m"),
    ],
)
def test_durations_for_people_have_at_most_two_units(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5.25, "5.25s"),
        (3599, "59m59s"),
        (3661, "1h1m1s"),
        (86_399, "23h59m59s"),
        (86_400, "1d"),
        (90_061, "1d1h1m"),
    ],
)
def test_durations_in_tables_can_be_added_up(seconds, text):
    """Up to a day; beside days seconds do not matter."""
    assert format_addable_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "resource", "annotation", "file"),
    [
        (0, "0s", "0s", "0s"),
        (0.5, "0.5s", "0.5s", "0.5s"),
        (90, "90s", "1m30s", "90s"),
        (1325.203, "22m5.203s", "1325.203s", "1325.203s"),
        (172_800.0, "48h", "48h", "172800s"),
        (1e-5, "0.00001s", "0.00001s", "0.00001s"),
        (1e-10, "0s", "0.0000000001s", "0.0000000001s"),
    ],
)
def test_every_kind_of_file_has_its_form_of_a_duration(seconds, resource, annotation, file):
    """Older files have them, so they stay as they are; all can be read."""
    assert duration_text(seconds) == resource
    assert exact_duration_text(seconds) == annotation
    assert exact_seconds_text(seconds) == file


@given(st.floats(0, MAX_DURATION_SECONDS))
def test_exact_durations_are_read_exactly(seconds):
    assert parse_duration(exact_duration_text(seconds)) == seconds
    assert parse_duration(exact_seconds_text(seconds)) == seconds


@given(st.floats(0, MAX_LATENCY_MS))
def test_exact_round_trips_are_read_exactly(latency_ms):
    """What stands in a resource is exact to the nanosecond."""
    assert parse_latency_ms(exact_latency_text(latency_ms)) == latency_ms
    assert parse_latency_ms(latency_text(latency_ms)) == round(latency_ms, 6)


def test_round_trips_for_people_have_the_digits_that_their_place_needs():
    assert round_trip_text(0.28934567) == "0.289 ms"
    assert round_trip_figure(0.28934567) == "0.2893 ms"
    assert given_round_trip_text(0.28934567) == "0.289346 ms"
    assert given_round_trip_text(20.0) == "20 ms"
    assert marked_round_trip_text(20.5) == "20.5ms"


def test_processes_count_in_seconds():
    assert whole_seconds_text(89.7) == "90 s"
