"""What a PipelinePlacement promises of its run, as it is written and read."""

import pytest

from kfp_placement_engine.contract.custom_resources import PipelinePlacement, read_resource
from kfp_placement_engine.contract.placement import EndRange, FirstEnds
from kfp_placement_engine.model.promise import Promise, TimeRange
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS

ENDS, TIMES = {"low": "9m", "typical": "10m", "high": "12m"}, TimeRange(540.0, 600.0, 720.0)


def a_placement(status=None, **spec) -> PipelinePlacement:
    required = {
        "workflowUID": "u",
        "revision": 1,
        "submittedAt": "2026-11-26T10:14:00Z",
        "plannedAt": "2026-11-26T10:14:05Z",
    }
    resource = {"metadata": {"name": "taxi"}, "spec": required | spec, "status": status}
    return read_resource(PipelinePlacement, resource)


def promises(placement: PipelinePlacement) -> tuple[Promise | None, ...]:
    return placement.promise, placement.first_promise


def test_a_range_is_written_as_it_is_read():
    assert EndRange.of(TIMES).times == TIMES
    first = FirstEnds.of(TIMES, planned=590, promised_after=3)
    assert (first.times, first.planned, first.promised_after) == (TIMES, 590, 3)


def test_an_object_says_no_time_that_it_would_refuse():
    first = FirstEnds.of(TimeRange(-1.0, 5.0, 1e12), planned=-5, promised_after=1e12)
    assert first.times == TimeRange(0.0, 5.0, MAX_DURATION_SECONDS)
    assert (first.planned, first.promised_after) == (0, MAX_DURATION_SECONDS)


@pytest.mark.parametrize("status", [None, {}, {"phase": "Running"}], ids=repr)
def test_nothing_may_be_promised(status):
    assert promises(a_placement(status)) == (None, None)


def test_what_is_promised_now_and_first_has_its_own_confidence():
    first = ENDS | {"planned": "590s", "promisedAfter": "3s"}
    status = {"ends": ENDS, "confidence": 0.8}
    now, then = promises(a_placement(status, firstEnds=first, confidence=0.95))
    assert now == Promise(0.8, TIMES)
    assert then == Promise(0.95, TIMES, planned_seconds=590, made_seconds=3)
    assert a_placement({"ends": ENDS}).promise == Promise(0.9, TIMES)


def test_a_run_that_is_held_back_is_promised_its_end_after_its_start():
    promise_pair = promises(a_placement({"endsAfterStart": ENDS}))
    assert promise_pair == (Promise(0.9, TIMES, after_start=True), None)


def test_why_nothing_is_promised_is_said():
    placement = a_placement({"endsUnknown": "no run seen"})
    assert placement.promise == Promise(0.9, unknown="no run seen")
