"""Warnings and errors on stderr: as the terminal is, and plain text everywhere else."""

import io
from contextlib import redirect_stderr

import pytest

from kfp_placement.cli.terminal import columns_of, has_colour, tell_error, warn

SENTENCE = "loop for-loop-1 has an unknown width; 3 is assumed: give --loop-width for-loop-1=N"


class Terminal(io.StringIO):
    """A terminal of which nobody knows the width."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.fixture(params=[Terminal, io.StringIO], ids=["terminal", "pipe"])
def stderr(request, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return request.param()


def text_of(stderr, *say):
    with redirect_stderr(stderr):
        for each in say:
            each()
    return stderr.getvalue()


def test_notices_fit_a_terminal_and_are_one_line_elsewhere(stderr, golden):
    text = text_of(
        stderr, lambda: warn(SENTENCE), lambda: warn(""), lambda: tell_error("no such file: a.yaml")
    )
    golden(text.replace("\x1b", "ESC"))
    if stderr.isatty():
        assert all(len(line.replace("\x1b[33m", "")) <= 44 for line in text.splitlines())
    else:
        assert text == f"Warning: {SENTENCE}\nError: no such file: a.yaml\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_nobody_wants_it(stderr, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert "\x1b" not in text_of(stderr, lambda: warn(SENTENCE))
    assert not has_colour(stderr)


def test_names_in_notices_steer_nothing(stderr):
    text = text_of(stderr, lambda: tell_error("run \x1b[2J\u202e is not there"))
    assert "\x1b[2J" not in text
    assert "\\x1b[2J" in text


def test_the_width_of_a_terminal(monkeypatch):
    assert columns_of(io.StringIO()) is None
    for asked, columns in (("77", 77), ("0", 80), ("wide", 80), ("", 80)):
        monkeypatch.setenv("COLUMNS", asked)
        assert columns_of(Terminal()) == columns
