"""Parts that every view is made of, as pure data: documents, tables, notes, cells.

A view decides what is shown: titles, columns, sentences. A renderer decides how it looks:
`render.text` on a terminal, `render.html` on a page or in a notebook. Text may contain names that
strangers chose: renderers make it safe to show.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Union

from typing_extensions import override

if TYPE_CHECKING:
    # Here and not above: a table in a terminal comes without drawings.
    from kfp_placement_engine.views.drawings import Graph, TimeLine


class Tone(StrEnum):
    """Emphasis of text: how much it matters, and whether it is good or bad."""

    PLAIN = ""
    STRONG = "strong"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True)
class Line:
    """One sentence, with its tone."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Figure:
    """Figure that a page shows large; text leaves it out, as the lines say the same."""

    label: str
    value: str
    note: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: heading, in capitals.
        only_wide: whether only `-o wide` shows the column.
        optional: whether the column is left out if it is empty in every row.
        right: whether the text is aligned at the right, as numbers are.
        shrink_to: number of characters to which text is shortened if lines are too long; 0 = never.
        is_path: whether the cells are names of steps, of which the end matters most.
        wrap_from: smallest width at which the text of the last column is wrapped beside the others,
            else it is put on lines below the row; 0 = not wrapped.
        spare: rank among columns that are left out if shortening is not enough, the highest first;
            0 = never left out.
        under: title of the column below whose cells a page puts these, as small lines; "" = none.
        reads: form of such a line: `pull {}`.
    """

    title: str
    only_wide: bool = False
    optional: bool = False
    right: bool = False
    shrink_to: int = 0
    is_path: bool = False
    wrap_from: int = 0
    spare: int = 0
    under: str = ""
    reads: str = "{}"


NAMESPACE = Column("NAMESPACE")
"""Column of the namespace, which tables of a single namespace leave out."""

NumberColumn = partial(Column, right=True)
"""Column of numbers, aligned at the right."""


@dataclass(frozen=True)
class Cell:
    """Cell of a table with more than text.

    Attributes:
        text: text of the cell.
        tone: emphasis of the text.
        node: name of the node whose colour the cell has; "" = no colour.
        share: length of a bar as a share of the longest one of the column; None = no bar.
        short: text if the table has too little room; "" = the same text.
    """

    text: str
    tone: Tone = Tone.PLAIN
    node: str = ""
    share: float | None = None
    short: str = ""

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Row:
    """Row of a table.

    Attributes:
        cells: one cell for each column.
        tone: emphasis of the whole row.
        items: rows that this row sums up; a page shows them when the row is opened.
    """

    cells: Sequence[str | Cell]
    tone: Tone = Tone.PLAIN
    items: Sequence["Row"] = ()


@dataclass(frozen=True)
class Table:
    """Table of text.

    Attributes:
        title: heading on a page.
        columns: columns from left to right.
        rows: rows from top to bottom.
        lead: sentence above the table.
        caption: further sentence above the table on a page.
        notes: sentences below the table.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    lead: str = ""
    caption: str = ""
    notes: Sequence[str] = ()

    def without_empty(self) -> "Table":
        """Return the table without optional columns that are empty in every row."""
        rows = [*self.rows, *(item for row in self.rows for item in row.items)]
        kept = [
            at
            for at, column in enumerate(self.columns)
            if not column.optional or any(str(row.cells[at]) for row in rows)
        ]

        def narrowed(row: Row) -> Row:
            cells = [row.cells[at] for at in kept]
            return replace(row, cells=cells, items=[narrowed(item) for item in row.items])

        columns = [self.columns[at] for at in kept]
        return replace(self, columns=columns, rows=[narrowed(row) for row in self.rows])


ItemT = TypeVar("ItemT")
ColumnOf = tuple[Column, Callable[[ItemT], str]]
"""Column of a table of items, with the function that returns an item's cell."""


def table_of(
    title: str,
    columns: Sequence[ColumnOf[ItemT]],
    items: Iterable[ItemT],
    *,
    wide: bool = False,
    namespaces: bool = True,
) -> Table:
    """Return a table with a row for each item.

    Args:
        title: title of the table.
        columns: columns from left to right.
        items: items from top to bottom.
        wide: whether columns for `-o wide` are shown.
        namespaces: whether there is a column for the namespace.
    """
    kept = [
        (column, text)
        for column, text in columns
        if (namespaces or column is not NAMESPACE) and (wide or not column.only_wide)
    ]
    rows = [Row([text(item) for _, text in kept]) for item in items]
    return Table(title, [column for column, _ in kept], rows).without_empty()


@dataclass(frozen=True)
class Note:
    """One of several remarks.

    Attributes:
        text: text of the remark.
        label: subject of the remark, such as a step; "" = everything.
        code: stable word for programs, or "".
    """

    text: str
    label: str = ""
    code: str = ""


@dataclass(frozen=True)
class Notes:
    """Remarks under one heading.

    Attributes:
        title: heading.
        items: remarks from top to bottom.
        tone: emphasis of the heading and the closing sentence.
        closing: sentence below the remarks, or "".
    """

    title: str
    items: Sequence[Note]
    tone: Tone = Tone.PLAIN
    closing: str = ""


Part = Union[Table, Notes, "TimeLine", "Graph"]
"""Part of a document."""


@dataclass(frozen=True)
class Document:
    """Document about one thing, such as a plan or a run.

    Attributes:
        title: name of the thing.
        kind: kind of the thing, such as `Placement plan`; "" = not shown.
        lead: short summary, which text adds to the title.
        lines: sentences on what matters most.
        figures: facts of `lines` as figures, for a page.
        parts: tables, notes and drawings in the order in which they are shown.
        remarks: sentences in small print on the basis of the document.
        places: places in the order of their colours.
    """

    title: str
    kind: str = ""
    lead: str = ""
    lines: Sequence[Line] = ()
    figures: Sequence[Figure] = ()
    parts: Sequence[Part] = ()
    remarks: Sequence[str] = ()
    places: Sequence[str] = ()
