"""On a terminal the block is redrawn below the lines that stay."""

import os
import pty
import subprocess
import sys

SOURCE = """
from kfp_placement.cli.redrawing import RedrawnBlock
from kfp_placement_engine.views.document import Document, Line
with RedrawnBlock() as block:
    block.print("first")
    block.draw(Document("one", lines=[Line("two " + "x" * 300)]))
    block.print("second")
    block.draw(Document("three"))
"""


def drawn(**environment):
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", SOURCE],
        stdout=theirs,
        env={**os.environ, "COLUMNS": "40", "LINES": "10", "NO_COLOR": "1", **environment},
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # the terminal's other end is closed
    finally:
        os.close(ours)
    assert done.wait(timeout=60) == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_the_block_stays_below():
    text = drawn(TERM="xterm")
    first, block, after, last = text.split("\x1b[J")
    assert first.startswith("first\n\none\ntwo\nx")
    assert "…" in first  # cut to the terminal's width, so that a line is a line
    assert first.endswith("\x1b[4F")
    assert block.startswith("second\n\none\n")
    assert after == "\nthree\n\x1b[2F"
    assert last == ""


def test_a_dumb_terminal_gets_lines_alone():
    assert drawn(TERM="dumb") == "first\nsecond\n"
