"""When a run and its steps will start and end, as far as past runs tell: ranges, not moments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.quantities import shown_value

CONFIDENCE = 0.9
"""How often a range is to hold, unless somebody asks for another figure."""


LEAST_MOVE_SECONDS, LEAST_MOVE_SHARE = 10.0, 0.02
"""A promise is another one when one of its times moves by this, the larger of both."""

LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.95
"""The misses of some twenty runs tell nothing of what is rarer: 99% would hold in 95%."""


def parse_confidence(value: object) -> float:
    """Read how often a range is to hold: `90%`, or 0.9.

    Raises:
        QuantityError: it is not a share, or not from 50% to 95%.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = value.strip() if isinstance(value, str) else repr(value) if is_number else ""
    try:
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
    """The other way: `90%`."""
    return f"{100 * confidence:.10g}%"


class PromiseOutcome(StrEnum):
    """When a run has ended, beside the range that was promised."""

    EARLY = "early"
    KEPT = "kept"
    LATE = "late"


@dataclass(frozen=True)
class TimeRange:
    """A time as it may be: a range that holds with the confidence that was asked for.

    Attributes:
        low_seconds, high_seconds: its ends.
        typical_seconds: the median.
    """

    low_seconds: float
    typical_seconds: float
    high_seconds: float

    def later(self, seconds: float) -> "TimeRange":
        """The same on a clock that began that much earlier."""
        return TimeRange(
            self.low_seconds + seconds, self.typical_seconds + seconds, self.high_seconds + seconds
        )

    def times(self, factor: float) -> "TimeRange":
        """The same, this many times as long."""
        return TimeRange(
            factor * self.low_seconds, factor * self.typical_seconds, factor * self.high_seconds
        )

    def outcome(self, seconds: float) -> PromiseOutcome:
        """What came of this range.

        Args:
            seconds: when the run has ended, cut to whole seconds as Kubernetes does.
        """
        if seconds + 1 < self.low_seconds:
            return PromiseOutcome.EARLY
        return PromiseOutcome.LATE if seconds > self.high_seconds else PromiseOutcome.KEPT

    def moved_from(self, other: "TimeRange", begin_seconds: float = 0.0) -> bool:
        """Whether one of its times is that much earlier or later that people should know.

        Args:
            other: as before.
            begin_seconds: when the run began, which may have been held back for days.
        """
        took_seconds = other.typical_seconds - begin_seconds
        least = max(LEAST_MOVE_SECONDS, LEAST_MOVE_SHARE * took_seconds)
        return (
            abs(self.low_seconds - other.low_seconds) >= least
            or abs(self.typical_seconds - other.typical_seconds) >= least
            or abs(self.high_seconds - other.high_seconds) >= least
        )


@dataclass(frozen=True)
class StepPromise:
    """When one step starts and ends."""

    starts: TimeRange
    ends: TimeRange


@dataclass(frozen=True)
class Promise:
    """What a plan promises of its run.

    Attributes:
        confidence: how often each range is to hold, such as 0.9.
        ends: when the run ends; None = not known. It has ended by the end of this range with
            probability (1 + confidence) / 2.
        planned_seconds: the end by the plan alone, on the same clock as `ends`; None = not known.
        steps: by name, of those that have not ended.
        unknown: why nothing can be promised, such as `no run seen`; "" = `ends` is known.
    """

    confidence: float = CONFIDENCE
    ends: TimeRange | None = None
    planned_seconds: float | None = None
    steps: Mapping[str, StepPromise] = field(default_factory=dict)
    unknown: str = ""

    def later(self, seconds: float) -> "Promise":
        """The same on a clock that began that much earlier."""
        steps = {
            name: StepPromise(each.starts.later(seconds), each.ends.later(seconds))
            for name, each in self.steps.items()
        }
        ends = None if self.ends is None else self.ends.later(seconds)
        planned = None if self.planned_seconds is None else self.planned_seconds + seconds
        return replace(self, ends=ends, planned_seconds=planned, steps=steps)

    def differs_from(self, other: "Promise", begin_seconds: float = 0.0) -> bool:
        """Whether the run or a step ends, or a step starts, at a time that people should know.

        That a step is promised nothing any more, as it has ended, is nothing new.

        Args:
            other: as before.
            begin_seconds: when the run began.
        """
        return self.ends_differ_from(other, begin_seconds) or any(
            (old := other.steps.get(name)) is None
            or new.starts.moved_from(old.starts, begin_seconds)
            or new.ends.moved_from(old.ends, begin_seconds)
            for name, new in self.steps.items()
        )

    def ends_differ_from(self, other: "Promise", begin_seconds: float = 0.0) -> bool:
        """Whether the run ends that much earlier or later that people should know.

        Ranges of another confidence are always others; arguments as above.
        """
        if self.confidence != other.confidence:
            return True
        if self.ends is None or other.ends is None:
            return (self.ends, self.unknown) != (other.ends, other.unknown)
        return self.ends.moved_from(other.ends, begin_seconds)


@dataclass(frozen=True)
class FirstEnd:
    """What was promised of a run's end at its start; times are seconds since it began.

    Attributes:
        ends: when it ends.
        planned_seconds: the same by the plan alone.
    """

    ends: TimeRange
    planned_seconds: float
