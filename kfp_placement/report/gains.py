"""How much earlier a run ends with changes, in words.

All figures of one gain are of one source: by past runs the ends are their typical ones, else they
are those of typical run times, the makespans.
"""

from kfp_placement.report import values
from kfp_placement_engine.contract.forecast_texts import unusual_share
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.promise import TimeRange

NOTICEABLE = 5e-4
"""Gains below this share of the run print as 0.0%."""

_NOISE_SECONDS = 1e-3
"""Ends closer than this are the same, however short the run is."""


def gain_text(present: Plan, seconds: float, times: TimeRange | None = None) -> str:
    """`4m52s (16.8%)`; no percentage where all run times are assumed, or the run lasts 0 s.

    Args:
        present: the plan without the changes.
        seconds: the gain; negative = the run ends later.
        times: its range, if it is by past runs.
    """
    amount, whole = values.duration(abs(seconds)), _whole_seconds(present, times)
    if present.all_durations_assumed or whole <= 0:
        return amount
    return f"{amount} ({abs(seconds) / whole:.1%})"


def range_text(present: Plan, times: TimeRange) -> str:
    """`6m-11m`, whether earlier or later; `up to 11m` where it may be nothing, too."""
    low, high = sorted((abs(times.low_seconds), abs(times.high_seconds)))
    if low < noise_seconds(present, times):
        return f"up to {values.duration(high)}"
    return f"{values.duration(low)}-{values.duration(high)}"


def gain_by_past_runs(present: Plan, times: TimeRange) -> str:
    """What follows the end: `: 11m7s (47.1%) earlier (10m14s-12m4s)`, or that it may be later."""
    if not shows(present, times):
        return ", no earlier than without"
    noise = noise_seconds(present, times)
    low, high = values.duration(abs(times.low_seconds)), values.duration(abs(times.high_seconds))
    share = share_of_ranges(present)
    held = f" ({share})" if share else ""
    if times.low_seconds <= -noise and times.high_seconds >= noise:
        return f": anything from {low} later to {high} earlier than without{held}"
    word = "later" if times.high_seconds < noise else "earlier"
    between = range_text(present, times)
    if abs(times.typical_seconds) < noise:
        return f": {between} {word} than without{held}"
    bracket = f"{share}: {between}" if share else between
    return f": {gain_text(present, times.typical_seconds, times)} {word} ({bracket})"


def share_of_ranges(plan: Plan) -> str:
    """How often ranges by past runs are to hold, if it is not the usual share; else ""."""
    return "" if plan.promise is None else unusual_share(plan.promise.confidence)


def shows(present: Plan, times: TimeRange) -> bool:
    """Whether the run may end at another time, by so much that it shows."""
    return max(-times.low_seconds, times.high_seconds) >= noise_seconds(present, times)


def noise_seconds(present: Plan, times: TimeRange | None = None) -> float:
    """Gains under this do not show; arguments as above."""
    return max(NOTICEABLE * _whole_seconds(present, times), _NOISE_SECONDS)


def typical_end_seconds(plan: Plan) -> float | None:
    """When a run typically ends by past runs; None = they do not tell."""
    ends = None if plan.promise is None else plan.promise.ends
    return None if ends is None else ends.typical_seconds


def _whole_seconds(present: Plan, times: TimeRange | None) -> float:
    typical = None if times is None else typical_end_seconds(present)
    return present.figures.makespan_seconds if typical is None else typical
