import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.render.shortening import clip_columns, clip_path
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.formatting import (
    NONE,
    clip,
    counted,
    duration,
    latency,
    shown,
    visible,
)

EVIL = {
    "escape": ("\x1b[31mred", "\\x1b[31mred"),
    "line break": ("a\nb\r", "a\\nb\\r"),
    "C1 escape": ("\x9b31m", "\\x9b31m"),
    "right to left": ("\u202egpj.exe", "\\u202egpj.exe"),
    "half a pair": ("\ud800", "\\ud800"),
}


@pytest.mark.parametrize(("text", "safe"), EVIL.values(), ids=EVIL)
def test_what_a_terminal_would_act_on_is_escaped(text, safe):
    assert visible(text) == safe


def test_what_people_write_stays():
    text = "Größe: 3 µm für-loop-1[0].work, 東京 <b> & 'x' $HOME"
    assert visible(text) == text


@given(st.text(alphabet=st.characters(), max_size=80))
def test_visible_text_is_printable_and_stays_itself(text):
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)


@given(st.text(max_size=400), st.integers(1, 60))
def test_shown_text_is_short_and_printable(text, limit):
    assert len(shown(text, limit)) <= limit
    assert shown(text, limit).isprintable()


def test_names_are_cut_in_the_middle():
    assert clip("for-loop-1[12].print-text", 15) == "for-loo…nt-text"
    assert clip("short", 15) == "short"
    assert clip("anything", 0) == ""


def test_width_counts_columns():
    assert width("abc") == 3
    assert width("東京") == 4
    assert width("e\u0301") == 1


@given(st.text(max_size=60), st.integers(2, 40))
def test_clipped_to_columns(text, limit):
    assert width(clip_columns(visible(text), limit)) <= limit


def test_huge_names_are_cut_before_they_are_escaped():
    assert len(shown("\x1b" * 5_000_000, 40)) == 40


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (40, "exit-handler-1.for-loop-1[0].augment"),
        (30, "…for-loop-1[0].augment"),
        (14, "…[0].augment"),
        (11, "…[0].aug…nt"),
        (6, "exi…nt"),
    ],
)
def test_a_path_keeps_its_end(limit, text):
    assert clip_path("exit-handler-1.for-loop-1[0].augment", limit) == text


def test_nested_loops_keep_all_indexes():
    assert clip_path("for-loop-1[0].for-loop-2[11].work", 20) == "…[0][11].work"
    assert clip_path("for-loop-1[0].for-loop-2[11].work", 28) == "…[0].for-loop-2[11].work"
    assert clip_path("a-very-long-name", 9) == "a-ve…name"


@given(st.text(alphabet="ab[]0.…東", max_size=40), st.integers(1, 40))
def test_a_path_never_takes_more_columns_than_it_may(path, limit):
    assert width(clip_path(path, limit)) <= max(limit, 1)


def test_figures_that_do_not_exist():
    assert duration(0.0) == duration(4e-16) == "0s"
    assert duration(None) == duration(math.inf) == latency(None) == NONE
    assert [counted(1, "node"), counted(1000, "node")] == ["1 node", "1,000 nodes"]
