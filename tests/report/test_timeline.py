from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement.report.timeline import Interval, lanes, load, ticks

SPANS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e5)).map(lambda p: Interval(p[0], p[0] + p[1])),
    max_size=40,
)


@given(SPANS)
def test_nothing_overlaps_in_a_lane(intervals):
    found = lanes(intervals)
    for lane in set(found):
        inside = [i for i, its in zip(intervals, found, strict=True) if its == lane]
        inside.sort(key=lambda interval: (interval.start, interval.end))
        for before, after in pairwise(inside):
            assert after.start >= before.end - 1e-6 or after.start == before.start == before.end


def test_no_more_lanes_than_run_at_once():
    assert lanes([Interval(0, 2), Interval(1, 3), Interval(2, 4)]) == [0, 1, 0]


@given(st.floats(1e-5, 1e9))
def test_a_handful_of_round_ticks(end):
    found = ticks(end)
    assert found[0] == 0
    assert 1 <= len(found) <= 10
    assert found[-1] <= end * (1 + 1e-6)


def test_ticks_are_times_people_use():
    assert ticks(1865) == [0, 300, 600, 900, 1200, 1500, 1800]
    assert ticks(86400 * 3)[1] == 12 * 3600
    assert ticks(0) == [0]


def test_load_counts_what_runs_at_once():
    assert load([Interval(0, 5), Interval(4, 9.9)], 10, 5) == [1, 1, 2, 1, 1]
    assert load([], 0, 3) == [0, 0, 0]
