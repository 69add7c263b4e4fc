"""What later steps should ask for, by the memory that ended ones used.

A request that is too small costs an attempt, and one that is too large room. So a step asks for a
bit more than the most that it was seen to use, and for less the more of its runs were seen.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.history import MOST_MEMORY_BYTES, PastRun, PastStep, StepIdentity
from kfp_placement_engine.model.memory import MemoryForecast

MOST_STEPS = 10_000
"""Steps of a namespace; those that were not seen for longest go first."""

MOST_RUNS = 30
"""Runs of a step of which the largest use is known."""

_EXTRA, _EXTRA_OF_RUNS = 0.05, 0.2
"""How much more is asked for than was used, as shares: this, and this over the number of runs."""

_AFTER_LARGEST, _AFTER_KILL = 1.1, 2.0
"""After a kill, the first of these that is more: times the largest use, times what it had."""


@dataclass(slots=True, eq=False)
class _Step:
    """What is known of a step.

    Attributes:
        largest: the largest use of each of the last runs, of all iterations.
        killed_bytes: in the last run; None = it was not killed.
        asked_bytes: in the last run; None = unknown.
    """

    largest: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RUNS))
    killed_bytes: float | None = None
    asked_bytes: float | None = None

    def observe(self, iterations: Sequence[PastStep]) -> None:
        """Learn from what one run tells of it."""
        self.killed_bytes = _largest(each.killed_bytes for each in iterations)
        self.asked_bytes = _largest(each.asked_bytes for each in iterations)
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

    def predict(self, identity: StepIdentity) -> MemoryForecast | None:
        """What a step should ask for, whatever its iteration; None = nothing was seen of it."""
        step = self._steps.get(identity.key)
        if step is None:
            return None
        runs, largest = len(step.largest), max(step.largest, default=None)
        ask = None if largest is None else largest * (1 + _EXTRA + _EXTRA_OF_RUNS / runs)
        if step.killed_bytes is not None:
            ask = max(ask or 0.0, after_kill(step.killed_bytes, largest))
        return MemoryForecast(
            ask_bytes=None if ask is None else min(ask, MOST_MEMORY_BYTES),
            largest_bytes=largest,
            runs=runs,
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


def _largest(amounts: Iterable[float | None]) -> float | None:
    return max((each for each in amounts if each is not None), default=None)
