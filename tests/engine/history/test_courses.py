"""Widths of loops, cache hits and branches of past runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_engine.history import Past, courses
from kfp_placement_engine.model.history import (
    LearnedWidth,
    LeftOut,
    LoopWidth,
    Observation,
    PastRun,
    StepIdentity,
)
from kfp_placement_engine.model.promise import Course

START = datetime(2026, 11, 1, tzinfo=UTC)


def a_run(number: int, *parts: LoopWidth | LeftOut, ran: str = "") -> PastRun:
    steps = (Observation(StepIdentity("p", ran), 5.0),) if ran else ()
    return PastRun(
        f"u{number}",
        "p",
        START + timedelta(hours=number),
        steps,
        loops=tuple(each for each in parts if isinstance(each, LoopWidth)),
        left_out=tuple(each for each in parts if isinstance(each, LeftOut)),
    )


def widths_of(*widths: int) -> LearnedWidth:
    runs = [a_run(number, LoopWidth("loop", width)) for number, width in enumerate(widths)]
    return Past(runs).courses.widths("p")["loop"]


def test_a_width_is_the_median_of_the_last_five():
    assert widths_of(7) == LearnedWidth(7, 1)
    assert widths_of(4, 8) == LearnedWidth(8, 2)
    assert widths_of(5, 5, 500, 5, 6) == LearnedWidth(5, 5)
    assert widths_of(3, 3, 3, 3, 3, 3, 9, 9, 9) == LearnedWidth(9, 5)


def test_what_may_run_is_planned():
    assert (widths_of(0, 0, 0).width, widths_of(0, 0, 0).planned) == (0, 1)
    assert widths_of(3).planned == 3


def test_of_other_pipelines_nothing_counts():
    past = Past([a_run(0, LoopWidth("loop", 4))])
    assert past.courses.widths("other") == {}


def left_out(*runs: PastRun) -> tuple[int, int]:
    found = Past(runs).courses.left_out("p", "s")
    return found.cached, found.skipped


CACHED, SKIPPED = LeftOut("s", cached=2), LeftOut("s", skipped=1)


def test_runs_in_a_row_count():
    assert left_out(a_run(0, CACHED), a_run(1, CACHED), a_run(2, CACHED)) == (3, 0)
    assert left_out(a_run(0, CACHED), a_run(1, SKIPPED), a_run(2, SKIPPED)) == (0, 2)
    assert left_out(a_run(0, CACHED), a_run(1, ran="s"), a_run(2, CACHED)) == (1, 0)
    # Some iterations have run.
    assert left_out(a_run(0, CACHED), a_run(1, CACHED, ran="s")) == (0, 0)
    assert left_out(a_run(0, LeftOut("s", cached=1, skipped=1))) == (0, 0)


@pytest.mark.parametrize("parts", [LoopWidth, LeftOut])
def test_what_was_not_seen_for_longest_goes_first(monkeypatch, parts):
    monkeypatch.setattr(courses, "MOST_LOOPS", 2)
    past = Past([a_run(number, parts(f"t{number}", 1)) for number in range(4)])
    if parts is LoopWidth:
        assert set(past.courses.widths("p")) == {"t2", "t3"}
    else:
        assert [past.courses.left_out("p", f"t{n}").cached for n in range(4)] == [0, 0, 1, 1]


def test_what_each_of_the_last_runs_left_out_is_known_of_those_that_ended_well():
    ended = [
        replace(a_run(0, CACHED), seconds=9.0),
        replace(a_run(1, SKIPPED, ran="s"), seconds=9.0),
        a_run(2, SKIPPED),
        replace(a_run(3, SKIPPED), seconds=9.0),
    ]
    s = frozenset({"s"})
    last = Past(ended).courses.last("p")
    assert last == (Course(cached=s), Course(), Course(skipped=s))
    assert Past(ended).courses.last("other") == ()


def test_a_loop_in_a_loop_is_not_empty_if_most_of_its_widths_are():
    """Its width is the median of those in the iterations of the loop around it."""
    loops = (LoopWidth("outer", 0), LoopWidth("outer[*].inner", 0))
    (course,) = Past([replace(a_run(0, *loops), seconds=5.0)]).courses.last("p")
    assert course.empty_loops == {"outer"}
