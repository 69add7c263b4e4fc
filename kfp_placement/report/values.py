"""Figures in the words that tables and reports share."""

import math

from kfp_placement_engine.model.durations import format_addable_duration, round_trip_figure

NONE = "-"
"""Shown where there is no figure."""

_NOTICEABLE = 1e-3


def duration(seconds: float | None) -> str:
    """Seconds for people."""
    known = finite(seconds)
    if known is None:
        return NONE
    return format_addable_duration(known) if noticeable(known) else "0s"


def noticeable(seconds: float) -> bool:
    """Long enough to be shown; shorter times are mostly noise of the arithmetic."""
    return seconds >= _NOTICEABLE


def latency(milliseconds: float | None) -> str:
    """A round trip for people."""
    known = finite(milliseconds)
    return NONE if known is None else round_trip_figure(known)


def size(size_bytes: float | None) -> str:
    """A size for people, to three figures: `52.4Mi`."""
    known = finite(size_bytes)
    if known is None:
        return NONE
    for unit in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if known < 999.5:
            return f"{known:.3g}{unit}"
        known /= 1024
    return f"{known:.3g}Ei"


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`, `1,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """The figure, or None where there is none."""
    return value if value is not None and math.isfinite(value) else None
