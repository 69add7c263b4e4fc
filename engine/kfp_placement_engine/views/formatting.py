"""Names and figures as text: what strangers wrote made safe to show, and numbers for people.

Step names, reasons and warnings carry what strangers wrote. Nothing that a terminal or a browser
would act on (escape sequences, direction marks, line breaks) gets through as itself.
"""

import math
from datetime import UTC, datetime

from kfp_placement_engine.units.durations import (
    format_addable_duration,
    format_duration,
    round_trip_figure,
)

NONE = "-"
"""Shown where there is no figure."""

MAX_NAME = 253
MAX_SENTENCE = 1200
"""Characters shown of a name and of a sentence."""

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
    """`visible` text of at most `limit` characters, shortened in the middle.

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
    """Seconds for people."""
    known = finite(seconds)
    if known is None:
        return NONE
    return format_addable_duration(known) if noticeable(known) else "0s"


def noticeable(seconds: float) -> bool:
    """Long enough to be shown; shorter times are mostly noise of the arithmetic."""
    return seconds >= _NOTICEABLE_SECONDS


def latency(milliseconds: float | None) -> str:
    """A round trip for people."""
    known = finite(milliseconds)
    return NONE if known is None else round_trip_figure(known)


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`, `1,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """The figure, or None where there is none."""
    return value if value is not None and math.isfinite(value) else None


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
