"""Colours and line breaks of text on a terminal."""

import textwrap
from dataclasses import dataclass

_NARROWEST = 20
"""Columns that a wrapped text takes at least, however narrow the terminal is."""


@dataclass(frozen=True)
class Paint:
    """Escape sequences around text, where they are on."""

    on: bool

    def bold(self, text: str) -> str:
        """Return text in bold."""
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        """Return text in a dim colour, for details."""
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        """Return text in red, for errors."""
        return self._wrap("31", text)

    def yellow(self, text: str) -> str:
        """Return text in yellow, for warnings."""
        return self._wrap("33", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


def wrapped(
    text: str, columns: int | None, *, first: str = "", further: str = "", breaks: bool = False
) -> list[str]:
    """Text as lines of at most this many columns; none where it is empty.

    Names of nodes and steps, which are full of hyphens, paths and addresses stay whole.

    Args:
        text: visible text.
        columns: width of the terminal; None = any.
        first: text at the beginning of the first line.
        further: text at the beginning of every further line.
        breaks: words that are longer than a line are broken; else they stick out.
    """
    if not text:
        return []
    if columns is None:
        return [first + text]
    return textwrap.wrap(
        text,
        columns if breaks else max(columns, _NARROWEST),
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
        break_long_words=breaks,
    )
