"""Whose work comes next, and how much of it is done in a tick."""

import pytest

from kfp_placement_controller.runs.turns import SLICE_STEPS, Turns, Work


@pytest.fixture
def turns():
    turns = Turns()
    turns.begin(0.0)
    return turns


def work(namespace: str, *steps: float) -> list[Work[str]]:
    """Pieces of work of a namespace, named by their numbers."""
    return [Work(namespace, each, f"{namespace}-{number}") for number, each in enumerate(steps)]


def test_the_namespace_that_asks_for_least_comes_first_and_keeps_its_own_order(turns):
    asked = [*work("large", 300, 10), *work("small", 30, 20)]
    assert turns.take(asked) == ["small-0", "small-1", "large-0", "large-1"]


def test_many_small_pieces_count_together(turns):
    asked = [*work("tiny", *[10] * 50), *work("small", 200)]
    assert turns.take(asked, most=2) == ["small-0", "tiny-0"]


def test_a_slice_ends_before_what_does_not_fit(turns):
    asked = [*work("small", 10), *work("large", SLICE_STEPS)]
    assert turns.take(asked) == ["small-0"]
    assert turns.take(work("large", SLICE_STEPS)) == ["large-0"]


def test_a_tick_does_one_piece_that_is_larger_than_a_slice(turns):
    large = work("large", 6 * SLICE_STEPS)
    assert turns.take(large, may_be_large=False) == []
    assert turns.take(large) == ["large-0"]
    assert turns.take(work("other", 2 * SLICE_STEPS)) == []
    turns.begin(1.0)
    assert turns.take(work("other", 2 * SLICE_STEPS)) == ["other-0"]


def test_who_had_much_lately_comes_later(turns):
    turns.take(work("before", SLICE_STEPS))
    asked = [*work("before", 10), *work("other", 500)]
    assert turns.take(asked, most=1) == ["other-0"]
    turns.begin(3600.0)
    assert turns.take(asked, most=1) == ["before-0"]


def test_a_large_namespace_gets_its_turn_beside_small_ones_that_never_stop(turns):
    for tick in range(100):
        turns.begin(tick / 10)
        asked = [*work("large", 5000), *work("small", 400)]
        if "large-0" in turns.take(asked):
            break
    assert 5 < tick < 20
