"""What run times rest on and what is promised, in words; the same wherever it is shown."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.history import Basis, Level
from kfp_placement_engine.model.promise import Promise, TimeRange

_ALIKE = {
    Level.STEP: "other iterations",
    Level.COMPONENT: "same component",
    Level.IMAGE: "same image",
    Level.PIPELINE: "same pipeline",
    Level.NAMESPACE: "all steps of the namespace",
}
"""What a time rests on where it is not runs of the very step and iteration."""

Written = Callable[[float], str]
"""Seconds as a time of day, or as a duration."""


def time_of_day(begin: datetime, zone: tzinfo | None = None) -> Written:
    """Writes seconds since a moment as `10:26`, on a later day as `Nov 27 10:26`.

    Args:
        begin: the moment, with its time zone.
        zone: in which times are written; None = that of this machine.
    """

    def written(seconds: float) -> str:
        try:
            first_day = begin.astimezone(zone).date()
            # To the nearest minute, by UTC: a zone's clock may jump in between.
            at = (begin.astimezone(UTC) + timedelta(seconds=seconds + 30)).astimezone(zone)
        except (OverflowError, ValueError):
            return f"{format_duration(seconds)} later"
        day = "" if at.date() == first_day else f"{at:%b} {at.day} "
        return f"{day}{at:%H:%M}"

    return written


def basis_text(source: str, basis: Basis | None, sized_input: str = "") -> str:
    """What a run time rests on: `9 runs`, `6 runs, by size of table`, `same image, 3 runs`, `hint`.

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
    return f"{text}, by size of {sized_input or 'inputs'}" if basis.by_size else text


def range_text(times: TimeRange, written: Written = format_duration) -> str:
    """A typical time and its range: `10:26 (10:22-10:31)`; one time where all are written alike."""
    typical = written(times.typical_seconds)
    low, high = written(times.low_seconds), written(times.high_seconds)
    return typical if low == typical == high else f"{typical} ({low}-{high})"


def ends_text(promise: Promise, written: Written = format_duration) -> str:
    """When a run ends: `10:26 (10:22-10:31)`, or `unknown (no run seen)`.

    Args:
        promise: what is promised.
        written: how a time is written.
    """
    if promise.ends is None:
        return f"unknown ({promise.unknown})"
    return range_text(promise.ends, written)


def latest_end_text(promise: Promise, written: Written = format_duration) -> str:
    """By when a run has ended, and how surely: `by 10:31 (95%)`; "" = that is not known."""
    if promise.ends is None:
        return ""
    percent = 50 * (1 + promise.confidence)
    return f"by {written(promise.ends.high_seconds)} ({percent:.3g}%)"


def end_sentence(promise: Promise, begin: datetime | None = None) -> str:
    """Both as people read it: `ends after 12m (11m-14m); by 14m (95%)`, or `end: unknown (...)`.

    Args:
        promise: what is promised.
        begin: the plan's time zero, for times of day: `ends 10:26 (10:22-10:31); by 10:31 (95%)`.
    """
    if promise.ends is None:
        return f"end: {ends_text(promise)}"
    written: Written = format_duration if begin is None else time_of_day(begin)
    ends = "ends after" if begin is None else "ends"
    return f"{ends} {ends_text(promise, written)}; {latest_end_text(promise, written)}"
