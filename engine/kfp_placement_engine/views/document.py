"""The nouns that every view is made of: pure data, without markup, escape sequences or widths.

A view decides what is said: titles, columns, sentences. A renderer decides how it looks:
`render.text` on a terminal, `render.html` on a page or in a notebook. Text may hold anybody's
names: renderers make it safe to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kfp_placement_engine.model.promise import TimeRange


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

    def __str__(self) -> str:  # type: ignore[explicit-override]
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


@dataclass(frozen=True)
class Bar:
    """What happens from one time to another on a lane; all seconds are those of the time line.

    Attributes:
        label: short name; those of a schedule differ.
        title: all that is known of it, in a sentence.
        start_seconds, finish_seconds: from when to when.
        phases: parts of it in order of time, each by its kind and the second in which it ends.
        marks: kinds of what is special: `critical`, `conditional`, `assumed`.
        ends: when it ends by past runs; None = not known.
    """

    label: str
    title: str
    start_seconds: float
    finish_seconds: float
    phases: Sequence[tuple[str, float]] = ()
    marks: Sequence[str] = ()
    ends: TimeRange | None = None


@dataclass(frozen=True)
class Lane:
    """What happens in one place, such as a node.

    Attributes:
        name: of the place; bars have its colour.
        note: in a few words how much happens.
        bars: one by one.
        thin: what needs hardly any room, such as driver pods.
        levels: instead of bars: how many run at a time, in equal parts of the time line.
    """

    name: str
    note: str
    bars: Sequence[Bar] = ()
    thin: Sequence[Bar] = ()
    levels: Sequence[int] = ()


@dataclass(frozen=True)
class Schedule:
    """Lanes that belong together, such as those of a plan, or of what happened.

    Attributes:
        title: heading above its lanes, or "".
        lanes: from top to bottom.
    """

    title: str
    lanes: Sequence[Lane]


@dataclass(frozen=True)
class TimeLine:
    """Schedules below each other, on one scale.

    Attributes:
        name: what it shows, for those who do not see it.
        description: the same in a sentence or two.
        schedules: from top to bottom.
        end_seconds: right end of the scale, which begins at 0.
        key: what occurs of phases and marks, each with its meaning.
        limit: moment before which nothing can end, and what to say of it; None = not known.
        begin: time of day of second 0; None = times are durations.
        title: heading.
        notes: what is summed up or left out.
    """

    name: str
    description: str
    schedules: Sequence[Schedule]
    end_seconds: float
    key: Sequence[tuple[str, str]] = ()
    limit: tuple[float, str] | None = None
    begin: datetime | None = None
    title: str = "Time line"
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Box:
    """A node of a graph.

    Attributes:
        key: its own name, which others have as a parent.
        parents: keys of those that come before it.
        label: short name; those of a graph differ.
        note: a few words below it.
        title: all that is known of it, in a sentence.
        place: has this place's colour; "" = no colour.
        marks: `conditional`, `assumed`.
        tone: bad = it has no place.
    """

    key: str
    parents: Sequence[str]
    label: str
    note: str
    title: str
    place: str = ""
    marks: Sequence[str] = ()
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Graph:
    """What waits for what.

    Attributes:
        name: what it shows, for those who do not see it.
        boxes: those that come first first.
        is_summed_up: there are too many boxes to draw each.
        title: heading.
        notes: what is summed up or left out.
    """

    name: str
    boxes: Sequence[Box]
    is_summed_up: bool = False
    title: str = "Graph"
    notes: Sequence[str] = ()


Part = Table | Notes | TimeLine | Graph


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
