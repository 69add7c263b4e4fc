"""Formatting of names and figures for people; makes text that strangers wrote safe to show.

Names of steps, reasons and warnings may contain text of strangers. Characters on which a terminal
or a browser would act (escape sequences, direction marks, line breaks) are escaped.
"""

import math
from datetime import UTC, datetime

from kfp_placement_engine.units.durations import (
    format_addable_duration,
    format_duration,
    round_trip_figure,
)

NONE = "-"
"""Text in place of a missing figure or name."""

MAX_NAME = 253
"""Length of a name that is shown, in characters."""

MAX_SENTENCE = 1200
"""Length of a sentence that is shown, in characters."""

_NOTICEABLE_SECONDS = 1e-3


def visible(text: str) -> str:
    r"""Replace everything unprintable by its escape: ESC becomes `\x1b`, a line break `\n`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def shown(text: str, limit: int) -> str:
    """Return `visible` text of at most `limit` characters, shortened in the middle.

    Loop indexes are in the middle or at the end of a name and iterations differ only there, so
    the end is kept as well as the start.
    """
    # Cut before escaping: a name of megabytes must not be escaped first.
    return clip(visible(text if len(text) <= 4 * limit else clip(text, 2 * limit)), limit)


def clip(text: str, limit: int) -> str:
    """Shorten to at most `limit` characters, in the middle."""
    if len(text) <= limit:
        return text
    if limit <= 1:
        return "…"[:limit]
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def duration(seconds: float | None) -> str:
    """Format seconds for people."""
    number = finite(seconds)
    if number is None:
        return NONE
    return format_addable_duration(number) if noticeable(number) else "0s"


def noticeable(seconds: float) -> bool:
    """Return whether a time is long enough to be shown; shorter ones are noise of arithmetic."""
    return seconds >= _NOTICEABLE_SECONDS


def latency(milliseconds: float | None) -> str:
    """Format a round trip for people."""
    number = finite(milliseconds)
    return NONE if number is None else round_trip_figure(number)


def counted(number: int, noun: str) -> str:
    """Format a number with a noun: `1 step`, `2 steps`, `1,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """Return a figure, or None if it is missing or infinite."""
    return value if value is not None and math.isfinite(value) else None


def name_text(name: str | None) -> str:
    """Format a name; `-` if there is none."""
    return shown(name, MAX_NAME) if name else NONE


def word(text: str) -> str:
    """Format one of our words from an object, in which anything else may be written."""
    return shown(text, 20)


def sentence(*parts: str, between: str = "; ") -> str:
    """Join texts of strangers to one sentence; leave out empty ones."""
    return shown(between.join(filter(None, parts)), MAX_SENTENCE)


def facts(*parts: str) -> str:
    """Join our own texts with commas; leave out empty ones."""
    return ", ".join(part for part in parts if part and part != NONE)


def age_text(seconds: float | None) -> str:
    """Format an age in two units: `3m20s`."""
    return NONE if seconds is None else format_duration(round(seconds))


def ago_text(seconds: float | None) -> str:
    """Format the time of an event by its age: `3m ago`."""
    return NONE if seconds is None else f"{age_text(seconds)} ago"


def clock_text(moment: datetime) -> str:
    """Format the time of day in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"
