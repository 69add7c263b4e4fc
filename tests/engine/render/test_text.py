import re

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.render.terminal import wrapped
from kfp_placement_engine.render.text import TextStyle, notes_lines, table_lines
from kfp_placement_engine.views.document import Column, Note, Notes, Row, Table
from tests.support.plans import a_plan, a_step, unplaced_step
from tests.support.renderings import plan_table

COLOUR = re.compile(r"\x1b\[[0-9]+m")
WORDS = st.lists(st.text("abc-", min_size=1, max_size=12), max_size=40).map(" ".join)


@given(WORDS, st.integers(20, 100))
def test_lines_end_before_the_edge_and_say_it_all(text, columns):
    lines = wrapped(text, columns, first="  ", further="    ")
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines).split() == text.split()


def test_words_that_are_longer_than_a_line_stay_whole():
    path = "/a/very/long/path/to/a/file/that/somebody/wants/to/copy.yaml"
    assert any(path in line for line in wrapped(f"cannot read {path}: no such file", 30))
    assert wrapped(f"cannot read {path}", None) == [f"cannot read {path}"]
    assert wrapped("", 30) == []


@given(WORDS.filter(bool), st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_colours_change_nothing_but_colours(text, label, code):
    notes = Notes("Warnings", [Note(text, label, code)])
    for columns in (None, 30):
        painted = notes_lines(notes, TextStyle(columns, colour=True))
        assert [COLOUR.sub("", line) for line in painted] == notes_lines(notes, TextStyle(columns))


def test_warnings_of_a_plan_are_wrapped_and_coloured_as_its_tables(golden):
    long = "its number of iterations is known only at run time; 3 are assumed: give its loop width"
    plan = a_plan(
        a_step(),
        unplaced_step(reason="no node has 512 CPU: 3 nodes have too little CPU, 2 are cordoned"),
        notices=(Notice("loop-width-assumed", long, "for-loop-1"),),
        assumptions=(f"run time 1m for 47 of 47 steps ({', '.join(['a-step'] * 12)})",),
    )
    text = plan_table(plan, columns=60, colour=True)
    golden(COLOUR.sub("", text))
    assert max(len(COLOUR.sub("", line)) for line in text.splitlines()) <= 60
    assert "  \x1b[1mfor-loop-1\x1b[0m: " in text
    assert "\x1b[31mUnschedulable" in text
    assert "\x1b[2m[loop-width-assumed]\x1b[0m\n" in text
    assert plan_table(plan, columns=60) == COLOUR.sub("", text)


def layout(columns, rows, limit):
    """The lines of a table, without its heading."""
    return table_lines(Table("", columns, [Row(row) for row in rows]), TextStyle(limit))


def test_columns_shrink_from_the_widest():
    columns = [Column("NAME", shrink_to=6), Column("N", right=True)]
    assert layout(columns, [["a" * 30, "1"], ["b", "22"]], 20) == [
        "NAME               N",
        "aaaaaaa…aaaaaaa    1",
        "b                 22",
    ]


def test_columns_that_have_no_room_are_named():
    columns = [Column("NAME"), Column("A", spare=1), Column("B", spare=2)]
    assert layout(columns, [["x" * 14, "aaaa", "bbbb"]], 24) == [
        "NAME             A",
        "x" * 14 + "   aaaa",
        "no room for B: widen the terminal, or use -o json",
    ]


def test_a_reason_that_does_not_fit_stands_below():
    columns = [Column("NAME"), Column("WHY", wrap_from=10)]
    rows = [["x" * 30, "one two three four five six seven"]]
    assert layout(columns, rows, 36)[1:] == [
        "x" * 30,
        "    one two three four five six",
        "    seven",
    ]
    assert layout(columns, rows, 46)[1:] == [
        "x" * 30 + "   one two three",
        " " * 33 + "four five six",
        " " * 33 + "seven",
    ]
