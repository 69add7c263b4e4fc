"""When what is promised is another promise."""

import pytest

from kfp_placement_engine.model.promise import (
    Promise,
    PromiseOutcome,
    StepPromise,
    TimeRange,
)

HOUR = TimeRange(3500.0, 3600.0, 3700.0)


def a_promise(end=300.0, start=0.0, ends=HOUR, **changes):
    """The run ends after an hour; a step beside its critical path starts and ends earlier."""
    side = StepPromise(TimeRange(start, start, start), TimeRange(end - 10, end, end + 10))
    return Promise(ends=ends, steps={"side": side}, **changes)


@pytest.mark.parametrize(
    ("new", "differs"),
    [
        (a_promise(), False),
        (a_promise(end=309.0), False),
        (a_promise(end=310.0), True),
        (a_promise(start=20.0), True),
        (a_promise(ends=HOUR.later(71.0)), False),
        (a_promise(ends=HOUR.later(72.0)), True),
        (a_promise(confidence=0.8), True),
        (Promise(ends=HOUR), False),
    ],
    ids=["same", "9 s", "10 s", "start", "under 2%", "2%", "confidence", "step has ended"],
)
def test_a_promise_differs_where_the_run_or_a_step_moves_by_10_s_or_2_percent(new, differs):
    assert new.differs_from(a_promise()) is differs


def test_the_time_that_a_run_was_held_back_does_not_count():
    """After a day in a queue 2% of the time since its submission would be half an hour."""
    day = 86_400.0
    before, after = a_promise().later(day), a_promise(ends=HOUR.later(72.0)).later(day)
    assert after.differs_from(before, begin_seconds=day)
    assert not after.differs_from(before)


def test_what_was_promised_of_no_step_differs_once_steps_have_times():
    assert a_promise().differs_from(Promise(ends=HOUR))
    assert a_promise(ends=None).differs_from(Promise())
    assert not a_promise().ends_differ_from(Promise(ends=HOUR))


@pytest.mark.parametrize(
    ("seconds", "outcome"),
    [(98.5, "early"), (99.0, "kept"), (110.0, "kept"), (111.0, "late")],
)
def test_what_came_of_a_range_as_ends_are_cut_to_whole_seconds(seconds, outcome):
    assert TimeRange(100.0, 105.0, 110.0).outcome(seconds) is PromiseOutcome(outcome)
