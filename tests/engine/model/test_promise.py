"""When what is promised is another promise."""

from dataclasses import replace

import pytest

from kfp_placement_engine.model.promise import Promise, PromiseOutcome, StepPromise, TimeRange

HOUR = TimeRange(3500.0, 3600.0, 3700.0)


def a_promise(end=300.0, start=0.0, ends=HOUR, **changes):
    """The run ends after an hour; a step beside its critical path starts and ends earlier."""
    side = StepPromise(TimeRange(start, start, start), TimeRange(end - 10, end, end + 10))
    return Promise(ends=ends, steps={"side": side}, **changes)


@pytest.mark.parametrize(
    ("new", "has_moved"),
    [
        (a_promise(), False),
        (a_promise(end=309.0), False),
        (a_promise(end=310.0), True),
        (a_promise(start=20.0), True),
        (a_promise(ends=HOUR.later(71.0)), False),
        (a_promise(ends=HOUR.later(72.0)), True),
        (a_promise(ends=replace(HOUR, low_seconds=3400.0)), True),
        (a_promise(confidence=0.8), True),
        (a_promise(after_start=True), True),
        (Promise(ends=HOUR), False),
        (Promise(unknown="no run seen"), True),
    ],
    ids=[
        *("same", "step 9 s", "step 10 s", "start", "under 2%", "2%", "wider"),
        *("confidence", "after start", "step has ended", "unknown"),
    ],
)
def test_a_promise_is_another_where_the_run_or_a_step_moves_by_10_s_or_2_percent(new, has_moved):
    assert new.has_moved(a_promise()) is has_moved


def test_of_a_short_run_it_is_10_s_however_long_it_was_held_back():
    day, short = 86_400.0, TimeRange(90.0, 100.0, 110.0)
    before = Promise(ends=short.later(day))
    for seconds, has_moved in ((9.0, False), (10.0, True)):
        new = Promise(ends=short.later(day + seconds))
        assert new.has_moved(before, begin_seconds=day) is has_moved


def test_what_was_promised_of_no_step_is_another_promise_once_steps_have_times():
    assert a_promise().has_moved(Promise(ends=HOUR))


@pytest.mark.parametrize(
    ("seconds", "outcome"), [(98.5, "early"), (99.0, "kept"), (110.0, "kept"), (111.0, "late")]
)
def test_what_came_of_a_range_as_ends_are_cut_to_whole_seconds(seconds, outcome):
    assert TimeRange(100.0, 105.0, 110.0).outcome(seconds) is PromiseOutcome(outcome)
