"""What past runs have taught, namespace by namespace: read from PipelineHistories, and added to.

The objects are the truth; what forecasts are made of is built from them, a little at a time, and
built again when somebody else has changed one. The process works on without: a namespace whose past
is not built yet is planned as if it had none.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.actions import DeleteHistory, WriteHistory
from kfp_placement_engine.contract.pipeline_history import MAX_RUNS, history_name
from kfp_placement_engine.history import NodeFactors, Past
from kfp_placement_engine.model.history import PastRun
from kfp_placement_kube.change import Change

_LOG = logging.getLogger(__name__)

MOST_PIPELINES = 200
"""Of a namespace; the one that did not run for longest goes first."""

WRITE_PAUSE = timedelta(seconds=30)
"""Between two writes of one object."""

BUILD_OBSERVATIONS = 1_000
"""Steps learned from between two decisions, some 50 ms: what is learned keeps no plan waiting."""

MOST_BUILT = 50
"""Namespaces whose past is kept built; those not asked for longest are built again."""

HistoryKey = tuple[str, str]
"""Namespace, and name of the object."""


@dataclass
class _Built:
    """What is known of one namespace.

    Attributes:
        past: forecasts are made of it.
        uids: of the runs in it.
        left: runs that are still to be learned from; None = all have been.
    """

    past: Past
    uids: set[str] = field(default_factory=set)
    left: Iterator[PastRun] | None = None


@dataclass
class _Unwritten:
    """Runs of one pipeline that its object does not have yet.

    Attributes:
        pipeline: name.
        runs: by uid.
        written_at: the last write, or the last try.
    """

    pipeline: str
    runs: dict[str, PastRun] = field(default_factory=dict)
    written_at: datetime | None = None


@dataclass
class Histories:
    """The past of all namespaces.

    Attributes:
        enabled: whether it is installed; otherwise nothing is learned and nothing known.
    """

    enabled: bool = False
    _stored: dict[HistoryKey, ObservedHistory] = field(default_factory=dict)
    _unwritten: dict[HistoryKey, _Unwritten] = field(default_factory=dict)
    _built: dict[str, _Built] = field(default_factory=dict)
    _factors: NodeFactors = field(default_factory=NodeFactors)

    def changed(self, change: Change[ObservedHistory]) -> None:
        """An object is new, has changed or is gone."""
        key = (change.key[0], change.key[1])
        if change.new is None:
            self._stored.pop(key, None)
            self._forget(key[0])
            return
        before = self._stored.get(key)
        self._stored[key] = change.new
        unwritten = self._unwritten.get(key)
        if unwritten is not None:
            for uid in change.new.ended.keys() & unwritten.runs.keys():
                del unwritten.runs[uid]
        built = self._built.get(key[0])
        if built is None:
            return
        is_ours = change.new.ended.keys() <= built.uids
        same_spec = before is None or before.spec == change.new.spec
        if not (is_ours and same_spec):
            self._forget(key[0])

    def past(self, namespace: str) -> Past | None:
        """What is known of a namespace; None = nothing yet, or it is still being built."""
        if not self.enabled:
            return None
        built = self._built.get(namespace)
        if built is None:
            built = self._built[namespace] = self._begun(namespace)
            self._build(built)
        # The namespace that was asked for last is the last to go.
        self._built[namespace] = self._built.pop(namespace)
        while len(self._built) > MOST_BUILT:
            self._forget(next(iter(self._built)))
        return built.past if built.left is None else None

    def run_ended(self, namespace: str, run: PastRun) -> None:
        """Learn from a run, once; from one that was tried again as it ended last."""
        key = (namespace, history_name(run.pipeline))
        if self._is_known(key, run):
            return
        unwritten = self._unwritten.setdefault(key, _Unwritten(run.pipeline))
        unwritten.runs[run.uid] = run
        while len(unwritten.runs) > MAX_RUNS:
            del unwritten.runs[next(iter(unwritten.runs))]
        built = self._built.get(namespace)
        if built is None or built.left is not None or run.uid in built.uids:
            self._forget(namespace)
            return
        built.uids.add(run.uid)
        built.past.observe(run)

    def build(self) -> None:
        """Go on with what is being built, for a moment."""
        for built in self._built.values():
            if built.left is not None:
                self._build(built)
                return

    @property
    def is_building(self) -> bool:
        """Whether `build` has something left to do."""
        return any(built.left is not None for built in self._built.values())

    def due(self, now: datetime) -> list[WriteHistory | DeleteHistory]:
        """What must be written now; the leader alone asks."""
        actions: list[WriteHistory | DeleteHistory] = []
        for key, unwritten in list(self._unwritten.items()):
            if not unwritten.runs:
                if unwritten.written_at is None or now - unwritten.written_at >= WRITE_PAUSE:
                    del self._unwritten[key]
                continue
            if unwritten.written_at is not None and now - unwritten.written_at < WRITE_PAUSE:
                continue
            unwritten.written_at = now
            if key not in self._stored:
                actions += self._too_many(key[0])
            runs = tuple(unwritten.runs.values())
            actions.append(WriteHistory(key[0], unwritten.pipeline, runs))
        return actions

    def _is_known(self, key: HistoryKey, run: PastRun) -> bool:
        """Whether a run was learned from as it ended now, or is too old to be kept."""
        stored, unwritten = self._stored.get(key), self._unwritten.get(key)
        if unwritten is not None and run.uid in unwritten.runs:
            return unwritten.runs[run.uid].ended_at >= run.ended_at
        if stored is None:
            return False
        if run.uid in stored.ended:
            return stored.ended[run.uid] >= run.ended_at.replace(microsecond=0)
        return stored.is_older(run)

    def _too_many(self, namespace: str) -> list[DeleteHistory]:
        own = [key for key in self._stored if key[0] == namespace]
        own.sort(key=lambda key: self._stored[key].last_ended_at)
        return [DeleteHistory(*key) for key in own[: max(0, len(own) + 1 - MOST_PIPELINES)]]

    def _begun(self, namespace: str) -> _Built:
        """The past of a namespace, of which nothing has been learned yet."""
        self._factors.forget(namespace)
        runs: dict[str, PastRun] = {}
        for key, stored in self._stored.items():
            if key[0] == namespace:
                runs |= {run.uid: run for run in stored.past_runs()}
        for key, unwritten in self._unwritten.items():
            if key[0] == namespace:
                runs |= unwritten.runs
        ordered = sorted(runs.values(), key=lambda run: (run.ended_at, run.uid))
        past = Past((), namespace, self._factors)
        return _Built(past, set(runs), iter(ordered))

    def _build(self, built: _Built) -> None:
        """Learn from some runs."""
        assert built.left is not None
        observed = 0
        for run in built.left:
            built.past.observe(run)
            observed += len(run.steps)
            if observed >= BUILD_OBSERVATIONS:
                return
        built.left = None

    def _forget(self, namespace: str) -> None:
        self._built.pop(namespace, None)
