"""Abilities of the terminal; warnings and errors on stderr, within its width and in colour."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

import click

from kfp_placement_engine.render.terminal import Paint, wrapped
from kfp_placement_engine.views.formatting import visible

_USUAL_COLUMNS = 80


def can_redraw(stream: TextIO) -> bool:
    """Return whether the stream is a terminal whose cursor can be moved back."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def can_ask() -> bool:
    """Return whether somebody can answer a question: stdin is a terminal."""
    return sys.stdin.isatty()


def has_colour(stream: TextIO) -> bool:
    """Return whether the stream is a terminal and `NO_COLOR` is not set."""
    # https://no-color.org: present and not empty.
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def columns_of(stream: TextIO) -> int | None:
    """Return `COLUMNS`, else the width of the terminal; None if the stream is a file or a pipe."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def warn(text: str) -> None:
    """Print a warning on stderr; nothing if the text is empty."""
    if text:
        click.echo(_notice("Warning", Paint(has_colour(sys.stderr)).yellow, text), err=True)


def tell_error(text: str) -> None:
    """Print on stderr why the command, or a part of it, failed."""
    click.echo(_notice("Error", Paint(has_colour(sys.stderr)).red, text), err=True)


def _notice(label: str, paint: Callable[[str], str], text: str) -> str:
    lines = wrapped(f"{label}: {visible(text)}", columns_of(sys.stderr), further="  ")
    return "\n".join([paint(label) + lines[0].removeprefix(label), *lines[1:]])
