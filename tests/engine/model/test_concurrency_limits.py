"""Which steps a limit of what is under way at once holds back."""

import pytest

from kfp_placement_engine.model.concurrency import ConcurrencyLimit

LIMIT = ConcurrencyLimit("parallelism", 2, (("a", "b"), ("c",), ("d",), ("e", "f")))


@pytest.mark.parametrize(
    ("begun", "ended", "held_back"),
    [
        ("", "", ""),
        ("a", "", ""),
        ("ac", "", "def"),
        ("ac", "a", "def"),
        ("abc", "ab", ""),
        ("acd", "c", "ef"),
        ("acde", "", ""),
    ],
)
def test_only_holders_that_have_not_begun_wait_for_a_place(begun, ended, held_back):
    assert list(LIMIT.held_back(begun, ended)) == list(held_back)
