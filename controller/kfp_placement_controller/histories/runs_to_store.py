"""Ended runs that no PipelineHistory has yet: bounded, and written one object after the other."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.histories.actions import HistoryOutcome, WriteHistory
from kfp_placement_controller.observed.histories import HistoryKey, ObservedHistory
from kfp_placement_controller.pauses import lasting, lasts
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.history.pipeline_history import MAX_RUNS
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun

MOST_STEPS = 100_000
"""Steps of runs that are kept until they are written, some 40 MB; the namespace that has most loses
its oldest."""

WRITE_PAUSE_SECONDS = 30.0
"""Pause between two writes of one object; it doubles after each failure."""

LONGEST_PAUSE_SECONDS = 16 * WRITE_PAUSE_SECONDS
"""Longest pause between two tries of a write that keeps failing."""


@dataclass
class _PipelineRuns:
    """Ended runs of one pipeline that wait to be stored, one at least.

    Attributes:
        runs: ended runs by uid.
        is_sent: whether all were written, or refused for good; they stay until the object is seen.
        pause_seconds: pause until the next try.
    """

    runs: dict[str, PastRun] = field(default_factory=dict)
    is_sent: bool = False
    pause_seconds: float = WRITE_PAUSE_SECONDS


@dataclass
class RunsToStore:
    """Ended runs of all pipelines until a PipelineHistory has them; the oldest of too many go."""

    _namespaces: dict[str, dict[str, _PipelineRuns]] = field(default_factory=dict)
    _steps: Counter[str] = field(default_factory=Counter)
    """Number of steps of all runs that wait, by namespace."""
    _tried_at: dict[HistoryKey, float] = field(default_factory=dict)
    _is_writing: bool = False
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def add(self, namespace: str, run: PastRun) -> None:
        """Keep a run until it has been written."""
        key = HistoryKey.of(namespace, run.pipeline)
        own = self._namespaces.setdefault(namespace, {})
        # What ended last is the last to go.
        waiting = own[key.name] = own.pop(key.name, _PipelineRuns())
        # A run that ends again comes last, and leaves the pause after failed writes as it is.
        if before := waiting.runs.pop(run.uid, None):
            self._steps[namespace] -= len(before.steps)
        waiting.runs[run.uid], waiting.is_sent = run, False
        self._steps[namespace] += len(run.steps)
        if len(waiting.runs) > MAX_RUNS:
            self._drop(key, [next(iter(waiting.runs))])
        if len(own) > MOST_PIPELINES:
            self._lose_oldest(namespace)
        while self._steps.total() > MOST_STEPS:
            self._lose_oldest(max(self._steps, key=self._steps.__getitem__))

    def ended_at(self, key: HistoryKey, uid: str) -> datetime | None:
        """Return when a run ended, or None if it does not wait here."""
        waiting = self._of(key)
        run = None if waiting is None else waiting.runs.get(uid)
        return None if run is None else run.ended_at

    def seen(self, key: HistoryKey, stored: ObservedHistory) -> None:
        """Take in a stored object: the runs that it has need not be written."""
        waiting = self._of(key)
        if waiting is not None:
            gone = [
                uid
                for uid, run in waiting.runs.items()
                if waiting.is_sent or (uid in stored.ended and stored.ended[uid] >= run.ended_at)
            ]
            self._drop(key, gone)

    def due(self, keep_days: int, monotonic_seconds: float) -> WriteHistory | None:
        """Return the next write, namespaces in turn; None = one is unanswered, or none is due.

        Args:
            keep_days: number of days for which ended runs are kept, as in `WriteHistory`.
            monotonic_seconds: the present moment.
        """
        self._tried_at = lasting(LONGEST_PAUSE_SECONDS, self._tried_at, monotonic_seconds)
        for namespace, own in () if self._is_writing else self._namespaces.items():
            for name, waiting in own.items():
                tried_at = self._tried_at.get(HistoryKey(namespace, name))
                pauses = lasts(waiting.pause_seconds, tried_at, monotonic_seconds)
                if waiting.is_sent or pauses:
                    continue
                # The others come first next time.
                self._namespaces[namespace] = self._namespaces.pop(namespace)
                self._is_writing = True
                runs = tuple(waiting.runs.values())
                return WriteHistory(namespace, runs[0].pipeline, runs, keep_days)
        return None

    def answered(
        self, write: WriteHistory, outcome: HistoryOutcome, monotonic_seconds: float
    ) -> None:
        """Take in that a write has been done, or has failed."""
        key = write.key
        self._is_writing = False
        self._tried_at[key] = monotonic_seconds
        if outcome is HistoryOutcome.NAMESPACE_GONE:
            self._namespaces.pop(write.namespace, None)
            del self._steps[write.namespace]
        waiting = self._of(key)
        if waiting is None:
            return
        if outcome is HistoryOutcome.FAILED:
            waiting.pause_seconds = min(2 * waiting.pause_seconds, LONGEST_PAUSE_SECONDS)
            return
        waiting.pause_seconds = WRITE_PAUSE_SECONDS
        # If more have ended since, all are written next: what is written twice changes nothing.
        sent = {run.uid: run for run in write.runs}
        waiting.is_sent = waiting.runs.items() <= sent.items()

    def _lose_oldest(self, namespace: str) -> None:
        """Lose the runs of the pipeline whose last run is the oldest."""
        name, oldest = next(iter(self._namespaces[namespace].items()))
        self._drop(HistoryKey(namespace, name), list(oldest.runs))
        self._warnings.warn(
            f"namespace {namespace}: more runs end than can be written; the oldest are lost"
        )

    def _drop(self, key: HistoryKey, uids: Iterable[str]) -> None:
        namespace, name = key
        own = self._namespaces[namespace]
        runs = own[name].runs
        self._steps[namespace] -= sum(len(runs.pop(uid).steps) for uid in uids)
        if not runs:
            del own[name]
        if not own:
            del self._namespaces[namespace], self._steps[namespace]

    def _of(self, key: HistoryKey) -> _PipelineRuns | None:
        return self._namespaces.get(key.namespace, {}).get(key.name)
