"""Ended runs that no PipelineHistory has yet: bounded, and written a few objects at a time."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.actions import HistoryOutcome, WriteHistory
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_engine.contract.pipeline_history import MAX_RUNS, history_name
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun

_LOG = logging.getLogger(__name__)

MOST_STEPS = 100_000
"""Steps of runs that are kept until they are written, some 40 MB; the namespace that has most loses
its oldest."""

WRITE_PAUSE_SECONDS = 30.0
"""Between two writes of one object. Between two tries it doubles with each that fails."""

MOST_DOUBLINGS = 4
"""So that even what has failed for days is tried every eight minutes."""

MOST_WRITES = 5
"""Under way at the same time; of what waits longer, more runs go into one write."""

HistoryKey = tuple[str, str]
"""Namespace, and name of the object."""


@dataclass
class _Unwritten:
    """Runs of one pipeline.

    Attributes:
        pipeline: name.
        runs: by uid.
        steps: of all these runs.
        sent: runs that were written, or refused for good; they stay until the object is seen.
        tried_at: the last write, or the last try.
        failures: of tries in a row.
    """

    pipeline: str
    runs: dict[str, PastRun] = field(default_factory=dict)
    steps: int = 0
    sent: set[str] = field(default_factory=set)
    tried_at: datetime | None = None
    failures: int = 0

    def add(self, run: PastRun) -> None:
        if run.uid in self.runs:
            self.drop(run.uid)
        self.runs[run.uid] = run
        self.steps += len(run.steps)
        while len(self.runs) > MAX_RUNS:
            self.drop(next(iter(self.runs)))

    def drop(self, uid: str) -> None:
        self.steps -= len(self.runs.pop(uid).steps)
        self.sent.discard(uid)

    def may_be_tried(self, now: datetime) -> bool:
        doublings = min(max(0, self.failures - 1), MOST_DOUBLINGS)
        return not lasts(WRITE_PAUSE_SECONDS * 2**doublings, self.tried_at, now)


@dataclass
class UnwrittenRuns:
    """Runs of all pipelines; of each namespace the oldest go first if there are too many."""

    _namespaces: dict[str, dict[str, _Unwritten]] = field(default_factory=dict)
    _under_way: set[HistoryKey] = field(default_factory=set)
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def add(self, namespace: str, run: PastRun) -> None:
        """Keep a run until it has been written."""
        own = self._namespaces.setdefault(namespace, {})
        name = history_name(run.pipeline)
        # What ended last is the last to go.
        unwritten = own[name] = own.pop(name, _Unwritten(run.pipeline))
        unwritten.add(run)
        if len(own) > MOST_PIPELINES:
            self._drop_oldest(namespace)
        self._make_room()

    def get(self, key: HistoryKey, uid: str) -> PastRun | None:
        """A run; None = it is not there."""
        unwritten = self._of(key)
        return None if unwritten is None else unwritten.runs.get(uid)

    def of_namespace(self, namespace: str) -> list[PastRun]:
        """All runs of a namespace."""
        own = self._namespaces.get(namespace, {})
        return [run for each in own.values() for run in each.runs.values()]

    def of_pipeline(self, key: HistoryKey) -> list[PastRun]:
        """All runs of a pipeline."""
        unwritten = self._of(key)
        return [] if unwritten is None else list(unwritten.runs.values())

    def tried(self, namespace: str) -> list[str]:
        """Names of the objects of a namespace that have been, or are being written."""
        own = self._namespaces.get(namespace, {})
        return [name for name, each in own.items() if each.tried_at is not None]

    def seen(self, key: HistoryKey, stored: ObservedHistory) -> None:
        """An object is there: what it has need not be written."""
        unwritten = self._of(key)
        if unwritten is None:
            return
        for uid, run in list(unwritten.runs.items()):
            is_there = uid in stored.ended and stored.ended[uid] >= run.ended_at
            if is_there or uid in unwritten.sent:
                unwritten.drop(uid)

    def answered(self, write: WriteHistory, outcome: HistoryOutcome, now: datetime) -> None:
        """A write that was due is no longer under way."""
        key = (write.namespace, history_name(write.pipeline))
        self._under_way.discard(key)
        unwritten = self._of(key)
        if outcome is HistoryOutcome.NAMESPACE_GONE:
            self._namespaces.pop(write.namespace, None)
        elif unwritten is not None:
            unwritten.tried_at = now
            if outcome is HistoryOutcome.FAILED:
                unwritten.failures += 1
                return
            unwritten.failures = 0
            unwritten.sent |= {run.uid for run in write.runs if unwritten.runs.get(run.uid) == run}

    def due(self, now: datetime) -> list[WriteHistory]:
        """What must be written now: a few objects, those of all namespaces in turn.

        Each must be answered before more is due of it.
        """
        waiting = {
            namespace: list(self._waiting(namespace, now)) for namespace in list(self._namespaces)
        }
        turns = chain.from_iterable(zip_longest(*waiting.values()))
        found = [each for each in turns if each is not None]
        free = max(0, MOST_WRITES - len(self._under_way))
        return [self._write(key, now) for key in found[:free]]

    def _make_room(self) -> None:
        """Lose runs of the namespaces that have most, while too many steps wait."""
        steps = {
            namespace: sum(each.steps for each in own.values())
            for namespace, own in self._namespaces.items()
        }
        while sum(steps.values()) > MOST_STEPS:
            largest = max(steps, key=steps.__getitem__)
            steps[largest] -= self._drop_oldest(largest)
            if not self._namespaces[largest]:
                del self._namespaces[largest], steps[largest]

    def _drop_oldest(self, namespace: str) -> int:
        """Lose the runs of the pipeline that did not run for longest; returns their steps."""
        own = self._namespaces[namespace]
        name = next((name for name, each in own.items() if not each.runs), None)
        if name is None:
            name = next(iter(own))
            self._said.warning(
                f"namespace {namespace}: more runs end than can be written; the oldest are lost"
            )
        return own.pop(name).steps

    def _write(self, key: HistoryKey, now: datetime) -> WriteHistory:
        unwritten = self._namespaces[key[0]][key[1]]
        unwritten.tried_at = now
        self._under_way.add(key)
        return WriteHistory(key[0], unwritten.pipeline, tuple(unwritten.runs.values()))

    def _waiting(self, namespace: str, now: datetime) -> Iterator[HistoryKey]:
        """Objects that must be written, the one that waits longest first."""
        own = self._namespaces[namespace]
        for name, unwritten in list(own.items()):
            if (namespace, name) in self._under_way or not unwritten.may_be_tried(now):
                continue
            if not unwritten.runs:
                del own[name]
            elif len(unwritten.sent) < len(unwritten.runs):
                yield namespace, name
        if not own:
            del self._namespaces[namespace]

    def _of(self, key: HistoryKey) -> _Unwritten | None:
        return self._namespaces.get(key[0], {}).get(key[1])
