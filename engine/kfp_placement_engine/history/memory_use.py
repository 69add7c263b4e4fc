"""Memory that steps should ask for, by the memory that they used before.

A request that is too small costs an attempt, and one that is too large room. So a step asks for a
bit more than the most that it was seen to use, and for less the more of its runs were seen.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kfp_placement_engine.history.recent import MOST_STEPS, Recent
from kfp_placement_engine.model.history import PastRun, PastStep, StepIdentity

MOST_RUNS = 30
"""Last runs of a step whose use is known."""

_EXTRA, _EXTRA_OF_RUNS = 0.05, 0.2
"""Additional memory as shares of what was used: this, and this over the number of runs."""

_AFTER_LARGEST, _AFTER_KILL = 1.1, 2.0
"""Factors after a kill: this of the largest use, if it is more than the step had; else this of what
it had."""


@dataclass(frozen=True)
class MemoryForecast:
    """Forecast of the memory that a step needs.

    Attributes:
        ask_bytes: memory to ask for; None = its use was never measured, and its last run was
            not killed.
        largest_bytes: the most it was seen to use; None = that was not measured.
        runs: number of last runs in which its use was measured, at most `MOST_RUNS`.
        killed_bytes: memory that it had when it was killed in its last run; None = it was not
            killed.
        asked_bytes: memory that it asked for in its last run; None = nothing, or unknown.
    """

    ask_bytes: float | None
    largest_bytes: float | None
    runs: int
    killed_bytes: float | None
    asked_bytes: float | None


class _Step(NamedTuple):
    """Memory of one step in its last runs, whatever its iteration, in bytes.

    Attributes:
        peaks: the most memory that it used in each of the last runs in which that was measured.
        killed: memory that it had when it was killed in the last run; None = it was not killed.
        asked: request in that run; None = nothing, or unknown.
    """

    peaks: tuple[float, ...] = ()
    killed: float | None = None
    asked: float | None = None


class MemoryHistory:
    """Memory that the steps of one namespace, or of one pipeline in it, used, within bounds."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._steps: Recent[tuple[str, str], _Step] = Recent(MOST_STEPS)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended."""
        by_step: dict[tuple[str, str], list[PastStep]] = defaultdict(list)
        for each in run.steps:
            by_step[each.identity.key].append(each)
        for key, iterations in by_step.items():
            # Steps that were never measured are not kept.
            if key in self._steps or any(each.tells_memory for each in iterations):
                peak = _largest(each.peak_bytes for each in iterations)
                peaks = self._steps.get(key, _Step()).peaks
                step = _Step(
                    peaks=peaks if peak is None else (*peaks, peak)[-MOST_RUNS:],
                    killed=_largest(each.killed_bytes for each in iterations),
                    asked=_largest(each.asked_bytes for each in iterations),
                )
                self._steps.use(key, step)

    def predict(self, identity: StepIdentity) -> MemoryForecast | None:
        """Return the forecast for all iterations of a step; None if nothing is known of it."""
        step = self._steps.get(identity.key)
        if step is None:
            return None
        runs, largest = len(step.peaks), max(step.peaks, default=None)
        ask = None if largest is None else largest * (1 + _EXTRA + _EXTRA_OF_RUNS / runs)
        if step.killed is not None:
            ask = max(ask or 0.0, after_kill(step.killed, largest))
        return MemoryForecast(ask, largest, runs, step.killed, step.asked)


def after_kill(had_bytes: float, largest_bytes: float | None) -> float:
    """Return the memory to ask for after a step was killed for memory.

    Args:
        had_bytes: memory that it had.
        largest_bytes: the most it was seen to use before; None = unknown.
    """
    above = _AFTER_LARGEST * (largest_bytes or 0.0)
    return above if above > had_bytes else _AFTER_KILL * had_bytes


def _largest(amounts: Iterable[float | None]) -> float | None:
    return max((each for each in amounts if each is not None), default=None)
