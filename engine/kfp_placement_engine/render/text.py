"""Documents as plain text, within a terminal's width or as wide as they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kfp_placement_engine.render.shortening import clip_columns, clip_path, distinct_columns
from kfp_placement_engine.render.terminal import Paint, wrapped
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.document import Cell, Column, Document, Notes, Table, Tone
from kfp_placement_engine.views.formatting import visible

_GAP = "   "
_INDENT = "  "

Texts = tuple[Column, list[str]]
"""A column, and what it says in each row."""


@dataclass(frozen=True)
class TextStyle:
    """Style of printed text.

    Attributes:
        columns: width of the terminal; None: as wide as the text is (a file or a pipe).
        colour: escape sequences for bold, dim, red and yellow.
    """

    columns: int | None = None
    colour: bool = False


PLAIN = TextStyle()
"""Style of files and pipes: as wide as the text, without colours."""


def document_text(document: Document, style: TextStyle = PLAIN) -> str:
    """Return the document as text that ends with a line break.

    Figures and drawings are left out: the lines and tables say the same.
    """
    blocks = [_head(document, style)]
    for part in document.parts:
        if isinstance(part, Table):
            blocks.append(table_lines(part, style))
        elif isinstance(part, Notes):
            blocks.append(notes_lines(part, style))
    texts = ["\n".join(line.rstrip() for line in block) for block in blocks if block]
    return "\n\n".join(texts) + "\n"


def table_lines(table: Table, style: TextStyle = PLAIN) -> list[str]:
    """Return the lines of a table: its lead, the heading, the rows, and below them its notes."""
    paint = Paint(style.colour)
    lines = [paint.bold(line) for line in _wrapped(table.lead, style)]
    if table.rows:
        (heading, *rows), remark = _layout(table, style.columns)
        lines += map(paint.dim, heading)
        for row, own in zip(table.rows, rows, strict=True):
            lines += map(paint.bold, own) if row.tone is Tone.STRONG else own
        lines += [paint.dim(remark)] if remark else []
    return lines + [paint.dim(line) for note in table.notes for line in _wrapped(note, style)]


def notes_lines(notes: Notes, style: TextStyle) -> list[str]:
    """Return the lines of remarks below their heading, in its colour."""
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


def _layout(table: Table, limit: int | None) -> tuple[list[list[str]], str]:
    """Return the lines of the heading and each row, and a remark; "" = all columns have room."""
    columns, left_out = _with_room(table, limit)
    last, texts = columns[-1]
    widths, room = _widths(columns), None
    if limit is not None:
        total, wraps = sum(widths) + len(_GAP) * len(widths), last.wrap_from
        # Where the last column does not fit beside the others, it does not narrow them either.
        reserve = wraps + len(_GAP) if wraps and total + wraps <= limit else 0
        widths = _widths(columns, limit - reserve)
        room = limit - sum(widths) - len(_GAP) * len(widths)
    fixed = [_aligned(*each, size) for each, size in zip(columns, widths, strict=False)]
    lines = [_GAP.join(cells) for cells in zip(*fixed, strict=True)]
    whole = [[line.rstrip()] for line in lines]
    if last.wrap_from:
        whole = [
            _with_wrapped(line, text, room, last.wrap_from)
            for line, text in zip(lines, [last.title, *texts], strict=True)
        ]
    if not left_out:
        return whole, ""
    return whole, f"no room for {', '.join(left_out)}: widen the terminal, or use -o json"


def _with_room(table: Table, limit: int | None) -> tuple[list[Texts], list[str]]:
    """Return the columns for which there is room, and the titles of those that are left out."""
    columns = _columns(table, str)
    left_out: list[str] = []
    if limit is None:
        return columns, left_out
    if _taken(_widths(columns)) > limit:
        columns = _columns(table, _short)
    while _taken(_widths(columns, 0)) > limit:
        first = max(range(len(columns)), key=lambda at: columns[at][0].spare)
        if not columns[first][0].spare:
            break
        left_out.append(columns.pop(first)[0].title)
    return columns, left_out


def _columns(table: Table, text: Callable[[str | Cell], str]) -> list[Texts]:
    return [
        (column, [visible(text(row.cells[at])) for row in table.rows])
        for at, column in enumerate(table.columns)
    ]


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


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(columns: Sequence[Texts], limit: int | None = None) -> list[int]:
    """Return the width of each column, without a last one that wraps.

    Args:
        columns: columns from left to right.
        limit: width to which the widest columns shrink, if they may; None = no limit.
    """
    fixed = columns[:-1] if columns[-1][0].wrap_from else columns
    widths = [max(map(width, [column.title, *texts])) for column, texts in fixed]
    while limit is not None and _taken(widths) > limit:
        candidates = [
            at
            for at, (column, _) in enumerate(fixed)
            if column.shrink_to and widths[at] > max(column.shrink_to, len(column.title))
        ]
        if not candidates:
            break
        widths[max(candidates, key=widths.__getitem__)] -= 1
    return widths


def _aligned(column: Column, texts: Sequence[str], size: int) -> list[str]:
    """Return heading and texts of a column, equally wide; different texts look different."""
    forms = distinct_columns(texts, size, clip_path if column.is_path else clip_columns)
    lines = [column.title, *(forms[text] for text in texts)]
    spaces = [" " * (size - width(line)) for line in lines]
    pairs = zip(spaces, lines, strict=True)
    return [space + line if column.right else line + space for space, line in pairs]


def _with_wrapped(line: str, text: str, room: int | None, wrap_from: int) -> list[str]:
    if room is None or width(text) <= room:
        return [(line + _GAP + text).rstrip()]
    if room >= wrap_from:
        further = " " * width(line + _GAP)
        first, *rest = wrapped(text, room, breaks=True) or [""]
        return [line + _GAP + first, *(further + part for part in rest)]
    below = wrapped(text, max(width(line + _GAP) + room - 4, wrap_from), breaks=True)
    return [line.rstrip(), *("    " + part for part in below)]
