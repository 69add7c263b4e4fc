"""Runs that get no plan and have ended: they wait to be learned from, and are read once."""

import math
from bisect import insort
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_reading import RunReader
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.exceptions import InputError

MOST_BYTES = 64 * 2**20
"""Limit of the packed runs that wait to be learned from: some 10,000 runs of 50 steps. Above it the
namespace that has most loses those that ended first."""

MOST_BYTES_AT_ONCE = 50_000
"""Limit of the packed runs that are learned from between two decisions; one is always taken."""

SETTLED_SECONDS = 1.0
"""The last pods of a run are heard of later than its end, as they are watched apart."""

_LONG_AFTER = timedelta(minutes=1)


@dataclass(frozen=True)
class UnplannedReader:
    """Reader of ended runs without a plan, as if they had been followed to their end.

    Attributes:
        registry: registry with the pods of all runs, the kinds of runs, and the policy in force.
        params: times and thresholds.
    """

    registry: RunRegistry
    params: PlanningParams

    def read(self, ended: EndedPipeline, now: datetime) -> TrackedRun | None:
        """Return a run as it has ended, or None if it teaches nothing."""
        policy = self.registry.policy()
        source = next(each for each in self.registry.sources if each.kind == ended.kind)
        try:
            observed = source.observe(ended.raw(), all_pipelines=True)
            if observed is None:
                return None
            run = TrackedRun(observed, RunReader(observed, policy).read())
        except InputError:
            # What cannot be read could not be planned either.
            return None
        for pod in self.registry.pods_of(observed):
            # Nobody has followed them: what they say themselves counts.
            run.observe_pod(None, pod, now + _LONG_AFTER)
        # Evaluated once, so it does not matter when: nothing has held it back until now.
        run.evaluate(policy, now, 0.0, self.params)
        return run


@dataclass(frozen=True)
class _Unsettled:
    """A run that has just ended, so that its last pods may not have been heard of yet.

    Attributes:
        run: the run.
        heard_seconds: time at which its end was heard of, in monotonic seconds.
    """

    run: EndedPipeline
    heard_seconds: float


@dataclass
class UnplannedRuns:
    """Queue of runs to learn from; of each namespace what ended first comes and goes first."""

    _unsettled: deque[_Unsettled] = field(default_factory=deque)
    _waiting: dict[str, list[EndedPipeline]] = field(default_factory=dict)
    """Runs that can be learned from, by namespace, in the order in which they ended."""
    _bytes: Counter[str] = field(default_factory=Counter)
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def add(self, run: EndedPipeline, monotonic_seconds: float) -> None:
        """Keep a run that has ended; if all take too much memory, the oldest are lost."""
        self._unsettled.append(_Unsettled(run, monotonic_seconds))
        self._bytes[run.key.namespace] += len(run.packed)
        while self._bytes.total() > MOST_BYTES:
            self._settle(math.inf)
            largest = max(self._bytes, key=self._bytes.__getitem__)
            self._take(largest)
            self._warnings.warn(
                f"namespace {largest}: more runs have ended than can be learned from; the oldest"
                " are lost"
            )

    def pause_seconds(self, monotonic_seconds: float) -> float | None:
        """Return the time until there is something to learn from, or None if nothing waits."""
        if self._waiting:
            return 0.0
        if not self._unsettled:
            return None
        return self._unsettled[0].heard_seconds + SETTLED_SECONDS - monotonic_seconds

    def due(self, monotonic_seconds: float) -> list[EndedPipeline]:
        """Take a few runs that can be learned from now, those of all namespaces in turn."""
        self._settle(monotonic_seconds)
        runs: list[EndedPipeline] = []
        left = MOST_BYTES_AT_ONCE
        while self._waiting and left > 0:
            runs.append(self._take(next(iter(self._waiting))))
            left -= len(runs[-1].packed)
        return runs

    def _settle(self, monotonic_seconds: float) -> None:
        """Let runs be learned from whose last pods have been heard of by then; infinity = all runs.

        Anybody may write when a run has ended, so that this decides among these alone.
        """
        while self._unsettled:
            oldest = self._unsettled[0]
            if lasts(SETTLED_SECONDS, oldest.heard_seconds, monotonic_seconds):
                return
            run = self._unsettled.popleft().run
            waiting = self._waiting.setdefault(run.key.namespace, [])
            insort(waiting, run, key=lambda each: each.ended_at)

    def _take(self, namespace: str) -> EndedPipeline:
        """Take the run of a namespace that ended first; its next one comes after the others'."""
        own = self._waiting.pop(namespace)
        run = own.pop(0)
        # In this form, a namespace without runs is forgotten.
        self._bytes -= Counter({namespace: len(run.packed)})
        if own:
            self._waiting[namespace] = own
        return run
