"""What ended steps tell of later ones: observations, distributions of run times, their basis."""

import hashlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from random import Random

from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS

_MEAN_POINTS = 200
"""Quantiles of which a mean is made."""

MOST_DEVIATIONS = 6.0
"""By this many spreads a forecast misses at most: one outlier must not mean that all may follow."""

_MOST_STEP_SECONDS = 31 * 86_400.0
"""A month; the clock of a step that is said to have run for longer was wrong."""

_MOST_INPUT_BYTES = 2**60
"""An exbibyte."""

MOST_ARGUMENTS = 4
"""Numeric arguments of a step that are looked at, the first by name."""

_LARGEST_ARGUMENT = 1e15
"""What is larger, in either direction, is not believed."""

MOST_MEMORY_BYTES = 2**50
"""A pebibyte; what is said to have used more is not believed."""


@dataclass(frozen=True)
class StepIdentity:
    """What tells whose past counts for a step.

    Attributes:
        pipeline: name of the pipeline.
        step: path of the task in it, the same for all iterations of a loop.
        iteration: what tells iterations apart, such as a hash of their arguments; "" for a step
            outside loops, None where it is not known.
        component: what the step runs, such as a hash of image, command and arguments; "" = unknown.
        image: its container image; "" = unknown.
    """

    pipeline: str
    step: str
    iteration: str | None = ""
    component: str = ""
    image: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Pipeline and step, whatever the iteration."""
        return self.pipeline, self.step


@dataclass(frozen=True)
class Observation:
    """A step that has ended well.

    Attributes:
        identity: which step.
        seconds: its run time on the node where it was, without transfers that a plan adds again.
        node: name of that node; "" = unknown.
        input_bytes: size of its inputs; None = unknown.
        arguments: values of its numeric arguments, in the order of their names.
    """

    identity: StepIdentity
    seconds: float
    node: str = ""
    input_bytes: float | None = None
    arguments: tuple[float, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether its figures can be true; clocks may jump, and anybody may write a status."""
        is_size = self.input_bytes is None or is_usable_size(self.input_bytes)
        is_known = is_size and are_usable_arguments(self.arguments)
        return is_known and 0 <= self.seconds <= _MOST_STEP_SECONDS


@dataclass(frozen=True)
class MemoryUse:
    """What one ended step tells of its memory.

    Attributes:
        identity: which step.
        peak_bytes: the most it used; None = unknown.
        killed_bytes: how much it was allowed when it was killed for using more, the largest of all
            its attempts; None = it was not killed for that.
        asked_bytes: what it asked for; None = nothing, or unknown.
        input_bytes: size of its inputs; None = unknown.
    """

    identity: StepIdentity
    peak_bytes: float | None = None
    killed_bytes: float | None = None
    asked_bytes: float | None = None
    input_bytes: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it tells something, and its figures can be true."""
        amounts = [self.peak_bytes, self.killed_bytes, self.asked_bytes]
        known = [each for each in amounts if each is not None]
        is_size = self.input_bytes is None or is_usable_size(self.input_bytes)
        tells = self.peak_bytes is not None or self.killed_bytes is not None
        return tells and is_size and all(map(is_usable_memory, known))


@dataclass(frozen=True)
class LeftOut:
    """How many iterations of a task ran no pod of their own; 1 of one outside loops.

    Attributes:
        step: path of the task.
        cached: came from the cache.
        skipped: are of a branch that was not taken.
    """

    step: str
    cached: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class LoopWidth:
    """How many iterations a loop had.

    Attributes:
        loop: its path, the same for all iterations of loops around it.
        width: iterations; of a loop within loops the median.
    """

    loop: str
    width: int


@dataclass(frozen=True)
class LearnedWidth:
    """How many iterations a loop is likely to have.

    Attributes:
        width: the median of the last runs, at least 1: what may run must be planned.
        runs: how many these are.
    """

    width: int
    runs: int


@dataclass(frozen=True)
class PastRun:
    """A run that has ended, as far as later ones may learn from it.

    Attributes:
        uid: tells it apart from all others.
        pipeline: its pipeline.
        ended_at: when.
        steps: those that ended well and ran themselves.
        seconds: from its beginning to the end of its last step, if it ended well; None = it did
            not.
        played_seconds: the same as it was expected before it began: the median of samples of its
            plan on learned run times; None = there was no such plan.
        driver_seconds: what each driver takes in these samples, or would have taken.
        memory: what its steps used, those included that were killed for it.
        loops: widths of its loops.
        left_out: tasks that did not run, or not in all iterations; of runs that ended well.
    """

    uid: str
    pipeline: str
    ended_at: datetime
    steps: tuple[Observation, ...] = ()
    seconds: float | None = None
    played_seconds: float | None = None
    memory: tuple[MemoryUse, ...] = ()
    loops: tuple[LoopWidth, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    driver_seconds: float | None = None


def text_digest(text: str) -> str:
    """SHA-256 in hexadecimal: what identities are made of, whatever users have written."""
    # Texts of others may hold half a surrogate pair, which no encoding takes as it is.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def is_usable_size(size: float) -> bool:
    """Whether a size of inputs can be true."""
    return 0 <= size <= _MOST_INPUT_BYTES


def is_usable_argument(value: object) -> bool:
    """Whether a value is a number that a run time may follow; no truth value is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -_LARGEST_ARGUMENT <= value <= _LARGEST_ARGUMENT


def are_usable_arguments(values: Collection[object]) -> bool:
    """Whether these can be the numeric arguments of a step."""
    return len(values) <= MOST_ARGUMENTS and all(map(is_usable_argument, values))


def is_usable_memory(amount: float) -> bool:
    """Whether an amount of memory can be true: what runs uses some."""
    return 0 < amount <= MOST_MEMORY_BYTES


class Level(StrEnum):
    """Which past runs a forecast rests on, the most similar first."""

    ITERATION = "iteration"
    STEP = "step"
    COMPONENT = "component"
    IMAGE = "image"
    PIPELINE = "pipeline"
    NAMESPACE = "namespace"


OWN_LEVELS = (Level.ITERATION, Level.STEP)
"""The very step. Where it misses what other steps tell of it, that says nothing of the run."""

KNOWN_LEVELS = (*OWN_LEVELS, Level.COMPONENT)
"""Steps that have only an image in common differ tenfold: a range of that promises nothing."""


@dataclass(frozen=True)
class Basis:
    """What a forecast rests on.

    Attributes:
        level: which past runs.
        runs: how many runs of it were seen; for the wider levels those of the step that was seen
            most often.
        by_size: whether the size of the inputs counts.
        by_argument: name of the numeric argument that counts in place of it; "" = none does.
    """

    level: Level
    runs: int
    by_size: bool = False
    by_argument: str = ""

    @property
    def is_guess(self) -> bool:
        """Whether it tells little: of steps that have only an image in common, or nothing."""
        return self.level not in KNOWN_LEVELS


@dataclass(frozen=True)
class Shape:
    """How past forecasts missed: the distribution of log(true / forecast) over its spread.

    Between the misses it is linear (the i-th of n misses is the quantile i / (n + 1)); beyond them
    it falls off exponentially, so that whatever has not ended yet has a time left.

    Attributes:
        misses: ascending, at least two.
    """

    misses: tuple[float, ...]

    def at(self, survival: float) -> float:
        """The miss that is exceeded with this probability, above 0 and below 1."""
        count = len(self.misses)
        place = (1 - survival) * (count + 1)
        if place <= 1:
            return self.misses[0] + self._lower_scale * math.log(max(place, 1e-300))
        from_above = survival * (count + 1)
        if from_above <= 1:
            return self.misses[-1] - self._upper_scale * math.log(max(from_above, 1e-300))
        below = min(int(place), count - 1)
        low, high = self.misses[below - 1], self.misses[below]
        return low + (high - low) * (place - below)

    def survival(self, miss: float) -> float:
        """The probability that a miss is larger than this."""
        count = len(self.misses)
        if miss <= self.misses[0]:
            return 1 - math.exp((miss - self.misses[0]) / self._lower_scale) / (count + 1)
        if miss >= self.misses[-1]:
            return math.exp((self.misses[-1] - miss) / self._upper_scale) / (count + 1)
        below = bisect_right(self.misses, miss)
        low, high = self.misses[below - 1], self.misses[below]
        return 1 - (below + (miss - low) / (high - low)) / (count + 1)

    @cached_property
    def _upper_scale(self) -> float:
        """By how much the largest tenth exceed the quantile of 90% on average."""
        threshold = self.misses[-1 - len(self.misses) // 10]
        largest = self.misses[bisect_left(self.misses, threshold) :]
        return _mean_excess([each - threshold for each in largest])

    @cached_property
    def _lower_scale(self) -> float:
        threshold = self.misses[len(self.misses) // 10]
        smallest = self.misses[: bisect_right(self.misses, threshold)]
        return _mean_excess([threshold - each for each in smallest])


def _mean_excess(excesses: Sequence[float]) -> float:
    """At least a quarter of the spread: a few equal misses do not mean that there are no others."""
    return max(0.25, sum(excesses) / len(excesses))


@dataclass(frozen=True)
class Distribution:
    """How long a step may take.

    Attributes:
        scale_seconds: what the misses are multiplied with; near the median.
        spread: standard deviation of the logarithm by which such forecasts miss, before they are
            compared with how they did.
        shape: how they did.
        ran_seconds: how long the step has run already, so that shorter times are ruled out.
    """

    scale_seconds: float
    spread: float
    shape: Shape
    ran_seconds: float = 0.0

    def quantile(self, probability: float) -> float:
        """Seconds within which the step ends with this probability, above 0 and below 1.

        Raises:
            ValueError: it is not a probability.
        """
        if not 0 < probability < 1:
            raise ValueError(f"probability {probability!r}; it must lie between 0 and 1")
        miss = self.spread * self.shape.at(self.survival * (1 - probability))
        longest = math.log(MAX_DURATION_SECONDS)
        seconds = math.exp(min(longest, math.log(self.scale_seconds) + miss))
        return max(self.ran_seconds, seconds)

    def probability(self, seconds: float) -> float:
        """How probable it is that the step ends within this time."""
        if seconds <= self.ran_seconds:
            return 0.0
        miss = (math.log(seconds) - math.log(self.scale_seconds)) / self.spread
        return 1 - min(1.0, self.shape.survival(miss) / max(self.survival, 1e-300))

    @property
    def median_seconds(self) -> float:
        """The forecast: as many take longer as take less."""
        return self.quantile(0.5)

    @property
    def mean_seconds(self) -> float:
        """The mean, except for the last quarter of a percent."""
        points = ((number + 0.5) / _MEAN_POINTS for number in range(_MEAN_POINTS))
        return math.fsum(self.quantile(point) for point in points) / _MEAN_POINTS

    def sample(self, random: Random) -> float:
        """Seconds, drawn."""
        return self.quantile(min(max(random.random(), 1e-12), 1 - 1e-12))

    def after(self, seconds: float) -> "Distribution":
        """The distribution of a step that has run for this long and has not ended.

        One that runs for longer than any forecast was wrong shows that its spread is larger.

        Raises:
            ValueError: the time is negative or not a number.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a step that has run for {seconds!r} s; it must be 0 or more")
        ran_seconds, spread = max(self.ran_seconds, seconds), self.spread
        if ran_seconds > self.scale_seconds:
            late = math.log(ran_seconds) - math.log(self.scale_seconds)
            spread = max(spread, late / MOST_DEVIATIONS)
        return replace(self, ran_seconds=ran_seconds, spread=spread)

    @cached_property
    def survival(self) -> float:
        """The probability of running for longer than it has."""
        if self.ran_seconds == 0:
            return 1.0
        reached = math.log(self.ran_seconds) - math.log(self.scale_seconds)
        return self.shape.survival(reached / self.spread)


@dataclass(frozen=True)
class CommonFactor:
    """What the steps of a run have in common; see `history.common_factor`.

    Attributes:
        share: of the variance of each step's score, from 0 to below 1.
        mean, deviation: of the factor, as far as it is known; before the run standard normal.
    """

    share: float = 0.0
    mean: float = 0.0
    deviation: float = 1.0

    def given(self, scores: Sequence[float], weight: float = 1.0) -> "CommonFactor":
        """What is known of it once some steps have ended.

        Args:
            scores: of these steps, all of those that have ended.
            weight: how much a score counts, above 0; 1 = nothing but the factor makes them alike.
        """
        left = (1 - self.share) / weight
        precision = 1 / self.deviation**2 + len(scores) * self.share / left
        pull = self.mean / self.deviation**2 + math.sqrt(self.share) * math.fsum(scores) / left
        return CommonFactor(self.share, pull / precision, 1 / math.sqrt(precision))


@dataclass(frozen=True)
class Forecast:
    """What the past tells of a step.

    Attributes:
        distribution: how long it may take.
        basis: what that rests on.
    """

    distribution: Distribution
    basis: Basis
