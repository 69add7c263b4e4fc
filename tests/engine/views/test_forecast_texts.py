"""What run times rest on and what is promised, in words."""

from datetime import UTC, datetime

import pytest

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import Promise, TimeRange, parse_confidence
from kfp_placement_engine.views.forecast_texts import (
    basis_text,
    ends_text,
    latest_end_text,
    moment_text,
    range_text,
)

TIMES = TimeRange(660.0, 720.0, 840.0)
AT = datetime(2026, 11, 26, 10, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("basis", "text"),
    [
        (None, "hint"),
        (Basis(Level.ITERATION, 9), "9 runs"),
        (Basis(Level.ITERATION, 1), "1 run"),
        (Basis(Level.ITERATION, 6, by_size=True), "6 runs, by size of table"),
        (Basis(Level.ITERATION, 6, by_argument="rows"), "6 runs, by rows"),
        (Basis(Level.STEP, 2), "other iterations, 2 runs"),
        (Basis(Level.IMAGE, 3), "same image, 3 runs"),
        (Basis(Level.COMPONENT, 3), "same component, 3 runs"),
        (Basis(Level.NAMESPACE, 30), "all steps of the namespace, 30 runs"),
    ],
)
def test_what_a_run_time_rests_on(basis, text):
    assert basis_text("hint", basis, "table") == text


def test_without_a_name_the_size_is_that_of_the_inputs():
    assert basis_text("history", Basis(Level.STEP, 2, by_size=True)).endswith("by size of inputs")


def test_ranges_since_the_submission_and_as_times_of_day():
    assert range_text(TIMES) == "12m (11m-14m)"
    assert range_text(TIMES, AT) == "10:26:00 (10:25:00-10:28:00)"
    wide = TimeRange(689.0, 720.0, 1021.0)
    assert range_text(wide, AT) == "10:26 (10:25-10:32)"
    assert latest_end_text(Promise(ends=wide), AT) == "by 10:32 (95%)"
    assert range_text(TimeRange(70.4, 75.0, 79.1), AT) == ("10:15:15 (10:15:10-10:15:20)")
    assert range_text(TimeRange(5.0, 5.0, 5.0)) == "5s"


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (TimeRange(41.87, 44.0, 45.94), "44s (41s-46s)"),
        (TimeRange(1318.9, 1428.6, 1548.34), "23m49s (21m58s-25m49s)"),
        (TimeRange(3934.6, 4193.2, 4468.9), "1h10m (1h5m-1h15m)"),
        (TimeRange(3599.5, 3600.0, 3601.0), "1h (59m59s-1h1m)"),
        (TimeRange(360_000.0, 374_040.0, 399_564.0), "4d8h (4d4h-4d15h)"),
    ],
)
def test_durations_are_rounded_outwards_too(times, text):
    assert range_text(times) == text


def test_a_promise_and_its_latest_end():
    promise = Promise(ends=TIMES)
    assert (ends_text(promise), latest_end_text(promise)) == ("12m (11m-14m)", "by 14m (95%)")
    assert latest_end_text(Promise(0.8, ends=TIMES)) == "by 14m (90%)"
    assert ends_text(Promise(0.8, ends=TIMES)) == "12m (80%: 11m-14m)"
    assert latest_end_text(Promise(0.95, ends=TIMES)) == "by 14m (97.5%)"


def test_too_little_known_is_said_in_place_of_a_wide_number():
    promise = Promise(unknown="no run seen")
    assert ends_text(promise) == "unknown (no run seen)"
    assert latest_end_text(promise) == ""


def test_times_of_day_are_those_of_this_machine_and_name_another_day(zone):
    assert moment_text(0.0, AT) == "10:14"
    assert moment_text(29.0, AT) == "10:14"
    assert moment_text(31.0, AT) == "10:15"
    assert moment_text(14 * 3600.0, AT) == "Nov 27 00:14"
    assert moment_text(1e12, AT).endswith("later")
    zone("Pacific/Kiritimati")
    assert moment_text(0.0, AT) == "00:14"


@pytest.mark.parametrize("value", ["90%", " 90 % ", "0.9", 0.9, "9e-1"])
def test_a_confidence_in_every_form(value):
    assert parse_confidence(value) == 0.9


@pytest.mark.parametrize(
    "value", ["", "sure", "90", 1, 0, -0.9, "49%", "100%", True, None, "nan", "1e999", [0.9]]
)
def test_what_is_no_confidence(value):
    with pytest.raises(QuantityError, match=r"confidence from 50% to 95%"):
        parse_confidence(value)
