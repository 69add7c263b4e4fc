"""What a step should ask for, by the memory that it used before.

Asked for is where its use lies, by the size of its inputs where that wastes less, and above that
what past uses exceeded it by: the 98th of a hundred, 5% more, and two standard errors, which shrink
with the number of values. A step that was killed for memory tells a lower bound alone.

Requests are one for all iterations of a loop, so iterations are not told apart.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import NamedTuple

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.sizes import MOST_SIZES, SizedValues
from kfp_placement_engine.model.history import (
    MOST_MEMORY_BYTES,
    MemoryUse,
    PastRun,
    StepIdentity,
    is_usable_size,
)
from kfp_placement_engine.model.memory import MemoryForecast

MOST_STEPS = 10_000
"""Of a namespace; those that were not seen for longest go first."""

MOST_VALUES = 200
"""Of a step; of a wide loop these may be of its last run alone."""

MOST_RUNS = 30
"""Of a step, of which the largest use is known."""

_LEAST_SIZES = 3

_EXCEEDED = 0.02
"""What is asked for was too little for this share of past values."""

_EXTRA = math.log(1.05)
_ERRORS = 2.0
"""What is asked for lies this many standard errors higher."""

_SPREAD, _WEIGHT = 0.05, 3.0
"""Standard deviation expected of the values' logarithms, and how many values that is worth."""

_HELPS = 0.8
"""What the size must bring down to what past values would have wasted."""

_AFTER_LARGEST, _AFTER_KILL = 1.1, 2.0
"""After a kill, the first of these that is more: times the largest use, times what it had."""


@dataclass(slots=True, eq=False)
class _Step:
    """What is known of a step.

    Attributes:
        peaks: the last values, of all iterations.
        sizes: of their inputs, NaN = unknown.
        largest: the largest value of each of the last runs.
        is_measured: the last run is among these.
        killed_bytes: in the last run; None = it was not killed.
        asked_bytes: in the last run; None = unknown.
    """

    peaks: "array[float]" = field(default_factory=lambda: array("d"))
    sizes: "array[float]" = field(default_factory=lambda: array("d"))
    largest: "array[float]" = field(default_factory=lambda: array("d"))
    is_measured: bool = False
    killed_bytes: float | None = None
    asked_bytes: float | None = None

    def begin_run(self) -> None:
        """What comes next is of another run."""
        self.is_measured = False
        self.killed_bytes = self.asked_bytes = None

    def add(self, use: MemoryUse) -> None:
        """Keep what one iteration tells."""
        self.asked_bytes = _larger(self.asked_bytes, use.asked_bytes)
        self.killed_bytes = _larger(self.killed_bytes, use.killed_bytes)
        if use.peak_bytes is not None:
            self.peaks.append(use.peak_bytes)
            self.sizes.append(math.nan if use.input_bytes is None else use.input_bytes)
            del self.peaks[:-MOST_VALUES], self.sizes[:-MOST_VALUES]
            before = self.largest.pop() if self.is_measured else 0.0
            self.largest.append(max(before, use.peak_bytes))
            del self.largest[:-MOST_RUNS]
            self.is_measured = True


class MemoryHistory:
    """Memory that the steps of one namespace used; bounded, whatever comes."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._steps: Recent[tuple[str, str], _Step] = Recent(MOST_STEPS)

    def observe_run(self, run: PastRun) -> None:
        """Learn from a run that has ended."""
        self.observe(run.memory, (each.identity.key for each in run.steps))

    def observe(self, run: Sequence[MemoryUse], ended_well: Iterable[tuple[str, str]] = ()) -> None:
        """Learn from the steps of one run; what cannot be true is left out.

        Args:
            run: what they tell.
            ended_well: steps that did, whether they tell anything or not: that one was killed is
                said of its last run alone.
        """
        begun: set[tuple[str, str]] = set()
        for key in ended_well:
            known = self._steps.get(key)
            if known is not None and key not in begun:
                begun.add(key)
                known.begin_run()
        for each in run:
            if each.is_usable:
                key = each.identity.key
                step = self._steps.used(key, _Step)
                if key not in begun:
                    begun.add(key)
                    step.begin_run()
                step.add(each)

    def predict(
        self, identity: StepIdentity, input_bytes: float | None = None
    ) -> MemoryForecast | None:
        """What a step should ask for.

        Args:
            identity: the step, whatever its iteration.
            input_bytes: size of its inputs; None = unknown, and so is what cannot be true.

        Returns:
            The forecast; None = nothing has been seen of the step.
        """
        if input_bytes is not None and not is_usable_size(input_bytes):
            input_bytes = None
        step = self._steps.get(identity.key)
        if step is None:
            return None
        ask, by_size = None, False
        if step.peaks:
            ask, by_size = _Values(step.peaks, step.sizes).ask(input_bytes)
        largest = max(step.largest, default=None)
        if step.killed_bytes is not None:
            ask = max(ask or 0.0, after_kill(step.killed_bytes, largest))
        return MemoryForecast(
            ask_bytes=None if ask is None else min(ask, MOST_MEMORY_BYTES),
            largest_bytes=largest,
            runs=len(step.largest),
            by_size=by_size,
            killed_bytes=step.killed_bytes,
            asked_bytes=step.asked_bytes,
        )


def after_kill(had_bytes: float, largest_bytes: float | None) -> float:
    """What to ask for after a step was killed for memory.

    Args:
        had_bytes: what it had.
        largest_bytes: the most it was seen to use before; None = unknown.
    """
    above = _AFTER_LARGEST * (largest_bytes or 0.0)
    return above if above > had_bytes else _AFTER_KILL * had_bytes


class _Asked(NamedTuple):
    """By the size of the inputs: what to ask for, and what the same would have wasted before."""

    log_bytes: float
    wasted_bytes: float


class _Values:
    """Past uses of one step."""

    def __init__(self, peaks: Sequence[float], sizes: Sequence[float]) -> None:
        self._logs = [math.log(each) for each in peaks]
        self._sizes = sizes

    def ask(self, input_bytes: float | None) -> tuple[float, bool]:
        """Bytes to ask for, and whether the size of the inputs counts."""
        centre = median(self._logs)
        log_bytes = centre + _margin([each - centre for each in self._logs])
        found = None if input_bytes is None else self._by_size(input_bytes)
        if found is not None:
            usual = math.exp(log_bytes)
            wasted = math.fsum(max(0.0, usual - math.exp(each)) for each, _ in self._sized)
            if found.wasted_bytes < _HELPS * wasted:
                return math.exp(found.log_bytes), True
        return math.exp(log_bytes), False

    def _by_size(self, input_bytes: float) -> _Asked | None:
        if len(self._sized) < _LEAST_SIZES:
            return None
        values = SizedValues([each for each, _ in self._sized], [size for _, size in self._sized])
        found = values.next(input_bytes)
        if found is None:
            return None
        # The line's own misses are of values that it was drawn through.
        is_nearest = found.misses is values.misses_of_nearest
        misses = found.misses if is_nearest else values.misses_of_lines()
        margin = _margin([-each for each in misses])
        asked = zip(self._sized, misses, strict=True)
        wasted = math.fsum(_wasted(log_bytes, miss + margin) for (log_bytes, _), miss in asked)
        return _Asked(found.log_seconds + margin + found.extrapolation, wasted)

    @cached_property
    def _sized(self) -> list[tuple[float, float]]:
        """Logarithms of the last values with a known size, and that."""
        last = zip(self._logs[-MOST_SIZES:], self._sizes[-MOST_SIZES:], strict=True)
        return [(log_bytes, size) for log_bytes, size in last if not math.isnan(size)]


def _wasted(log_bytes: float, above: float) -> float:
    """Bytes wasted where this factor's logarithm more was asked for; all of them if it was less."""
    asked = math.exp(log_bytes + above)
    return asked - math.exp(log_bytes) if above >= 0 else asked


def _margin(excesses: Sequence[float]) -> float:
    """How far above a forecast to ask, by what past values exceeded it by; all are logarithms."""
    count = len(excesses)
    enough = sorted(excesses)[math.ceil((1 - _EXCEEDED) * count) - 1]
    squares = math.fsum(each**2 for each in excesses)
    spread = math.sqrt((_WEIGHT * _SPREAD**2 + squares) / (_WEIGHT + count - 1))
    return enough + _EXTRA + _ERRORS * spread / math.sqrt(count)


def _larger(one: float | None, other: float | None) -> float | None:
    known = [each for each in (one, other) if each is not None]
    return max(known, default=None)
