"""Promises: ranges of when a run and its steps start and end, by past runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.quantities import shown_value

CONFIDENCE = 0.9
"""Default share of cases in which a range is to hold."""

LEAST_MOVE_SECONDS, LEAST_MOVE_SHARE = 10.0, 0.02
"""Smallest change of a time that is worth telling: the larger of seconds and a share of it."""

LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.95
"""The misses of some twenty runs tell nothing of what is rarer: 99% would hold in 95%."""


def parse_confidence(value: object) -> float:
    """Read how often a range is to hold: `90%`, or 0.9.

    Raises:
        QuantityError: it is not a share, or not from 50% to 95%.
    """
    try:
        text = str(value).strip()
        # Rounded, as 53.3 / 100 is not 0.533.
        share = round(float(text.removesuffix("%")) / (100 if text.endswith("%") else 1), 9)
    except ValueError:
        share = math.nan
    if LEAST_CONFIDENCE <= share <= MOST_CONFIDENCE:
        return share
    raise QuantityError(
        f"{shown_value(value)} is not a confidence from 50% to 95%; write for example 90% or 0.9"
    )


def confidence_text(confidence: float) -> str:
    """Return a confidence as text: `90%`."""
    return f"{100 * confidence:.10g}%"


class PromiseOutcome(StrEnum):
    """Outcome of a promise: when the run ended, beside the promised range."""

    EARLY = "early"
    KEPT = "kept"
    LATE = "late"


@dataclass(frozen=True)
class TimeRange:
    """A time as it may be: a range that holds with the confidence that was asked for.

    Attributes:
        low_seconds, high_seconds: ends of the range.
        typical_seconds: the median.
    """

    low_seconds: float
    typical_seconds: float
    high_seconds: float

    @property
    def moments(self) -> tuple[float, float, float]:
        """The low, the typical and the high one."""
        return self.low_seconds, self.typical_seconds, self.high_seconds

    def later(self, seconds: float) -> "TimeRange":
        """Return the same range on a clock that began that much earlier."""
        return TimeRange(*(each + seconds for each in self.moments))

    def outcome(self, seconds: float) -> PromiseOutcome:
        """Return the outcome of this range.

        Args:
            seconds: end of the run, cut to whole seconds as Kubernetes does.
        """
        if seconds + 1 < self.low_seconds:
            return PromiseOutcome.EARLY
        return PromiseOutcome.LATE if seconds > self.high_seconds else PromiseOutcome.KEPT


@dataclass(frozen=True)
class StepPromise:
    """Promised start and end of one step."""

    starts: TimeRange
    ends: TimeRange


@dataclass(frozen=True)
class Promise:
    """Promise for a run; times are seconds since its submission.

    Attributes:
        confidence: share of cases in which each range is to hold, such as 0.9.
        ends: range of the end of the run; None = not known. It has ended by the end of this range
            with probability (1 + confidence) / 2.
        planned_seconds: the end by the plan alone; None = not known.
        steps: promises by name of the steps that have not ended.
        unknown: reason why nothing can be promised, such as `no run seen`; "" = `ends` is known.
        after_start: times count from the start of the run, which is held back.
        made_seconds: time of the promise, if it is the first of a run that is submitted.
    """

    confidence: float = CONFIDENCE
    ends: TimeRange | None = None
    planned_seconds: float | None = None
    steps: Mapping[str, StepPromise] = field(default_factory=dict)
    unknown: str = ""
    after_start: bool = False
    made_seconds: float = 0.0

    def has_moved(self, before: "Promise", begin_seconds: float = 0.0) -> bool:
        """Return whether people should know this promise in place of an earlier one.

        That a step is promised nothing any more, as it has ended, is nothing new.

        Args:
            before: the promise that they know.
            begin_seconds: begin of the run, which may have been held back for days.
        """
        kind = self.confidence, self.after_start, self.unknown
        if kind != (before.confidence, before.after_start, before.unknown):
            return True
        if self.ends is None or before.ends is None:
            return self.ends is not before.ends
        if not self.steps.keys() <= before.steps.keys():
            return True
        pairs = [(self.ends, before.ends)]
        for name, new in self.steps.items():
            old = before.steps[name]
            pairs += (new.starts, old.starts), (new.ends, old.ends)
        return any(
            abs(moment - promised) >= least_move(old.typical_seconds - begin_seconds)
            for new, old in pairs
            for moment, promised in zip(new.moments, old.moments, strict=True)
        )


def least_move(seconds: float) -> float:
    """Return by how much a time of that length must move to be worth a write."""
    return max(LEAST_MOVE_SECONDS, LEAST_MOVE_SHARE * seconds)
