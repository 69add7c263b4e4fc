"""What run times rest on and what is promised, in words; the same wherever it is shown."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import CONFIDENCE, Promise, TimeRange, confidence_text

_ALIKE = {
    Level.STEP: "other iterations",
    Level.COMPONENT: "same component",
    Level.IMAGE: "same image",
    Level.NAMESPACE: "all steps of the namespace",
}
"""What a time rests on where it is not runs of the very step and iteration."""

_FINEST_SECONDS = 10.0
"""Durations under that have fractions of a second."""

_UNITS = ((3600.0, 1), (86400.0, 60), (math.inf, 3600))
"""Durations under each have whole seconds, minutes, hours."""

FINE_SECONDS = 300.0
"""Ranges under that have times of day with seconds."""


@dataclass(frozen=True)
class Clock:
    """How the times of a plan are written.

    Attributes:
        begin: the plan's time zero, with its time zone: times of day; None = durations.
        zone: in which times of day are written; None = that of this machine.
    """

    begin: datetime | None = None
    zone: tzinfo | None = None

    def text(self, seconds: float, rounding: float = 0.5, unit_seconds: int = 60) -> str:
        """A moment as `10:26`, as `10:26:07`, or on a later day as `Nov 27 10:26`.

        Args:
            seconds: since the beginning.
            rounding: 0.5 = to the nearest unit, 0 = down, 1 = up.
            unit_seconds: of times of day, 60 or 1; durations have the unit that fits their size.
        """
        if self.begin is None:
            return format_duration(_rounded(seconds, rounding))
        try:
            first_day = self.begin.astimezone(self.zone).date()
            # By UTC: a zone's clock may jump in between. Up by less than a unit: 10:26:00 stays.
            added = rounding * unit_seconds - (1e-6 if rounding == 1 else 0)
            at = self.begin.astimezone(UTC) + timedelta(seconds=seconds) + timedelta(seconds=added)
            at = at.astimezone(self.zone)
        except (OverflowError, ValueError):
            return f"{format_duration(seconds)} later"
        day = "" if at.date() == first_day else f"{at:%b} {at.day} "
        return f"{day}{at:%H:%M:%S}" if unit_seconds == 1 else f"{day}{at:%H:%M}"


DURATIONS = Clock()
"""Times as durations."""


def _rounded(seconds: float, rounding: float) -> float:
    """To the smaller of the two units that a duration of that size has; under 10 s as it is."""
    if seconds < _FINEST_SECONDS:
        return seconds
    unit = next(unit for most, unit in _UNITS if seconds < most)
    # Up by less than a unit: 20m stays.
    return unit * math.floor(seconds / unit + rounding - (1e-9 if rounding == 1 else 0))


def basis_text(source: str, basis: Basis | None, sized_input: str = "") -> str:
    """What a run time rests on: `9 runs`, `6 runs, by size of table`, `6 runs, by rows`, `hint`.

    Args:
        source: where it comes from, as in `DurationSource`.
        basis: the past runs; None = none.
        sized_input: name of the only input, for times by size.
    """
    if basis is None:
        return source
    runs = f"{basis.runs} run" if basis.runs == 1 else f"{basis.runs} runs"
    alike = _ALIKE.get(basis.level)
    text = f"{alike}, {runs}" if alike else runs
    if basis.by_argument:
        return f"{text}, by {basis.by_argument}"
    return f"{text}, by size of {sized_input or 'inputs'}" if basis.by_size else text


def range_text(times: TimeRange, clock: Clock = DURATIONS, confidence: float = CONFIDENCE) -> str:
    """A typical time and its range: `10:26 (10:22-10:31)`; one time where all are written alike.

    The range is rounded outwards, so that it is never shown narrower than it is.

    Args:
        times: the range.
        clock: how a time is written.
        confidence: of the range; said where it is another than usual, `10:26 (80%: 10:23-10:29)`.
    """
    unit = _unit_seconds(times)
    typical = clock.text(times.typical_seconds, unit_seconds=unit)
    low = clock.text(times.low_seconds, 0, unit)
    high = clock.text(times.high_seconds, 1, unit)
    share = "" if confidence == CONFIDENCE else f"{confidence_text(confidence)}: "
    return typical if low == typical == high else f"{typical} ({share}{low}-{high})"


def ends_text(promise: Promise, clock: Clock = DURATIONS) -> str:
    """When a run ends: `10:26 (10:22-10:31)`, or `unknown (no run seen)`.

    Args:
        promise: what is promised.
        clock: how a time is written.
    """
    if promise.ends is None:
        return f"unknown ({promise.unknown})"
    return range_text(promise.ends, clock, promise.confidence)


def latest_end_text(promise: Promise, clock: Clock = DURATIONS) -> str:
    """By when a run has ended, and how surely: `by 10:31 (95%)`; "" = that is not known."""
    if promise.ends is None:
        return ""
    share = confidence_text((1 + promise.confidence) / 2)
    return f"by {clock.text(promise.ends.high_seconds, 1, _unit_seconds(promise.ends))} ({share})"


def _unit_seconds(times: TimeRange) -> int:
    return 1 if times.high_seconds - times.low_seconds < FINE_SECONDS else 60
