"""Colours, widths and line breaks of text on a terminal."""

import re
import textwrap
import unicodedata
from dataclasses import dataclass

from kfp_placement_engine.views.formatting import clip

_INDEXES = re.compile(r"(?:\[[^\[\]]*\])+$")

_FEW = 4
"""Columns in which a shortened name still says something."""

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
        first: begins the first line.
        further: begins every further one.
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


def width(text: str) -> int:
    """Columns that visible text takes on a terminal: wide characters take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def clip_columns(text: str, limit: int) -> str:
    """Shorten visible text in the middle until it takes at most `limit` columns."""
    if width(text) <= limit:
        return text
    characters = min(len(text), limit)
    while characters > 1 and width(clip(text, characters)) > limit:
        characters -= 1
    shorter = clip(text, characters)
    # A single wide character may be all there is, and too much.
    return shorter if width(shorter) <= limit else "…"[:limit]


def clip_path(path: str, limit: int) -> str:
    """Shorten a step's visible name: groups go first, their loop indexes and the step itself stay.

    `exit-handler-1.for-loop-1[0].augment` becomes `…for-loop-1[0].augment`, `…[0].augment`.
    """
    if width(path) <= limit:
        return path
    *groups, last = path.split(".")
    matches = [_INDEXES.search(group) for group in groups]
    indexes = [match[0] if match else "" for match in matches]
    for kept in range(1, len(groups) + 1):
        start = "".join(indexes[:kept])
        rest = ".".join(groups[kept:])
        shorter = "…" + ".".join(part for part in (start, rest, last) if part)
        if width(shorter) <= limit:
            return shorter
    start = "…" + "".join(indexes) + ("." if any(indexes) else "")
    room = limit - width(start)
    return (
        start + clip_columns(last, room) if groups and room >= _FEW else clip_columns(path, limit)
    )


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
