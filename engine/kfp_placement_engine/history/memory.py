"""What later steps should ask for, by the memory that ended ones used.

A request that is too small costs an attempt, and one that is too large room. So a step asks for a
bit more than the most that it was seen to use, and for less the more of its runs were seen.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.history import PastRun, PastStep, StepIdentity
from kfp_placement_engine.model.memory import MemoryForecast

MOST_STEPS = 10_000
"""Steps of a namespace; those that were not seen for longest go first."""

MOST_RUNS = 30
"""Last runs of a step that are known."""

_EXTRA, _EXTRA_OF_RUNS = 0.05, 0.2
"""How much more is asked for than was used, as shares: this, and this over the number of runs."""

_AFTER_LARGEST, _AFTER_KILL = 1.1, 2.0
"""After a kill, the first of these that is more: times the largest use, times what it had."""


class _Use(NamedTuple):
    """What all iterations of a step used in one run, in bytes, at most.

    Attributes:
        peak: the most memory; None = that was not measured.
        killed: with how much it was killed; None = it was not.
        asked: what it asked for; None = nothing, or unknown.
    """

    peak: float | None
    killed: float | None
    asked: float | None


class MemoryHistory:
    """Memory that the steps of one namespace used; bounded, whatever comes."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._steps: Recent[tuple[str, str], tuple[_Use, ...]] = Recent(MOST_STEPS)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended."""
        found: dict[tuple[str, str], list[PastStep]] = defaultdict(list)
        for each in run.steps:
            found[each.identity.key].append(each)
        for key, iterations in found.items():
            use = _Use(
                peak=_largest(each.peak_bytes for each in iterations),
                killed=_largest(each.killed_bytes for each in iterations),
                asked=_largest(each.asked_bytes for each in iterations),
            )
            # Of steps that nobody has measured nothing is kept.
            if key in self._steps or any(each.tells_memory for each in iterations):
                self._steps.use(key, (*self._steps.get(key, ()), use)[-MOST_RUNS:])

    def predict(self, identity: StepIdentity) -> MemoryForecast | None:
        """What a step should ask for, whatever its iteration; None = nothing was seen of it."""
        uses = self._steps.get(identity.key)
        if uses is None:
            return None
        last, peaks = uses[-1], [each.peak for each in uses if each.peak is not None]
        largest = max(peaks, default=None)
        ask = None if largest is None else largest * (1 + _EXTRA + _EXTRA_OF_RUNS / len(peaks))
        if last.killed is not None:
            ask = max(ask or 0.0, after_kill(last.killed, largest))
        return MemoryForecast(ask, largest, len(peaks), last.killed, last.asked)


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
