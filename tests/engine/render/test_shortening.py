from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kfp_placement_engine.render.shortening import (
    clip_columns,
    clip_path,
    distinct_columns,
    fit_all,
)
from kfp_placement_engine.render.widths import text_width, width
from kfp_placement_engine.views.formatting import visible
from tests.support.plans import a_plan, a_step
from tests.support.renderings import plan_table

LEAST = 8
"""Columns of the narrowest column that is shortened."""

NAMES = st.lists(st.text(st.sampled_from("ab-.[0]…~2漢"), max_size=40), unique=True, max_size=40)
ALIKE = ["train-the-model-of-" + "x" * n + "-in-europe-west1-b-pool" for n in range(30)]


@given(NAMES, st.integers(LEAST, 40), st.sampled_from([clip_columns, clip_path]))
@example(ALIKE, LEAST, clip_path)
@example(["a" * 50 + middle + "b" * 50 for middle in "xyz"], 12, clip_columns)
@settings(max_examples=200)
def test_names_that_differ_look_different(names, limit, clip):
    short = distinct_columns(names, limit, clip)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(width(form) <= limit for form in short.values())
    assert all(short[name] == name for name in names if width(name) <= limit)


@given(st.lists(st.text(max_size=60).map(visible), unique=True, max_size=20), st.floats(80, 300))
def test_names_in_boxes_look_different(names, pixels):
    short = fit_all(names, pixels, 12.0)
    assert len(set(short.values())) == len(names)
    assert all(text_width(form, 12.0) <= pixels for form in short.values())


def test_only_names_that_would_look_alike_are_shortened_otherwise():
    names = ["short", "a-name-of-its-own-altogether", *ALIKE[:2]]
    short = distinct_columns(names, 16)
    assert [short[name] for name in names[:2]] == ["short", clip_columns(names[1], 16)]


def test_the_part_that_differs_is_kept(golden):
    end = [f"gke-production-pool-of-workers-{n}" for n in "ab"]
    start = [f"{n}-worker-of-the-pool-in-production" for n in ("first", "other")]
    middle = [f"worker-pool-of-{n}-in-europe-west1-production" for n in ("gpus", "cpus")]
    for names in (end, start, middle):
        golden(distinct_columns(names, 16).values(), names[0])
    assert all("pus-" in form for form in distinct_columns(middle, 16).values())


def test_what_cannot_be_told_apart_is_numbered():
    names = [f"{'x' * 30}{a}{'y' * 30}{b}{'z' * 30}" for a, b in product("ab", repeat=2)]
    short = distinct_columns(names, 10)
    assert sorted(form[-2:] for form in short.values()) == ["~1", "~2", "~3", "~4"]


def test_nodes_and_steps_of_a_table_stay_different():
    steps = [
        a_step(f"{group}.for-loop-1[0].prepare-the-data", node=f"node-{group}-{'x' * 60}-pool")
        for group in ("orders", "clicks", "visits")
    ]
    text = plan_table(a_plan(*steps), columns=70)
    rows = [line.split() for line in text.split("\n\n")[2].splitlines()[1:4]]
    assert len({row[0] for row in rows}) == len({row[1] for row in rows}) == 3


@pytest.mark.parametrize(("size", "count"), [(30_000, 2), (80, 5000)])
def test_long_names_and_many_take_no_time(size, count):
    names = [f"step-{'x' * size}-{index}-{'y' * size}" for index in range(count)]
    assert len(set(distinct_columns(names, 20, clip_path).values())) == count


def test_names_that_cannot_be_printed_are_still_told_apart():
    short = fit_all(["a\nb", "a\\nb", "\u202e" * 90_000], 80, 12.0)
    assert len(set(short.values())) == 3
    assert all(form.isprintable() for form in short.values())
