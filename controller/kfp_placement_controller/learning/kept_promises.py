"""Counts of runs that ended as their first promise said, for the metrics.

A module of its own because it measures promises, while its importer learns from past runs: neither
needs the other.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import fmean

from kfp_placement_controller.metrics import (
    PROMISE_COVERAGE,
    PROMISE_ERROR,
    PROMISE_SHORTFALL,
    RUN_PROMISES,
)
from kfp_placement_controller.runs.step_statuses import last_end
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.model.promise import PromiseOutcome

LAST_RUNS = 100
"""Number of most recent runs of which the coverage is measured."""

LEAST_RUNS = 20
"""Number of runs below which no coverage is shown: a few broken promises prove nothing."""


@dataclass(frozen=True)
class _EndedPromise:
    """Outcome of the first promise of a run.

    Attributes:
        was_kept: whether the run ended within the promised range.
        confidence: confidence with which the range was promised.
    """

    was_kept: bool
    confidence: float


@dataclass
class KeptPromises:
    """Outcomes of the first promises of recent runs."""

    _ended: deque[_EndedPromise] = field(default_factory=lambda: deque(maxlen=LAST_RUNS))

    def ended(self, run: TrackedRun) -> None:
        """Count a run that has ended; one that failed, or that nothing was promised of, does not.

        Args:
            run: run as of its last evaluation.
        """
        promised = run.promises.first
        ended_at = last_end(run.statuses.values())
        if promised is None or promised.ends is None or ended_at is None:
            return
        if run.promises.is_counted or run.observed.state.end is not RunEnd.SUCCEEDED:
            return
        seconds = (ended_at - run.observed.submitted_at).total_seconds()
        outcome = promised.ends.outcome(seconds)
        RUN_PROMISES.labels(str(outcome)).inc()
        PROMISE_ERROR.observe(abs(promised.ends.typical_seconds / max(1.0, seconds) - 1))
        was_kept = outcome is PromiseOutcome.KEPT
        self._ended.append(_EndedPromise(was_kept, promised.confidence))
        if len(self._ended) >= LEAST_RUNS:
            coverage = fmean(each.was_kept for each in self._ended)
            confidence = fmean(each.confidence for each in self._ended)
            PROMISE_COVERAGE.set(coverage)
            PROMISE_SHORTFALL.set(round(confidence - coverage, 6))

    def forget(self) -> None:
        """Forget all outcomes: another planner counts from now on."""
        self._ended.clear()
        PROMISE_COVERAGE.set(math.nan)
        PROMISE_SHORTFALL.set(math.nan)
