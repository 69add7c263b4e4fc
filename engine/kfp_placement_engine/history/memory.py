"""What later steps should ask for, by the memory that ended ones used.

A request that is too small costs an attempt, and one that is too large room. So the peaks of a step
say what would have been too little for one in fifty of them, and a bit more.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kfp_placement_engine.history.by_factor import next_value
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.series import (
    Columns,
    Estimate,
    Series,
    centred,
    columns_in,
    extended,
    factors_of,
)
from kfp_placement_engine.model.history import (
    MOST_MEMORY_BYTES,
    PastRun,
    PastStep,
    StepIdentity,
    is_usable_size,
)
from kfp_placement_engine.model.memory import MemoryForecast

MOST_STEPS = 10_000
"""Steps of a namespace; those that were not seen for longest go first."""

MOST_VALUES = 200
"""Peaks of a step; of a wide loop these may be of its last run alone."""

MOST_RUNS = 30
"""Runs of a step of which the largest use is known."""

_EXCEEDED = 0.02
"""What is asked for was too little for this share of past values."""

_EXTRA, _ERRORS = math.log(1.05), 2.0
"""How much more is asked for: this, and this many standard errors."""

_SPREAD, _WEIGHT = 0.05, 3.0
"""Standard deviation expected of the values' logarithms, and how many values that is worth."""

_MOST_SIZES, _HELPS = 40, 0.8
"""Last values that are looked at by the size of their inputs, and what that must bring down what
they would have wasted to."""

_AFTER_LARGEST, _AFTER_KILL = 1.1, 2.0
"""After a kill, the first of these that is more: times the largest use, times what it had."""


@dataclass(slots=True, eq=False)
class _Step:
    """What is known of a step.

    Attributes:
        peaks: the last ones, of all iterations, with the sizes of their inputs.
        largest: the largest one of each of the last runs.
        killed_bytes: in the last run; None = it was not killed.
        asked_bytes: in the last run; None = unknown.
    """

    peaks: Series = b""
    largest: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    killed_bytes: float | None = None
    asked_bytes: float | None = None

    def observe(self, iterations: Sequence[PastStep]) -> None:
        """Learn from what one run tells of it."""
        self.killed_bytes = _largest(each.killed_bytes for each in iterations)
        self.asked_bytes = _largest(each.asked_bytes for each in iterations)
        for each in iterations:
            if each.peak_bytes is not None:
                factors = factors_of(each.input_bytes)
                log_bytes = math.log(each.peak_bytes)
                self.peaks = extended(self.peaks, log_bytes, factors, MOST_VALUES)
        largest = _largest(each.peak_bytes for each in iterations)
        if largest is not None:
            self.largest.append(largest)


class MemoryHistory:
    """Memory that the steps of one namespace used; bounded, whatever comes."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._steps: Recent[tuple[str, str], _Step] = Recent(MOST_STEPS)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended; what cannot be true is left out."""
        found: dict[tuple[str, str], list[PastStep]] = defaultdict(list)
        for each in run.steps:
            if each.is_usable:
                found[each.identity.key].append(each)
        for key, iterations in found.items():
            # Of steps that nobody has measured nothing is kept.
            if key in self._steps or any(each.tells_memory for each in iterations):
                self._steps.used(key, _Step).observe(iterations)

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
        step = self._steps.get(identity.key)
        if step is None:
            return None
        size = input_bytes if input_bytes is not None and is_usable_size(input_bytes) else None
        ask, by_size = _ask(columns_in(step.peaks), size) if step.peaks else (None, False)
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


def _ask(columns: Columns, input_bytes: float | None) -> tuple[float, bool]:
    """Bytes to ask for by past peaks, and whether the size of the inputs counts."""
    logs = columns[0]
    usual = centred(logs, _SPREAD, len(logs))
    usual_log = usual.log_value + _margin(usual)
    last = [column[-_MOST_SIZES:] for column in columns]
    found = next_value(last, _SPREAD, factors_of(input_bytes), _MOST_SIZES)
    if found.factor is None:
        return math.exp(usual_log), False
    sized = [log for log, size in zip(last[0], last[1], strict=True) if not math.isnan(size)]
    margin = _margin(found)
    asked = [log - miss + margin for log, miss in zip(sized, found.misses, strict=True)]
    if _wasted(sized, asked) < _HELPS * _wasted(sized, [usual_log] * len(sized)):
        return math.exp(found.log_value + margin + found.beyond), True
    return math.exp(usual_log), False


def _wasted(logs: Sequence[float], asked_logs: Sequence[float]) -> float:
    """What requests would have wasted: what was not used, and all of those that were too small."""
    return math.fsum(
        math.exp(asked) - (math.exp(log) if asked >= log else 0.0)
        for log, asked in zip(logs, asked_logs, strict=True)
    )


def _margin(found: Estimate) -> float:
    """How far above an estimate to ask, by what past values exceeded theirs; all are logarithms."""
    count = len(found.misses)
    enough = sorted(found.misses)[math.ceil((1 - _EXCEEDED) * count) - 1]
    squares = math.fsum(each**2 for each in found.misses)
    spread = math.sqrt((_WEIGHT * _SPREAD**2 + squares) / (_WEIGHT + count - 1))
    return enough + _EXTRA + _ERRORS * spread / math.sqrt(count)


def _largest(amounts: Iterable[float | None]) -> float | None:
    return max((each for each in amounts if each is not None), default=None)
