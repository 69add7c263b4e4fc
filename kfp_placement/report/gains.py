"""How much earlier a run ends with changes, in words."""

from kfp_placement.report import values
from kfp_placement_engine.model.plan import Plan

NOTICEABLE = 5e-4
"""Gains below this share of the run print as 0.0%."""

_NOISE_SECONDS = 1e-3
"""Ends closer than this are the same, however short the run is."""


def gain_text(present: Plan, seconds: float) -> str:
    """`4m52s (16.8%)`; no percentage where all run times are assumed, or the run lasts 0 s.

    Args:
        present: the plan without the changes.
        seconds: the gain; negative = the run ends later.
    """
    amount, whole = values.duration(abs(seconds)), present.figures.makespan_seconds
    if present.all_durations_assumed or whole <= 0:
        return amount
    return f"{amount} ({abs(seconds) / whole:.1%})"


def noise_seconds(present: Plan) -> float:
    """Gains under this do not show."""
    return max(NOTICEABLE * present.figures.makespan_seconds, _NOISE_SECONDS)
