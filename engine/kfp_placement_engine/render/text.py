"""Documents as plain text, within a terminal's width or as wide as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from kfp_placement_engine.render.shortening import distinct_columns
from kfp_placement_engine.render.terminal import Paint, clip_columns, clip_path, width, wrapped
from kfp_placement_engine.views.document import Cell, Column, Document, Notes, Table, Tone
from kfp_placement_engine.views.formatting import visible

_GAP = "   "
_INDENT = "  "


@dataclass(frozen=True)
class TextStyle:
    """How to print.

    Attributes:
        columns: width of the terminal; None: as wide as the text is (a file or a pipe).
        colour: escape sequences for bold, dim, red and yellow.
    """

    columns: int | None = None
    colour: bool = False


def document_text(document: Document, style: TextStyle | None = None) -> str:
    """The whole document, ending with a line break.

    Figures and drawings are left out: the lines and tables say the same.
    """
    style = style or TextStyle()
    blocks = [_head(document, style)]
    for part in document.parts:
        if isinstance(part, Table):
            blocks.append(table_lines(part, style))
        elif isinstance(part, Notes):
            blocks.append(notes_lines(part, style))
    texts = ["\n".join(line.rstrip() for line in block) for block in blocks if block]
    return "\n\n".join(texts) + "\n"


def table_lines(table: Table, style: TextStyle | None = None) -> list[str]:
    """A table: its lead, the heading, the rows, and below them its notes."""
    style = style or TextStyle()
    paint = Paint(style.colour)
    lines = [paint.bold(line) for line in _wrapped(table.lead, style)]
    if table.rows:
        heading, *rows = _layout(table, style.columns)
        lines += map(paint.dim, heading)
        for row, own in zip(table.rows, rows, strict=False):
            lines += map(paint.bold, own) if row.tone is Tone.STRONG else own
        # Besides the rows: what had no room.
        lines += [paint.dim(line) for own in rows[len(table.rows) :] for line in own]
    return lines + [paint.dim(line) for note in table.notes for line in _wrapped(note, style)]


def notes_lines(notes: Notes, style: TextStyle | None = None) -> list[str]:
    """Remarks below their heading, in its colour."""
    style = style or TextStyle()
    paint = Paint(style.colour)
    colours = {Tone.BAD: paint.red, Tone.WARNING: paint.yellow}
    colour = colours.get(notes.tone, paint.bold)
    lines = [colour(line) for line in _wrapped(notes.title, style)]
    for note in notes.items:
        label, code = visible(note.label), f"[{visible(note.code)}]"
        text = visible(note.text)
        if label:
            text = f"{label}: {text}"
        if note.code:
            text = f"{text} {code}"
        own = wrapped(text, style.columns, first=_INDENT, further=2 * _INDENT)
        if label and own[0].startswith(f"{_INDENT}{label}:"):
            own[0] = f"{_INDENT}{paint.bold(label)}{own[0][len(_INDENT + label) :]}"
        if note.code and own[-1].endswith(code):
            own[-1] = own[-1].removesuffix(code) + paint.dim(code)
        lines += own
    return lines + [colour(line) for line in _wrapped(notes.closing, style)]


def _layout(table: Table, limit: int | None) -> list[list[str]]:
    """Lines of the heading, of each row, and where columns had to be left out of a last one."""
    rows = [[visible(str(cell)) for cell in row.cells] for row in table.rows]
    if limit is not None and _natural_width(table.columns, rows) > limit:
        rows = [[visible(_short(cell)) for cell in row.cells] for row in table.rows]
    columns, rows, left_out = _fitted(table.columns, rows, limit)
    wraps = columns[-1].wrap_from
    fixed = columns[:-1] if wraps else columns
    widths = _natural_widths(fixed, rows)
    room = None
    if limit is not None:
        total = sum(widths) + len(_GAP) * len(widths)
        # Where the last column does not fit beside the others, it does not narrow them either.
        reserve = wraps + len(_GAP) if wraps and total + wraps <= limit else 0
        widths = _shrunk(fixed, widths, limit - reserve)
        room = limit - sum(widths) - len(_GAP) * len(widths)
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
        line = _GAP.join(cells)
        lines.append(_with_wrapped(line, row[-1], room, wraps) if wraps else [line.rstrip()])
    if left_out:
        lines.append([f"no room for {', '.join(left_out)}: widen the terminal, or use -o json"])
    return lines


def _short(cell: str | Cell) -> str:
    return (isinstance(cell, Cell) and cell.short) or str(cell)


def _head(document: Document, style: TextStyle) -> list[str]:
    paint = Paint(style.colour)
    title = f"{document.title}: {document.lead}" if document.lead else document.title
    lines = [paint.bold(line) for line in _wrapped(title, style)]
    colours = {Tone.STRONG: paint.bold, Tone.BAD: paint.red, Tone.WARNING: paint.yellow}
    for each in document.lines:
        own = _wrapped(each.text, style)
        lines += map(colours[each.tone], own) if each.tone in colours else own
    for remark in document.remarks:
        lines += map(paint.dim, wrapped(visible(remark), style.columns, further=_INDENT))
    return lines


def _wrapped(text: str, style: TextStyle) -> list[str]:
    return wrapped(visible(text), style.columns)


def _fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], limit: int | None
) -> tuple[list[Column], list[list[str]], list[str]]:
    """Columns and rows without what has no room, and the titles of that."""
    kept, cells = list(columns), [list(row) for row in rows]
    left_out: list[str] = []
    while limit is not None and _least_width(kept, cells) > limit:
        first = max(range(len(kept)), key=lambda index: kept[index].spare)
        if not kept[first].spare:
            break
        left_out.append(kept.pop(first).title)
        for row in cells:
            row.pop(first)
    return kept, cells, left_out


def _least_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Columns that the lines take where all that may be shortened is."""
    fixed = columns[:-1] if columns[-1].wrap_from else columns
    return sum(_shrunk(fixed, _natural_widths(fixed, rows), 0)) + len(_GAP) * (len(fixed) - 1)


def _natural_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Columns that the lines take where nothing is cut, without a last column that wraps."""
    fixed = columns[:-1] if columns[-1].wrap_from else columns
    return sum(_natural_widths(fixed, rows)) + len(_GAP) * (len(fixed) - 1)


def _natural_widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max([width(column.title), *(width(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]


def _shrunk(columns: Sequence[Column], widths: list[int], limit: int) -> list[int]:
    """Take what is too much from the widest columns that may shrink."""
    widths = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - limit
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
    if room is None or width(text) <= room:
        return [(line + _GAP + text).rstrip()]
    if room >= wrap_from:
        further = " " * width(line + _GAP)
        first, *rest = wrapped(text, room, breaks=True) or [""]
        return [line + _GAP + first, *(further + part for part in rest)]
    below = wrapped(text, max(width(line + _GAP) + room - 4, wrap_from), breaks=True)
    return [line.rstrip(), *("    " + part for part in below)]
