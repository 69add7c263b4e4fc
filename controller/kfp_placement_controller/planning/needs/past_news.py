"""News of past runs, for which runs that wait in queues are planned again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.observed.histories import HistoryKey
from kfp_placement_controller.pauses import lasting
from kfp_placement_controller.planning.needs.run_needs import RunNeed
from kfp_placement_engine.model.keys import RunKey

NEWS_PAUSE_SECONDS = 120.0
"""Pause between two plans of the waiting runs of one pipeline: hundreds of them may wait while one
after another ends as usual."""


@dataclass
class PastNews:
    """Pipelines of which runs have ended since their waiting runs were planned.

    Attributes:
        needs: needs of all runs.
        histories: past runs of their namespaces.
    """

    needs: Mapping[RunKey, RunNeed]
    histories: Histories
    _news: set[HistoryKey] = field(default_factory=set)
    _replanned_at: dict[HistoryKey, float] = field(default_factory=dict)

    def history_changed(self, key: HistoryKey) -> None:
        """Note that runs of a pipeline have ended, or that some of them no longer count."""
        self._news.add(key)

    def planned(self, need: RunNeed) -> None:
        """Note that a run has been planned, perhaps before its past was known."""
        if self.histories.enabled and need.lacks_past and need.pipeline:
            history = HistoryKey.of(need.observed.key.namespace, need.pipeline)
            self._news.add(history)
            self._replanned_at.pop(history, None)

    def due(self, monotonic_seconds: float) -> Iterator[RunKey]:
        """Yield the runs to plan again; of those that have begun, only those without a past."""
        self._replanned_at = lasting(NEWS_PAUSE_SECONDS, self._replanned_at, monotonic_seconds)
        fresh = self._news - self._replanned_at.keys()
        # News of pipelines without a waiting run are dropped.
        self._news -= fresh
        for key, need in self.needs.items() if fresh else ():
            history = HistoryKey.of(key.namespace, need.pipeline)
            has_begun = need.has_begun and not need.lacks_past
            if history not in fresh or has_begun or need.observed.ended:
                continue
            past = self.histories.past(key.namespace, need.pipeline)
            if past is None or not past.is_current:
                # The changed past is still being built: plan the run as soon as it is there.
                self._news.add(history)
            else:
                self._replanned_at[history] = monotonic_seconds
                need.has_news = True
                yield key
