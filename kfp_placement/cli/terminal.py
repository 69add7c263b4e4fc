"""What the terminal can show, and warnings and errors on stderr within its width and in colour."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

import click

from kfp_placement_engine.render.terminal import Paint, wrapped
from kfp_placement_engine.views.formatting import visible

_USUAL_COLUMNS = 80


def can_redraw(stream: TextIO) -> bool:
    """Whether what is shown can be removed again: a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def can_ask() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty()


def has_colour(stream: TextIO) -> bool:
    """Whether escape sequences for colours belong there: a terminal, and nobody minds."""
    # https://no-color.org: present and not empty.
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def columns_of(stream: TextIO) -> int | None:
    """Width of the terminal, or what COLUMNS says; None where the stream is a file or a pipe."""
    if not stream.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def warn(text: str) -> None:
    """Print a warning on stderr; "" = nothing is wrong."""
    if text:
        click.echo(_notice("Warning", Paint(has_colour(sys.stderr)).yellow, text), err=True)


def tell_error(text: str) -> None:
    """Say on stderr why the command, or a part of it, failed."""
    click.echo(_notice("Error", Paint(has_colour(sys.stderr)).red, text), err=True)


def _notice(label: str, paint: Callable[[str], str], text: str) -> str:
    lines = wrapped(f"{label}: {visible(text)}", columns_of(sys.stderr), further="  ")
    return "\n".join([paint(label) + lines[0].removeprefix(label), *lines[1:]])
