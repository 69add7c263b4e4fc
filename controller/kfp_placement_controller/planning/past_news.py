"""Of which waiting runs past runs tell something new, so that they are planned again.

Of the waiting runs of each version of a pipeline one is planned first; the others follow if that
says something else. Hundreds of them may wait while one after another ends as usual.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.planning.histories import Histories
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.run_needs import RunNeed
from kfp_placement_controller.planning.unwritten_runs import HistoryKey
from kfp_placement_engine.contract.pipeline_history import history_name
from kfp_placement_engine.model.keys import RunKey

NEWS_PAUSE = timedelta(seconds=30)
"""Between two looks at what past runs tell of the waiting runs of one pipeline."""

MOST_VERSIONS = 20
"""Of one pipeline that are looked at, those whose runs take longest; somebody may submit each run
as another one."""


@dataclass
class PastNews:
    """What is new of pipelines, and which runs of each are planned first.

    Attributes:
        needs: all runs, with what they need.
        histories: the past of their namespaces.
    """

    needs: Mapping[RunKey, RunNeed]
    histories: Histories
    _news: set[HistoryKey] = field(default_factory=set)
    _looked_at: dict[HistoryKey, datetime] = field(default_factory=dict)
    _first_of: dict[RunKey, HistoryKey] = field(default_factory=dict)
    _without_past: set[RunKey] = field(default_factory=set)

    def history_changed(self, name: HistoryKey) -> None:
        """Runs of a pipeline have ended, or some of them no longer count."""
        self._news.add(name)

    def waits_no_more(self, key: RunKey) -> None:
        """A run has ended or is gone: if it was the first of its pipeline, another one is."""
        name = self._first_of.pop(key, None)
        if name is not None:
            self._news.add(name)

    def planned(self, need: RunNeed, *, is_as_before: bool) -> Sequence[RunKey]:
        """A run has been planned; returns those that have to follow.

        Args:
            need: what it needs.
            is_as_before: whether its plan says nothing else than the one before.
        """
        key = need.observed.key
        if self.histories.enabled and need.lacks_past:
            self._without_past.add(key)
        name = self._first_of.pop(key, None)
        # One that cannot be planned says nothing of the others.
        if name is None or (is_as_before and need.planned is not None):
            return ()
        others = [
            other
            for other in self._waiting().get(name, ())
            if other is not need and other.version == need.version
        ]
        for other in others:
            other.has_news = True
        return [other.observed.key for other in others]

    def due(self, now: datetime) -> Iterator[RunKey]:
        """Runs to plan again; of those that have begun, only those without a past until now."""
        if not self.histories.enabled:
            return
        looked_at = self._looked_at.items()
        self._looked_at = {name: at for name, at in looked_at if lasts(NEWS_PAUSE, at, now)}
        names = self._news - self._looked_at.keys()
        waiting = self._waiting() if names else {}
        for name in names:
            firsts = _first_of_each_version(waiting.get(name, ()))
            # What somebody else has changed counts as soon as it has been built.
            if firsts and not self.histories.is_current(name[0], firsts[0].pipeline):
                continue
            if firsts:
                self._looked_at[name] = now
            self._news.discard(name)
            for first in firsts:
                self._first_of[first.observed.key] = name
                first.has_news = True
                yield first.observed.key
        yield from self._with_first_past()

    def _with_first_past(self) -> Iterator[RunKey]:
        for key in tuple(self._without_past):
            lacking = self.needs.get(key)
            if lacking is None or lacking.observed.ended:
                self._without_past.discard(key)
            elif self.histories.past(key.namespace, lacking.pipeline) is not None:
                self._without_past.discard(key)
                lacking.has_news = True
                yield key

    def _waiting(self) -> Mapping[HistoryKey, Sequence[RunNeed]]:
        """Runs that have not begun, by pipeline."""
        waiting: dict[HistoryKey, list[RunNeed]] = defaultdict(list)
        for key, need in self.needs.items():
            if need.pipeline and not (need.has_begun or need.observed.ended):
                waiting[key.namespace, history_name(need.pipeline)].append(need)
        return waiting


def _first_of_each_version(waiting: Iterable[RunNeed]) -> Sequence[RunNeed]:
    """The longest of each: what moves its end by too little to matter moves no other by more."""
    firsts: dict[int, RunNeed] = {}
    for need in sorted(waiting, key=_longest_first):
        firsts.setdefault(need.version, need)
    return list(firsts.values())[:MOST_VERSIONS]


def _longest_first(need: RunNeed) -> tuple[float, datetime]:
    return -need.alone_seconds, need.observed.submitted_at
