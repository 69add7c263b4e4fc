"""The table of what-if: made-up cases, suggestions, and a search of every single change."""

from dataclasses import replace

import pytest

from benchmarks.what_if import is_good
from benchmarks.what_if_case import CASES, NODES, STEPS, made_up_case
from benchmarks.what_if_report import table
from benchmarks.what_if_search import SearchedCase, ask, search_every

SEARCHED = SearchedCase(
    case=CASES[0],
    dispatch="ready",
    present_seconds=1000.0,
    tried=40,
    every=120,
    wall_seconds=2.0,
    cpu_seconds=3.5,
    first="+1 of large",
    first_gain=0.19,
    best_gain=0.2,
    best="large-1 cpu=32",
)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_case_has_the_size_asked_for_and_is_the_same_each_time(number):
    run, cluster = made_up_case(number)
    assert (len(run.steps), len(cluster.nodes)) == (STEPS, NODES)
    assert made_up_case(number) == (run, cluster)
    assert bool(run.claims) == CASES[number].has_volume


def test_one_case_is_measured():
    """With next to no search; the last change is one that nothing suggests."""
    case = search_every(ask(1, "ready", 0.1), 0.0)
    assert case.first_gain > 0.05
    assert case.share > 0.5
    assert 0 < case.tried < case.every
    assert case.cpu_seconds > 0


def test_what_is_late_or_far_from_the_best_fails():
    assert is_good(SEARCHED)
    assert not is_good(replace(SEARCHED, wall_seconds=3.1))
    assert not is_good(replace(SEARCHED, first_gain=0.17))
    assert not is_good(replace(SEARCHED, first="", first_gain=0.0))
    assert is_good(replace(SEARCHED, first="", first_gain=0.0, best_gain=0.009))


def test_the_table_says_what_was_found():
    (row,) = table([SEARCHED]).rows
    assert row[3:5] == ["+1 of large", "large-1 cpu=32"]
    assert row[-3:] == ["19.0", "20.0", "95"]
    (row,) = table([replace(SEARCHED, first="", best_gain=0.001, first_gain=0.0)]).rows
    assert row[3:5] == ["nothing", "nothing"]
