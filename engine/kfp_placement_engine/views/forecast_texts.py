"""Texts on the basis of run times and on promised ends, the same wherever they are shown."""

import math
from collections.abc import Callable
from datetime import datetime

from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import CONFIDENCE, Promise, TimeRange, confidence_text
from kfp_placement_engine.units.durations import format_duration

_ALIKE = {
    Level.STEP: "other iterations",
    Level.COMPONENT: "same component",
    Level.IMAGE: "same image",
    Level.NAMESPACE: "all steps of the namespace",
}
"""Basis of a time that does not come from runs of the same step and iteration."""

_UNITS = ((10.0, 1e-6), (3600.0, 1), (86400.0, 60), (math.inf, 3600))
"""Limits of durations, each with the seconds to which shorter durations are rounded."""

_FINE_SECONDS = 300.0
"""Width of a range below which times of day have seconds."""


def moment_text(
    seconds: float,
    begin: datetime | None,
    rounding: Callable[[float], int] = round,
    unit_seconds: int = 60,
) -> str:
    """Format a moment: `12m`; with a begin `10:26`, `10:26:07` or `Nov 27 10:26`.

    Args:
        seconds: seconds since the begin.
        begin: begin, for times of day in this machine's zone; None = a duration.
        rounding: function that rounds to the nearest unit, down or up.
        unit_seconds: unit of times of day, 60 or 1; durations have the unit that fits their size.
    """
    if begin is None:
        unit = next(unit for most, unit in _UNITS if seconds < most)
        return format_duration(unit * rounding(round(seconds / unit, 6)))
    try:
        first_day = datetime.fromtimestamp(begin.timestamp()).date()
        units = rounding(round((begin.timestamp() + seconds) / unit_seconds, 6))
        at = datetime.fromtimestamp(units * unit_seconds)
    except (OSError, OverflowError, ValueError):
        return f"{format_duration(seconds)} later"
    day = "" if at.date() == first_day else f"{at:%b} {at.day} "
    return f"{day}{at:%H:%M:%S}" if unit_seconds == 1 else f"{day}{at:%H:%M}"


def basis_text(source: str, basis: Basis | None, sized_input: str = "") -> str:
    """Return the basis of a run time: `9 runs`, `6 runs, by size of table`, `hint`.

    Args:
        source: origin of the run time, a `DurationSource`.
        basis: past runs behind it; None = none.
        sized_input: name of the only input, for times by size.
    """
    if basis is None:
        return source
    runs = f"{basis.runs} run" if basis.runs == 1 else f"{basis.runs} runs"
    parts = (_ALIKE.get(basis.level), runs, factor_text(basis, sized_input))
    return ", ".join(filter(None, parts))


def factor_text(basis: Basis, sized_input: str) -> str:
    """Return the factor of a run time: `by size of table`, `by rows`; "" = there is none."""
    if basis.by_argument:
        return f"by {basis.by_argument}"
    return f"by size of {sized_input or 'inputs'}" if basis.by_size else ""


def range_text(
    times: TimeRange, begin: datetime | None = None, confidence: float = CONFIDENCE
) -> str:
    """Format a typical time with its range: `10:26 (10:22-10:31)`; one time if all look alike.

    The range is rounded outwards, so that it is never shown narrower than it is.

    Args:
        times: range to format.
        begin: begin, as for `moment_text`.
        confidence: confidence of the range, shown if it is not the usual one:
            `10:26 (80%: 10:23-10:29)`.
    """
    unit = _unit_seconds(times)
    low = moment_text(times.low_seconds, begin, math.floor, unit)
    typical = moment_text(times.typical_seconds, begin, unit_seconds=unit)
    high = moment_text(times.high_seconds, begin, math.ceil, unit)
    share = "" if confidence == CONFIDENCE else f"{confidence_text(confidence)}: "
    return typical if low == typical == high else f"{typical} ({share}{low}-{high})"


def ends_text(promise: Promise, begin: datetime | None = None) -> str:
    """Format the promised end of a run: `10:26 (10:22-10:31)`, or `unknown (no run seen)`."""
    if promise.ends is None:
        return f"unknown ({promise.unknown})"
    return range_text(promise.ends, begin, promise.confidence)


def latest_end_text(promise: Promise, begin: datetime | None = None) -> str:
    """Format the latest end of a run with its probability: `by 10:31 (95%)`; "" = not known."""
    if promise.ends is None:
        return ""
    share = confidence_text((1 + promise.confidence) / 2)
    latest = moment_text(promise.ends.high_seconds, begin, math.ceil, _unit_seconds(promise.ends))
    return f"by {latest} ({share})"


def _unit_seconds(times: TimeRange) -> int:
    return 1 if times.high_seconds - times.low_seconds < _FINE_SECONDS else 60
