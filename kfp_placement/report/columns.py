"""Rows of visible text in aligned columns, within a terminal's width."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from kfp_placement.report.shortening import distinct_columns
from kfp_placement.report.visible import clip_columns, clip_path, width

_GAP = 3


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: its heading.
        right: numbers are aligned at the right.
        shrink_to: may be shortened down to this many characters if the line is too long; 0: never.
        is_path: a step's name, of which the end matters most.
        wrap_from: the last column alone: its text is wrapped if at least this many columns are left
            for it, else it is on lines of its own below the row; 0: never.
        spare: left out where shortening is not enough, the highest first; 0: never.
    """

    title: str
    right: bool = False
    shrink_to: int = 0
    wrap_from: int = 0
    is_path: bool = False
    spare: int = 0


def layout(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], limit: int | None
) -> list[str]:
    """The heading and the rows as lines, and a last one where columns had to be left out.

    Args:
        columns: how each is shown.
        rows: the text of each column.
        limit: the terminal's width; None = any.
    """
    columns, rows, left_out = _fitted(columns, rows, limit)
    wraps = columns[-1].wrap_from
    fixed = columns[:-1] if wraps else columns
    widths = _natural_widths(fixed, rows)
    room = None
    if limit is not None:
        total = sum(widths) + _GAP * len(widths)
        # Where the last column does not fit beside the others, it does not narrow them either.
        reserve = wraps + _GAP if wraps and total + wraps <= limit else 0
        widths = _shrunk(fixed, widths, limit - reserve)
        room = limit - sum(widths) - _GAP * len(widths)
    forms = [
        distinct_columns(
            (row[at] for row in rows), size, clip_path if column.is_path else clip_columns
        )
        for at, (column, size) in enumerate(zip(fixed, widths, strict=True))
    ]
    lines = []
    for row in [[column.title for column in columns], *rows]:
        cells = [
            _aligned(short.get(text, text), size, right=column.right)
            for text, size, column, short in zip(row, widths, fixed, forms, strict=False)
        ]
        line = (" " * _GAP).join(cells)
        lines += _with_wrapped(line, row[-1], room, wraps) if wraps else [line.rstrip()]
    if left_out:
        lines.append(f"no room for {', '.join(left_out)}: widen the terminal, or use -o json")
    return lines


def _fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], limit: int | None
) -> tuple[list[Column], list[list[str]], list[str]]:
    """Columns and rows without what has no room, and the titles of that."""
    kept, cells = list(columns), [list(row) for row in rows]
    left_out: list[str] = []
    while limit is not None and _least_width(kept, cells) > limit:
        spare = [index for index, column in enumerate(kept) if column.spare]
        if not spare:
            break
        first = max(spare, key=lambda index: kept[index].spare)
        left_out.append(kept.pop(first).title)
        for row in cells:
            row.pop(first)
    return kept, cells, left_out


def _least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Columns that the lines take where all that may be shortened is."""
    fixed = columns[:-1] if columns[-1].wrap_from else columns
    return sum(_shrunk(fixed, _natural_widths(fixed, rows), 0)) + _GAP * (len(fixed) - 1)


def natural_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Columns that the lines take where nothing is cut, without a last column that wraps."""
    fixed = columns[:-1] if columns[-1].wrap_from else columns
    widths = _natural_widths(fixed, rows)
    return sum(widths) + _GAP * (len(widths) - 1)


def _natural_widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max([width(column.title), *(width(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]


def _shrunk(columns: Sequence[Column], widths: list[int], limit: int) -> list[int]:
    """Take what is too much from the widest columns that may shrink."""
    widths = list(widths)
    excess = sum(widths) + _GAP * (len(widths) - 1) - limit
    while excess > 0:
        candidates = [
            index
            for index, column in enumerate(columns)
            if column.shrink_to and widths[index] > max(column.shrink_to, len(column.title))
        ]
        if not candidates:
            break
        widest = max(candidates, key=lambda index: widths[index])
        widths[widest] -= 1
        excess -= 1
    return widths


def _aligned(text: str, size: int, *, right: bool) -> str:
    padding = " " * (size - width(text))
    return padding + text if right else text + padding


def _with_wrapped(line: str, text: str, room: int | None, wrap_from: int) -> list[str]:
    gap = " " * _GAP
    if room is None or width(text) <= room:
        return [(line + gap + text).rstrip()]
    if room >= wrap_from:
        first, *rest = _wrapped(text, room) or [""]
        return [line + gap + first, *(" " * width(line) + gap + part for part in rest)]
    below = _wrapped(text, max(width(line) + _GAP + room - 4, wrap_from))
    return [line.rstrip(), *("    " + part for part in below)]


def _wrapped(text: str, room: int) -> list[str]:
    # Names of nodes and steps are full of hyphens; they stay whole.
    return textwrap.wrap(text, room, break_on_hyphens=False)
