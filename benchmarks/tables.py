"""Tables of results: aligned for a terminal, Markdown for the committed files, figures as JSON."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FORMATS = ("table", "json", "markdown")
"""Formats of printed results."""


@dataclass(frozen=True)
class Table:
    """A table whose first columns are words and the others figures.

    Attributes:
        title: one line above it.
        headings: one for each column.
        rows: cells as text.
        words: number of columns with words, aligned to the left.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1

    def lines(self) -> list[str]:
        """Return the table for a terminal."""
        table = [self.headings, *self.rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(self.headings))]
        return [self.title, *("  " + self._aligned(row, widths) for row in table)]

    def markdown(self) -> list[str]:
        """Return the table for a file."""
        marks = [":---" if column < self.words else "---:" for column in range(len(self.headings))]
        rows = ["| " + " | ".join(row) + " |" for row in (self.headings, marks, *self.rows)]
        return [f"**{self.title}**", "", *rows]

    def _aligned(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = [
            cell.ljust(width) if column < self.words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()


@dataclass(frozen=True)
class Page:
    """Results of a benchmark, for all formats.

    Attributes:
        heading: heading of the page, as Markdown.
        parts: tables, and paragraphs given as lines.
        figures: figures of the tables for JSON, not rounded.
    """

    heading: str
    parts: Sequence[Table | Sequence[str]]
    figures: Mapping[str, Any]

    def lines(self, form: str) -> list[str]:
        """Return the page in one of `FORMATS`."""
        if form == "json":
            return [json.dumps(self.figures, indent=2)]
        if form == "markdown":
            return as_markdown(self.heading, self.parts).splitlines()
        return as_text(self.parts)


def as_markdown(heading: str, parts: Sequence[Table | Sequence[str]]) -> str:
    """Return a page as Markdown: tables, and paragraphs given as lines."""
    lines = [f"# {heading}"]
    for part in parts:
        lines += ["", *(part.markdown() if isinstance(part, Table) else part)]
    return "\n".join(lines) + "\n"


def as_text(parts: Sequence[Table | Sequence[str]]) -> list[str]:
    """Return the same page for a terminal."""
    lines: list[str] = []
    for part in parts:
        lines += [*([""] if lines else []), *(part.lines() if isinstance(part, Table) else part)]
    return lines


def machine() -> str:
    """Return the class of machine that figures come from, without its name."""
    cores = os.cpu_count() or 1
    return (
        f"{cores} core{'s' if cores > 1 else ''} ({platform.machine()}), {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def percent(ratio: float, digits: int = 1) -> str:
    """Return a ratio as percent, without a minus sign before zero."""
    text = f"{100 * ratio:.{digits}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text
