"""What past runs have taught, namespace by namespace: read from PipelineHistories, and added to.

The objects are the truth; what forecasts are made of is built from them (`known_pasts`). The
process works on without: a run whose past is not built yet is planned as if it had none.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.planning.known_pasts import KnownPast, KnownPasts, StoredRuns
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.unwritten_runs import HistoryKey, UnwrittenRuns
from kfp_placement_engine.contract.history_status import as_stored
from kfp_placement_engine.contract.pipeline_history import PipelineHistorySpec, history_name
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from kfp_placement_kube.change import Change

_LOG = logging.getLogger(__name__)


@dataclass
class Histories:
    """The past of all namespaces.

    Attributes:
        enabled: whether it is installed; otherwise nothing is learned and nothing known.
        settings: how long runs count.
        json_bytes: size of all objects.
        pasts: what the runs tell, as far as it has been built.
    """

    enabled: bool = False
    settings: HistorySettings = field(default_factory=HistorySettings)
    json_bytes: int = 0
    _stored: dict[str, dict[str, ObservedHistory]] = field(default_factory=dict)
    _deleting: set[HistoryKey] = field(default_factory=set)
    _unwritten: UnwrittenRuns = field(default_factory=UnwrittenRuns)
    _is_readable: bool = True
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def __post_init__(self) -> None:
        """Build nothing yet."""
        self.pasts = KnownPasts(self._runs_of, self._said)

    def changed(self, change: Change[ObservedHistory]) -> None:
        """An object is new, has changed or is gone."""
        key, new = change.key, change.new
        own = self._stored.setdefault(key[0], {})
        before = own.pop(key[1], None)
        is_ours = key in self._deleting
        self._deleting.discard(key)
        self.json_bytes -= 0 if before is None else before.json_bytes
        if new is None:
            # What goes since there are too many counts until another planner leads.
            if not is_ours:
                self.pasts.outdated(key)
            if not own:
                del self._stored[key[0]]
        else:
            own[key[1]] = new
            self.json_bytes += new.json_bytes
            spec = (
                PipelineHistorySpec(pipeline=new.spec.pipeline) if before is None else before.spec
            )
            if spec != new.spec or not self.pasts.knows(key, new):
                self.pasts.outdated(key)
            self._unwritten.seen(key, new)
        kept = {} if new is None else new.ended
        gone = before.ended.keys() - kept.keys() if before is not None else ()
        self.pasts.let_go(key, gone)

    def readable(self, is_readable: bool) -> None:
        """Whether the objects can be read; while they cannot, what has ended is only remembered.

        What is known of a few runs would else be promised as if it were all.
        """
        if self._is_readable and not is_readable:
            self._said.warning(
                "PipelineHistories cannot be read; until they can, no past run counts for a plan"
            )
        self._is_readable = is_readable

    @property
    def objects(self) -> int:
        """How many objects there are."""
        return sum(map(len, self._stored.values()))

    def use(self, settings: HistorySettings) -> None:
        """Follow what the policy says from now on."""
        before, self.settings = self.settings, settings
        if before.keep_days != settings.keep_days:
            self.pasts.drop()

    def past(self, namespace: str, pipeline: str) -> KnownPast | None:
        """Return what is known of a pipeline; None = nothing yet, or it is still being built."""
        return self._answer((namespace, history_name(pipeline)))

    def knows(self, namespace: str, pipeline: str, uid: str, ended_at: datetime) -> bool:
        """Whether a run that ended then has been learned from."""
        before = self._ended_before((namespace, history_name(pipeline)), uid)
        return before is not None and before >= ended_at.replace(microsecond=0)

    def run_ended(self, namespace: str, run: PastRun) -> bool:
        """Learn from a run, once; from one that was tried again as it ended last.

        Returns:
            Whether the run ended for the first time, so that its end counts.
        """
        key = (namespace, history_name(run.pipeline))
        before, is_new = self._ended_before(key, run.uid), True
        if before is not None:
            if before >= run.ended_at:
                return False
            # Nobody knows how long it lay between its ends.
            run, is_new = replace(run, seconds=None, planned_seconds=None), False
        stored = self._of(key)
        if before is None and stored is not None and stored.is_older(run):
            return False
        # A planner that starts will know no more of it.
        run = as_stored(run)
        self._unwritten.add(namespace, run)
        remembered = self._remembered(key, run)
        if remembered is not None:
            self.pasts.add(key, remembered)
        return is_new

    def is_current(self, key: HistoryKey) -> bool:
        """Return whether all that has changed of a pipeline counts; it is asked for."""
        self._answer(key)
        return self.pasts.is_current(key)

    def due(self, now: datetime) -> list[HistoryAction]:
        """What must be written now; the leader alone asks."""
        actions: list[HistoryAction] = []
        if not self._is_readable:
            return actions
        for write in self._unwritten.due(now):
            if self._of((write.namespace, history_name(write.pipeline))) is None:
                actions += self._too_many(write.namespace)
            actions.append(replace(write, keep_days=self.settings.keep_days))
        return actions

    def answered(self, answer: HistoryAnswer, now: datetime) -> None:
        """What was due has been done, or has failed."""
        action = answer.action
        if isinstance(action, WriteHistory):
            self._unwritten.answered(action, answer.outcome, now)
        elif answer.outcome is not HistoryOutcome.DONE:
            self._deleting.discard((action.namespace, action.name))
        if answer.why:
            what = f"PipelineHistories of namespace {action.namespace} are not written"
            self._said.warning(f"{what}, learned from in the meantime: {answer.why}")

    def _of(self, key: HistoryKey) -> ObservedHistory | None:
        return self._stored.get(key[0], {}).get(key[1])

    def _ended_before(self, key: HistoryKey, uid: str) -> datetime | None:
        """When a run has ended, as far as that was learned; None = it was not."""
        unwritten, stored = self._unwritten.get(key, uid), self._of(key)
        if unwritten is not None:
            return unwritten.ended_at
        return None if stored is None else stored.ended.get(uid)

    def _too_many(self, namespace: str) -> list[DeleteHistory]:
        """Objects that must go for those that are new, those whose last run is the oldest."""
        stored = self._stored.get(namespace, {})
        own = {
            name: each
            for name, each in stored.items()
            if not each.is_going and (namespace, name) not in self._deleting
        }
        new = [name for name in self._unwritten.tried(namespace) if name not in stored]
        surplus = max(0, len(own) + len(new) - MOST_PIPELINES)
        oldest = sorted(own, key=lambda name: own[name].last_ended_at)[:surplus]
        self._deleting |= {(namespace, name) for name in oldest}
        return [DeleteHistory(namespace, name) for name in oldest]

    def _answer(self, key: HistoryKey) -> KnownPast | None:
        if not (self.enabled and self._is_readable):
            return None
        without = f"runs of namespace {key[0]} are planned without past ones"
        return self._said.guarded(without, partial(self.pasts.of_pipeline, key))

    def _runs_of(self, key: HistoryKey) -> StoredRuns:
        """Return the runs of a pipeline; of the name "", of those of a namespace that ran last."""
        namespace, name = key
        if name:
            found = self._of(key)
            stored = [] if found is None else [found]
            unwritten = self._unwritten.of_pipeline(key)
        else:
            all_stored = self._stored.get(namespace, {}).values()
            stored = sorted(all_stored, key=lambda each: each.last_ended_at)[-MOST_PIPELINES:]
            unwritten = self._unwritten.of_namespace(namespace)
        named = ((run, (namespace, history_name(run.pipeline))) for run in unwritten)
        remembered = (self._remembered(of, run) for run, of in named)
        kept = [run for run in remembered if run is not None]
        return StoredRuns(stored, kept, self.settings.keep_days)

    def _remembered(self, key: HistoryKey, run: PastRun) -> PastRun | None:
        """What of a run counts: people forget what has not been written yet, too."""
        stored = self._of(key)
        return run if stored is None else stored.remembered(run)
