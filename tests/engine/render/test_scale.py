from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.render.scale import Scale, lanes

SPANS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e5)).map(lambda p: (p[0], p[0] + p[1])), max_size=40
)


@given(SPANS)
def test_nothing_overlaps_in_a_lane(spans):
    lane_spans = lanes(spans)
    assert sorted(index for lane in lane_spans for index in lane) == list(range(len(spans)))
    for lane in lane_spans:
        inside = sorted(spans[index] for index in lane)
        for before, after in pairwise(inside):
            assert after[0] >= before[1] - 1e-6 or after[0] == before[0] == before[1]


def test_no_more_lanes_than_run_at_once():
    assert lanes([(0, 2), (1, 3), (2, 4)]) == [[0, 2], [1]]


def ticks(end):
    return Scale(end, 100, 900).ticks(100)


@given(st.floats(1e-5, 1e9))
def test_a_handful_of_round_ticks(end):
    marks = ticks(end)
    assert marks[0] == 0
    assert 1 <= len(marks) <= 10
    assert marks[-1] <= end * (1 + 1e-6)


def test_ticks_are_times_people_use():
    assert ticks(1865) == [0, 300, 600, 900, 1200, 1500, 1800]
    assert ticks(86400 * 3)[1] == 12 * 3600
    assert ticks(0) == [0]
