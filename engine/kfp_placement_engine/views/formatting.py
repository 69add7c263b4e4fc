"""Names and figures as text: what strangers wrote made safe to show, and numbers for people.

Step names, reasons and warnings carry what strangers wrote. Nothing that a terminal or a browser
would act on (escape sequences, direction marks, line breaks) gets through as itself.
"""

import math

from kfp_placement_engine.contract.memory_texts import memory_text
from kfp_placement_engine.model.durations import format_addable_duration, round_trip_figure

NONE = "-"
"""Shown where there is no figure."""

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


def size(size_bytes: float | None) -> str:
    """A size for people, to three figures: `52.4Mi`."""
    known = finite(size_bytes)
    return NONE if known is None else memory_text(known)


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`, `1,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """The figure, or None where there is none."""
    return value if value is not None and math.isfinite(value) else None
