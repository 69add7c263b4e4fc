"""What ended steps and runs tell of later ones."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

MOST_SECONDS = 31 * 86_400.0
"""A month; the clock of a step or run that is said to have taken longer was wrong."""

_MOST_INPUT_BYTES = 2**60
"""An exbibyte."""

MOST_PIPELINES = 200
"""Of a namespace, of which a past is kept; the one that did not run for longest goes first."""

MOST_ARGUMENTS = 4
"""Numeric arguments of a step that are looked at, the first by name."""

MOST_ITERATIONS = 1_000_000
"""Of a loop; more are not believed."""

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
        return is_known and 0 <= self.seconds <= MOST_SECONDS


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
class Retried:
    """What failed attempts at the steps of a task took in one run, of steps that then ended well.

    Attributes:
        step: path of the task, the same for all iterations of a loop.
        failed: attempts that failed.
        seconds: of all of them together, each from its beginning to that of the next attempt.
        steps: of the task that ended well in the run, those that were not tried again included.
    """

    step: str
    failed: int
    seconds: float
    steps: int = 1

    @property
    def is_usable(self) -> bool:
        """Whether it can be true."""
        counts = 0 < self.failed <= MOST_ITERATIONS and 0 < self.steps <= MOST_ITERATIONS
        return counts and 0 <= self.seconds <= MOST_SECONDS


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
        width: the median of the last runs.
        runs: how many these are.
    """

    width: int
    runs: int

    @property
    def planned(self) -> int:
        """At least 1: what may run must be planned."""
        return max(1, self.width)


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
        driver_seconds: what each driver took; `played_seconds` is with such drivers.
        memory: what its steps used, those included that were killed for it.
        loops: widths of its loops.
        left_out: tasks that did not run, or not in all iterations; of runs that ended well.
        retried: tasks whose steps were tried again.
        drivers: how many drivers waited for each other on the way to its end; None = not known.
        replayed_seconds: `played_seconds` by what its steps really took, without what pods waited
            for (see `planning.replayed_run`), and as if no attempt at a step had failed; None = not
            known.
        failed_seconds: how much later it ended for attempts that failed, as far as that is known.
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
    retried: tuple[Retried, ...] = ()
    driver_seconds: float | None = None
    drivers: int | None = None
    replayed_seconds: float | None = None
    failed_seconds: float = 0.0

    @property
    def order(self) -> tuple[datetime, str]:
        """Runs are learned from as they ended; those that ended together, always in one order."""
        return self.ended_at, self.uid

    def without(self, steps: Collection[str]) -> "PastRun":
        """What the run teaches beside some steps, by their paths; loop widths stay."""
        if not steps:
            return self
        return replace(
            self,
            steps=tuple(each for each in self.steps if each.identity.step not in steps),
            memory=tuple(each for each in self.memory if each.identity.step not in steps),
            left_out=tuple(each for each in self.left_out if each.step not in steps),
            retried=tuple(each for each in self.retried if each.step not in steps),
        )


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
    """Whether an amount of memory can be true, bytes: what runs uses some."""
    return 1 <= amount <= MOST_MEMORY_BYTES
