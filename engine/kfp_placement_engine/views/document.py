"""The nouns that every view is made of: pure data, without markup, escape sequences or widths.

A view decides what is said: titles, columns, sentences. A renderer decides how it looks:
`render.text` on a terminal, `render.html` on a page or in a notebook. Text may hold anybody's
names: renderers make it safe to show.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Union

from typing_extensions import override

if TYPE_CHECKING:
    # Here and not above: a table in a terminal comes without drawings.
    from kfp_placement_engine.views.drawings import Graph, TimeLine


class Tone(StrEnum):
    """How much something matters, and whether it is good news."""

    PLAIN = ""
    STRONG = "strong"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True)
class Line:
    """A sentence of its own."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Figure:
    """A figure that a page shows large; text leaves it out, as the lines say the same."""

    label: str
    value: str
    note: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: its heading, in capitals.
        right: numbers are aligned at the right.
        shrink_to: may be shortened down to this many characters if a line is too long; 0: never.
        is_path: a step's name, of which the end matters most.
        wrap_from: the last column alone: its text is wrapped if at least this many columns are left
            for it, else it is on lines of its own below the row; 0: never.
        spare: left out where shortening is not enough, the highest first; 0: never.
        under: on a page its cells are small lines below those of the column of this title.
        reads: how such a line reads: `pull {}`.
    """

    title: str
    right: bool = False
    shrink_to: int = 0
    is_path: bool = False
    wrap_from: int = 0
    spare: int = 0
    under: str = ""
    reads: str = "{}"


NumberColumn = partial(Column, right=True)
"""A column of numbers, aligned at the right."""


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Attributes:
        text: what it says.
        tone: good or bad news.
        node: has this node's colour; "" = no colour.
        share: of the longest bar of the column, 0 to 1; None = no bar.
        short: what it says where the table has too little room; "" = the same.
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
    """A row of a table.

    Attributes:
        cells: one for each column.
        tone: of the whole row.
        items: what the row sums up; a page shows them where the row is opened.
    """

    cells: Sequence[str | Cell]
    tone: Tone = Tone.PLAIN
    items: Sequence["Row"] = ()


@dataclass(frozen=True)
class Table:
    """Rows of text in columns.

    Attributes:
        title: heading on a page.
        columns: how each column is shown.
        rows: from top to bottom.
        lead: a sentence above it.
        caption: what a page says above it besides.
        notes: sentences below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    lead: str = ""
    caption: str = ""
    notes: Sequence[str] = ()

    def without_empty(self, optional: Collection[str]) -> "Table":
        """The table without those of the optional columns that say nothing in any row.

        Args:
            optional: titles of columns.
        """
        rows = [*self.rows, *(item for row in self.rows for item in row.items)]
        kept = [
            at
            for at, column in enumerate(self.columns)
            if column.title not in optional or any(str(row.cells[at]) for row in rows)
        ]

        def narrowed(row: Row) -> Row:
            cells = [row.cells[at] for at in kept]
            return replace(row, cells=cells, items=[narrowed(item) for item in row.items])

        columns = [self.columns[at] for at in kept]
        return replace(self, columns=columns, rows=[narrowed(row) for row in self.rows])


ItemT = TypeVar("ItemT")
Shown = tuple[Column, Callable[[ItemT], str]]
"""A column, and what it shows of an item."""


def table_of(
    title: str,
    columns: Sequence[Shown[ItemT]],
    items: Iterable[ItemT],
    *,
    optional: Collection[str] = (),
    hidden: Collection[str] = (),
) -> Table:
    """A row for each item.

    Args:
        title: of the table.
        columns: from left to right.
        items: from top to bottom.
        optional: titles of columns that are left out where they say nothing of any item.
        hidden: titles of columns that are left out.
    """
    kept = [(column, text) for column, text in columns if column.title not in hidden]
    rows = [Row([text(item) for _, text in kept]) for item in items]
    return Table(title, [column for column, _ in kept], rows).without_empty(optional)


@dataclass(frozen=True)
class Note:
    """One of several remarks.

    Attributes:
        text: what there is to know.
        label: what it is about, such as a step; "" = everything.
        code: stable word for programs, or "".
    """

    text: str
    label: str = ""
    code: str = ""


@dataclass(frozen=True)
class Notes:
    """Remarks under one heading.

    Attributes:
        title: the heading.
        items: from top to bottom.
        tone: of all of them.
        closing: a sentence below them, or "".
    """

    title: str
    items: Sequence[Note]
    tone: Tone = Tone.PLAIN
    closing: str = ""


Part = Union[Table, Notes, "TimeLine", "Graph"]
"""What a document is made of."""


@dataclass(frozen=True)
class Document:
    """All that is shown of one thing.

    Attributes:
        title: name of the thing.
        kind: what it is, such as `Placement plan`; "" = not said.
        lead: what the title says in text, with the most important facts.
        lines: what matters most, in sentences.
        figures: the same as figures, for a page.
        parts: in the order in which they are shown.
        remarks: what all of it rests on, for those who look for it.
        places: in the order of their colours.
    """

    title: str
    kind: str = ""
    lead: str = ""
    lines: Sequence[Line] = ()
    figures: Sequence[Figure] = ()
    parts: Sequence[Part] = ()
    remarks: Sequence[str] = ()
    places: Sequence[str] = ()
