"""Which waiting runs are planned again, as past runs tell something new of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.planning.histories import Histories
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.run_needs import RunNeed
from kfp_placement_controller.planning.unwritten_runs import HistoryKey
from kfp_placement_engine.contract.pipeline_history import history_name
from kfp_placement_engine.model.keys import RunKey

NEWS_PAUSE_SECONDS = 120.0
"""Pause between two plans of the waiting runs of one pipeline: hundreds of them may wait while one
after another ends as usual."""


@dataclass
class PastNews:
    """Pipelines of which runs have ended since their waiting runs were planned.

    Attributes:
        needs: all runs, with what they need.
        histories: the past of their namespaces.
    """

    needs: Mapping[RunKey, RunNeed]
    histories: Histories
    _news: set[HistoryKey] = field(default_factory=set)
    _planned_at: dict[HistoryKey, datetime] = field(default_factory=dict)
    _without_past: set[RunKey] = field(default_factory=set)

    def history_changed(self, name: HistoryKey) -> None:
        """Note that runs of a pipeline have ended, or that some of them no longer count."""
        self._news.add(name)

    def planned(self, need: RunNeed) -> None:
        """Note that a run has been planned, perhaps before its past was known."""
        if self.histories.enabled and need.lacks_past:
            self._without_past.add(need.observed.key)

    def due(self, now: datetime) -> Iterator[RunKey]:
        """Yield the runs to plan again; of those that have begun, only those without a past."""
        if not self.histories.enabled:
            return
        planned_at = self._planned_at.items()
        self._planned_at = {
            name: at for name, at in planned_at if lasts(NEWS_PAUSE_SECONDS, at, now)
        }
        fresh = self._news - self._planned_at.keys()
        waiting = dict(self._waiting()) if fresh else {}
        # What somebody else has changed counts as soon as it has been built.
        asked = fresh.intersection(waiting.values())
        ready = {name for name in asked if self.histories.is_current(name)}
        self._planned_at |= dict.fromkeys(ready, now)
        # Of the others nobody waits.
        self._news -= ready | fresh.difference(waiting.values())
        for key in [key for key, name in waiting.items() if name in ready]:
            self.needs[key].has_news = True
            yield key
        yield from self._with_first_past()

    def _waiting(self) -> Iterator[tuple[RunKey, HistoryKey]]:
        """Yield the runs that have not begun, with the names of their histories."""
        for key, need in self.needs.items():
            if need.pipeline and not (need.has_begun or need.observed.ended):
                yield key, (key.namespace, history_name(need.pipeline))

    def _with_first_past(self) -> Iterator[RunKey]:
        for key in tuple(self._without_past):
            need = self.needs.get(key)
            if need is None or need.observed.ended:
                self._without_past.discard(key)
            elif self.histories.past(key.namespace, need.pipeline) is not None:
                self._without_past.discard(key)
                need.has_news = True
                yield key
