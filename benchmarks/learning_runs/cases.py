"""One forecast beside what came of it: what all tables of `learning` but two are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kfp_placement_engine.model.promise import TimeRange

_SEEN = ((0, "0"), (1, "1"), (2, "2"), (4, "3-4"), (9, "5-9"))


@dataclass(frozen=True)
class Case:
    """One forecast and what came of it.

    Attributes:
        pipeline: pipeline of the step or run.
        group: subject of the table's row.
        seconds: true time.
        ours: forecast by the history.
        others: seconds by simpler methods.
    """

    pipeline: str
    group: str
    seconds: float
    ours: TimeRange
    others: dict[str, float]

    @property
    def is_covered(self) -> bool:
        """True if the range holds the true time."""
        return self.ours.low_seconds <= self.seconds <= self.ours.high_seconds

    @property
    def width(self) -> float:
        """Width of the range over the true time."""
        return (self.ours.high_seconds - self.ours.low_seconds) / self.seconds

    def error(self, method: str = "ours") -> float:
        """|forecast / true - 1|."""
        predicted = self.ours.typical_seconds if method == "ours" else self.others[method]
        return abs(predicted / self.seconds - 1)


def simple_forecasts(before: Sequence[float]) -> dict[str, float]:
    """Return forecasts from the seconds of the same thing before, the oldest first."""
    if not before:
        return {}
    return {"last": before[-1], "median of 5": median(before[-5:])}


def seen_text(runs: int) -> str:
    """Return the group of a number of runs that were seen."""
    return next((text for most, text in _SEEN if runs <= most), "10+")
