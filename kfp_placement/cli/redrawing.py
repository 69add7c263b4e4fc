"""Redrawing in place on a terminal: a line of progress, and a block below lines that stay."""

import sys
import time
from typing import Self

import click

from kfp_placement.cli.output import emit
from kfp_placement.cli.terminal import can_redraw, columns_of, has_colour
from kfp_placement_engine.render.shortening import clip_columns
from kfp_placement_engine.render.text import TextStyle, document_text
from kfp_placement_engine.views.document import Document
from kfp_placement_engine.views.formatting import visible

_CLEAR = "\r\x1b[K"
_INTERVAL_SECONDS = 0.1


class ProgressLine:
    """A line on stderr that says how far planning is; a `Progress` of the engine.

    It is removed when the `with` block ends. Nothing is shown where stderr is not a terminal.
    """

    def __init__(self) -> None:
        self._can_redraw = can_redraw(sys.stderr)
        self._last = float("-inf")
        self._drawn = False

    def __call__(self, share: float, text: str) -> None:
        """Show how much is done (0 to 1) and what is being done."""
        monotonic_seconds = time.monotonic()
        if not self._can_redraw or monotonic_seconds - self._last < _INTERVAL_SECONDS:
            return
        self._last = monotonic_seconds
        self._drawn = True
        percent = f"{min(max(share, 0.0), 1.0):4.0%}"
        columns = columns_of(sys.stderr) or len(text)
        sys.stderr.write(_CLEAR + clip_columns(f"{percent} {visible(text)}", columns - 1))
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._drawn = False


class RedrawnBlock:
    """Lines on stdout that stay, and below them a block that is replaced by each new view.

    The block is removed when the `with` block ends. It is shown on a terminal only.
    """

    def __init__(self) -> None:
        self._can_redraw = can_redraw(sys.stdout)
        self._lines: list[str] = []

    def print(self, line: str, *, err: bool = False) -> None:
        """Print a line that stays, above the block."""
        lines = self._lines
        self.clear()
        if err:
            click.echo(line, err=True)
        else:
            emit(f"{line}\n", None)
        self._show(lines)

    def draw(self, view: Document) -> None:
        """Show a view in place of the last one, cut off at the edges of the terminal."""
        if not self._can_redraw:
            return
        # Only `watch` draws blocks, and this import takes as long as those of a small command.
        import shutil

        columns, rows = shutil.get_terminal_size()
        style = TextStyle(columns_of(sys.stdout), has_colour(sys.stdout))
        lines = ["", *document_text(view, style).splitlines()]
        self.clear()
        self._show([clip_columns(line, columns - 1) for line in lines[: max(rows - 2, 1)]])

    def clear(self) -> None:
        """Remove the block from the terminal."""
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
