"""When a run and its steps will start and end, as far as past runs tell: ranges, not moments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.expected_ends import ExpectedEnds
from kfp_placement_engine.model.forecast import CommonFactor, Distribution, Forecast, Level
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
    write = "write for example 90% or 0.9"
    if not text.endswith("%") and LEAST_CONFIDENCE <= share / 100 <= MOST_CONFIDENCE:
        write = f"did you mean {confidence_text(share / 100)}?"
    raise QuantityError(f"{shown_value(value)} is not a confidence from 50% to 95%; {write}")


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
    """A range that holds with the confidence of its promise.

    Attributes:
        low_seconds, high_seconds: its ends, on the clock of the plan.
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


def range_of(distribution: Distribution, confidence: float = CONFIDENCE) -> TimeRange:
    """The range in which a time lies with this confidence, as many times below it as above."""
    outside = (1 - confidence) / 2
    return TimeRange(
        distribution.quantile(outside),
        distribution.median_seconds,
        distribution.quantile(1 - outside),
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
        played_seconds: median end of the samples alone, before it was corrected by how past runs
            ended beside theirs; None = not known.
        steps: by name, of those that have not ended.
        unknown: why nothing can be promised, such as `no run seen`; "" = `ends` is known.
    """

    confidence: float = CONFIDENCE
    ends: TimeRange | None = None
    played_seconds: float | None = None
    steps: Mapping[str, StepPromise] = field(default_factory=dict)
    unknown: str = ""

    def later(self, seconds: float) -> "Promise":
        """The same on a clock that began that much earlier."""
        steps = {
            name: StepPromise(each.starts.later(seconds), each.ends.later(seconds))
            for name, each in self.steps.items()
        }
        ends = None if self.ends is None else self.ends.later(seconds)
        played = None if self.played_seconds is None else self.played_seconds + seconds
        return replace(self, ends=ends, played_seconds=played, steps=steps)

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
class FirstSamples:
    """What the samples of a run said before its first step ended.

    Attributes:
        end_seconds: their median end, since the submission of the run.
        held_seconds: how long it was held back before it began; that is in `end_seconds`, too.
    """

    end_seconds: float
    held_seconds: float = 0.0

    @property
    def from_begin_seconds(self) -> float:
        """The same since it began."""
        return self.end_seconds - self.held_seconds

    def left_seconds(self, factor: float, since_submission_seconds: float) -> float:
        """What is left of the run, if all of it takes `factor` times as long as its samples."""
        passed_seconds = since_submission_seconds - self.held_seconds
        return factor * self.from_begin_seconds - passed_seconds


WEIGHT_OF_OLDER = 0.85
"""What a run did counts this many times as much as what the next did: a change is followed within a
few runs."""


@dataclass(frozen=True)
class Course:
    """What one past run left out: tasks no iteration of which ran.

    Attributes:
        skipped: paths of tasks of branches that were not taken.
        cached: of tasks that came from the cache.
        empty_loops: of loops that had no iteration; no task in them has run.
    """

    skipped: frozenset[str] = frozenset()
    cached: frozenset[str] = frozenset()
    empty_loops: frozenset[str] = frozenset()

    @property
    def left_out(self) -> frozenset[str]:
        """All of them."""
        return self.skipped | self.cached


class TriedAgain(NamedTuple):
    """What failed attempts at the steps of a task were in one past run, of steps that ended well.

    Attributes:
        failed: how many there were for each step, on average.
        ratio: how many times as long as the last attempt each of them took, up to the next one.
    """

    failed: float
    ratio: float


Retries = tuple[TriedAgain, ...]
"""Of the last runs of a task, the oldest first."""


@dataclass(frozen=True)
class RunForecast:
    """What past runs tell of a run, before it is planned.

    Attributes:
        steps: of each step by name, where anything is known of it.
        common: what the steps of the run have in common.
        overrun: how many times longer than the median of its samples the run takes, as far as that
            counts; None = not known.
        expected_ends: how far it does; None = in full.
        confidence: of the ranges that are made of it.
        first_samples: what its samples said at the start; None = these are the first, or nobody
            knows.
        driver_seconds: what each driver takes in its samples; None = what the plan says. `overrun`
            was learned with it.
        courses: what each of the last runs left out, the oldest first.
        retries: of tasks that were tried again, by their paths.
        beside_steps: standard deviation of the logarithm of what whole runs took over what their
            steps did: pods waited for nodes, images and each other.
    """

    steps: Mapping[str, Forecast] = field(default_factory=dict)
    common: CommonFactor = field(default_factory=CommonFactor)
    overrun: Forecast | None = None
    expected_ends: ExpectedEnds | None = None
    confidence: float = CONFIDENCE
    driver_seconds: float | None = None
    first_samples: FirstSamples | None = None
    courses: tuple[Course, ...] = ()
    retries: Mapping[str, Retries] = field(default_factory=dict)
    beside_steps: float = 0.0

    def overrun_factor(self, expected_seconds: float | None = None) -> float:
        """How many times longer the run takes than expected, in the middle.

        Args:
            expected_seconds: the median of its samples before it began; None = not known.
        """
        if self.overrun is None:
            return 1.0
        factor = self.overrun.distribution.median_seconds
        if self.expected_ends is None or not expected_seconds:
            return factor
        return factor * self.expected_ends.counted(expected_seconds) / expected_seconds

    @property
    def has_one_end(self) -> bool:
        """Whether one run of the pipeline alone was held against what was expected of it."""
        if self.overrun is None:
            return False
        basis = self.overrun.basis
        return basis.level is Level.PIPELINE and basis.runs == 1
