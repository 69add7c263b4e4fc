"""On a terminal the block is redrawn below the lines that stay."""

import sys

from tests.support.terminals import in_terminal

SOURCE = """
from kfp_placement.cli.redrawing import RedrawnBlock
from kfp_placement_engine.views.document import Document, Line
with RedrawnBlock() as block:
    block.print("first")
    block.draw(Document("one", lines=[Line("two " + "x" * 300)]))
    block.print("second")
    block.draw(Document("three"))
"""


def drawn(term):
    size = {"COLUMNS": "40", "LINES": "10"}
    text, code = in_terminal([sys.executable, "-c", SOURCE], TERM=term, NO_COLOR="1", **size)
    assert code == 0
    return text.replace("\r\n", "\n")


def test_the_block_stays_below():
    text = drawn("xterm")
    first, block, after, last = text.split("\x1b[J")
    assert first.startswith("first\n\none\ntwo\nx")
    assert "…" in first  # cut to the terminal's width, so that a line is a line
    assert first.endswith("\x1b[4F")
    assert block.startswith("second\n\none\n")
    assert after == "\nthree\n\x1b[2F"
    assert last == ""


def test_a_dumb_terminal_gets_lines_alone():
    assert drawn("dumb") == "first\nsecond\n"
