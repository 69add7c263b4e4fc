"""Lines that stay, and below them, on a terminal, a block that is drawn repeatedly."""

import shutil
import sys
from typing import Self

import click

from kfp_placement.cli.output import emit
from kfp_placement.cli.terminal import can_redraw, columns_of, has_colour
from kfp_placement_engine.render.terminal import clip_columns
from kfp_placement_engine.render.text import TextStyle, document_text
from kfp_placement_engine.views.document import Document


class LiveBlock:
    """Prints lines for good; the block is gone when its own block ends."""

    def __init__(self) -> None:
        self._on = can_redraw(sys.stdout)
        self._lines: list[str] = []

    def print(self, line: str, *, err: bool = False) -> None:
        """Print a line that stays."""
        lines = self._lines
        self.clear()
        if err:
            click.echo(line, err=True)
        else:
            emit(f"{line}\n", None)
        self._show(lines)

    def draw(self, view: Document) -> None:
        """Show a view instead of the one before; nothing where there is no terminal."""
        if not self._on:
            return
        columns, rows = shutil.get_terminal_size()
        style = TextStyle(columns_of(sys.stdout), has_colour(sys.stdout))
        lines = ["", *document_text(view, style).splitlines()]
        self.clear()
        self._show([clip_columns(line, columns - 1) for line in lines[: max(rows - 2, 1)]])

    def clear(self) -> None:
        """Take the block off the terminal."""
        if self._lines:
            sys.stdout.write(f"\x1b[{len(self._lines)}F\x1b[J")
            sys.stdout.flush()
            self._lines = []

    def _show(self, lines: list[str]) -> None:
        if lines:
            emit("".join(f"{line}\n" for line in lines), None)
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
