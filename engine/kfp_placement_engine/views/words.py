"""Words and figures that views of runs and queues share; all come out visible and bounded."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.views.document import Column, Row, Table
from kfp_placement_engine.views.formatting import NONE, shown

MAX_NAME = 253
MAX_SENTENCE = 1200
"""Characters shown of a name and of a sentence."""

ItemT = TypeVar("ItemT")
Shown = tuple[Column, Callable[[ItemT], str]]
"""A column, and what it shows of an item."""


def name_text(name: str | None) -> str:
    """A name, or what stands for none."""
    return shown(name, MAX_NAME) if name else NONE


def word(text: str) -> str:
    """One of our words, or whatever else an object holds there."""
    return shown(text, 20)


def sentence(*parts: str, between: str = "; ") -> str:
    """Somebody's texts in one; those that say nothing are left out."""
    return shown(between.join(filter(None, parts)), MAX_SENTENCE)


def facts(*parts: str) -> str:
    """Our texts, with commas between them; those that say nothing are left out."""
    return ", ".join(part for part in parts if part and part != NONE)


def age_text(seconds: float | None) -> str:
    """How long ago, in two units."""
    return NONE if seconds is None else format_duration(round(seconds))


def ago_text(seconds: float | None) -> str:
    """The same, as a moment: `3m ago`."""
    return NONE if seconds is None else f"{age_text(seconds)} ago"


def clock_text(moment: datetime) -> str:
    """The time of day, UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


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
    shown = [(column, text) for column, text in columns if column.title not in hidden]
    rows = [Row([text(item) for _, text in shown]) for item in items]
    return Table(title, [column for column, _ in shown], rows).without_empty(optional)
