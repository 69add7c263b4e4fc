"""Figures in the words that tables and reports share."""

import math

from kfp_placement_engine.model.quantities import format_duration

NONE = "-"
"""Stands where there is no figure."""

_NOTICEABLE = 1e-3

_HOUR = 3600


def duration(seconds: float | None) -> str:
    """Seconds for people."""
    known = finite(seconds)
    if known is None:
        return NONE
    return _in_units(known) if noticeable(known) else "0s"


def noticeable(seconds: float) -> bool:
    """Long enough to be shown; shorter times are mostly noise of the arithmetic."""
    return seconds >= _NOTICEABLE


def latency(milliseconds: float | None) -> str:
    """A round trip for people."""
    known = finite(milliseconds)
    return NONE if known is None else f"{known:.4g} ms"


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`, `1,000 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finite(value: float | None) -> float | None:
    """The figure, or None where there is none."""
    return value if value is not None and math.isfinite(value) else None


def _in_units(seconds: float) -> str:
    """`1h1m1s`: seconds stay up to a day, so that what stands side by side can be added up."""
    whole = round(seconds)
    if whole < _HOUR:
        return format_duration(seconds)
    parts = []
    for unit, size in (("d", 24 * _HOUR), ("h", _HOUR), ("m", 60), ("s", 1)):
        amount, whole = divmod(whole, size)
        if amount:
            parts.append((f"{amount}{unit}", unit))
    # Beside days, seconds do not matter.
    days = parts[0][1] == "d"
    return "".join(text for text, unit in parts if not (days and unit == "s"))
