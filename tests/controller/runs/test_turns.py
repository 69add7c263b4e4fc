"""Whose work comes next, and how much of it is done in a tick."""

from typing import Any, NamedTuple

import pytest

from kfp_placement_controller.runs.turns import SLICE_STEPS, Turns, Work
from kfp_placement_engine.model.keys import RunKey


class Clock:
    """Goes on by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def turns(clock):
    turns = Turns(clock)
    turns.begin(0.0)
    return turns


def take(turns: Turns, asked: list[Work[str]], **options: Any) -> list[str]:
    """What is done in a tick."""
    return list(turns.take(asked, **options))


def work(namespace: str, *steps: float) -> list[Work[str]]:
    """Pieces of work of a namespace, named by their numbers."""
    return [Work(namespace, each, f"{namespace}-{number}") for number, each in enumerate(steps)]


def test_the_namespace_that_asks_for_least_comes_first_and_keeps_its_own_order(turns):
    asked = [*work("large", 300, 10), *work("small", 30, 20)]
    assert take(turns, asked) == ["small-0", "small-1", "large-0", "large-1"]


def test_many_small_pieces_count_together(turns):
    asked = [*work("tiny", *[10] * 50), *work("small", 200)]
    assert take(turns, asked, most=2) == ["small-0", "tiny-0"]


def test_a_slice_ends_before_what_does_not_fit(turns):
    asked = [*work("small", 10), *work("large", SLICE_STEPS)]
    assert take(turns, asked) == ["small-0"]
    assert take(turns, work("large", SLICE_STEPS)) == ["large-0"]


def test_a_tick_does_one_piece_that_is_larger_than_a_slice(turns):
    large = work("large", 6 * SLICE_STEPS)
    assert take(turns, large, may_be_large=False) == []
    assert take(turns, large) == ["large-0"]
    assert take(turns, large) == []
    assert take(turns, work("other", 7 * SLICE_STEPS)) == []
    turns.begin(1.0)
    assert take(turns, work("other", 7 * SLICE_STEPS)) == ["other-0"]


def test_who_comes_first_need_not_wait_for_the_next_tick(turns):
    take(turns, work("large", 6 * SLICE_STEPS))
    assert take(turns, work("other", 2 * SLICE_STEPS)) == ["other-0"]


def test_after_a_large_piece_comes_a_tick_without_in_which_others_are_served(turns):
    large, small = work("large", 6 * SLICE_STEPS), work("small", 10)
    ticks = []
    for tick in range(5):
        turns.begin(tick / 10)
        ticks.append((take(turns, small, may_be_large=False), take(turns, large)))
    assert [bool(done) for _, done in ticks] == [True, False, True, False, True]
    assert all(done for done, _ in ticks)


def test_alone_a_large_namespace_rests_in_no_tick(turns):
    for tick in range(3):
        turns.begin(tick / 10)
        assert take(turns, work("large", 6 * SLICE_STEPS))


def test_a_slice_ends_when_its_time_is_over(turns, clock):
    done = []
    for piece in turns.take(work("slow", 400, 400)):
        done.append(piece)
        clock.seconds += 0.07
    assert done == ["slow-0"]


def test_work_counts_by_the_time_that_it_takes(turns, clock):
    for _ in turns.take(work("slow", 20)):
        clock.seconds += 2.0
    assert take(turns, [*work("slow", 20), *work("other", 900)], most=1) == ["other-0"]


def test_what_takes_long_for_its_steps_counts_as_large_from_then_on(turns, clock):
    for _ in turns.take(work("slow", 20)):
        clock.seconds += 2.0
    turns.begin(10.0)
    assert take(turns, work("other", 20), may_be_large=False) == ["other-0"]
    assert take(turns, work("slow", 20), may_be_large=False) == []
    turns.begin(3600.0)
    assert take(turns, work("slow", 20), may_be_large=False) == ["slow-0"]


class ARun(NamedTuple):
    """A run, as far as turns depend on it."""

    key: RunKey
    steps: int


def test_what_has_no_size_is_done_until_a_slice_of_time_is_over_and_counts_by_its_time(
    turns, clock
):
    runs = [ARun(RunKey("patched", str(number)), 6_000) for number in range(5)]
    done = []
    for run in turns.in_time([*runs, ARun(RunKey("other", "small"), 1)]):
        done.append(run.key.name)
        clock.seconds += 0.06
    assert done == ["small", "0"]
    assert take(turns, [*work("patched", 20), *work("third", 500)], most=1) == ["third-0"]


def test_who_had_much_lately_comes_later(turns):
    take(turns, work("before", SLICE_STEPS))
    asked = [*work("before", 10), *work("other", 500)]
    assert take(turns, asked, most=1) == ["other-0"]
    turns.begin(3600.0)
    assert take(turns, asked, most=1) == ["before-0"]


def test_a_large_namespace_gets_its_turn_beside_small_ones_that_never_stop(turns):
    for tick in range(100):
        turns.begin(tick / 10)
        asked = [*work("large", 5000), *work("small", 400)]
        if "large-0" in take(turns, asked):
            break
    assert 5 < tick < 20
