"""What past runs have taught, namespace by namespace: read from PipelineHistories, and added to.

The objects are the truth; what forecasts are made of is built from them (`built_pasts`). The
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
from kfp_placement_controller.planning.built_pasts import BuiltPasts, Runs
from kfp_placement_controller.planning.namespace_past import NamespacePast
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.unwritten_runs import HistoryKey, UnwrittenRuns
from kfp_placement_engine.contract.history_status import as_stored
from kfp_placement_engine.contract.pipeline_history import PipelineHistorySpec, history_name
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.history import NodeFactors
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from kfp_placement_kube.change import Change

_LOG = logging.getLogger(__name__)


@dataclass
class Histories:
    """The past of all namespaces.

    Attributes:
        enabled: whether it is installed; otherwise nothing is learned and nothing known.
        settings: how long runs count, and which namespaces share what.
        json_bytes: size of all objects.
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
        """Nothing is built yet."""
        self._pasts = BuiltPasts(self._runs_of, self._stored.keys(), self._said, self.settings)

    @property
    def factors(self) -> NodeFactors:
        """Of nodes; namespaces share them."""
        return self._pasts.factors

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
                self._pasts.outdated(key)
            if not own:
                del self._stored[key[0]]
        else:
            own[key[1]] = new
            self.json_bytes += new.json_bytes
            if not (self._forgets_as_before(key, before, new) and self._pasts.knows(key, new)):
                self._pasts.outdated(key)
            self._unwritten.seen(key, new)
        kept = {} if new is None else new.ended
        self._pasts.let_go(key, () if before is None else before.ended.keys() - kept.keys())

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
        """The policy says this from now on."""
        self.settings = settings
        self._pasts.use(settings)

    def lead(self) -> None:
        """Who wrote until now may have changed what was known before."""
        self._pasts.drop_outdated()

    def past(self, namespace: str, pipeline: str) -> NamespacePast | None:
        """What is known of a pipeline; None = nothing yet, or it is still being built."""
        without = f"runs of namespace {namespace} are planned without past ones"
        return self._said.guarded(without, partial(self._of_pipeline, namespace, pipeline))

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
            run, is_new = replace(run, seconds=None, played_seconds=None), False
        stored = self._of(key)
        if before is None and stored is not None and stored.is_older(run):
            return False
        # A planner that starts will know no more of it.
        run = as_stored(run)
        self._unwritten.add(namespace, run)
        remembered = self._remembered(key, run)
        if remembered is not None:
            self._pasts.add(key, remembered)
        return is_new

    def build(self, *, is_busy: bool = False) -> None:
        """Go on with what is being built, for a moment: what was asked for first comes first.

        Args:
            is_busy: there is other work now, so that as little as possible is done.
        """
        self._pasts.build(is_busy=is_busy)

    @property
    def is_building(self) -> bool:
        """Whether something that was asked for is being built."""
        return self._pasts.is_building

    @property
    def is_hearing(self) -> bool:
        """Whether `build` has something left to do in idle time."""
        return self._pasts.is_hearing

    def awaits(self, namespace: str) -> bool:
        """Whether something of a namespace, or of one that it asks, is not known yet, but soon."""
        return self._pasts.awaits(namespace)

    def is_current(self, namespace: str, pipeline: str) -> bool:
        """Whether what has changed of a pipeline counts; it is asked for."""
        self.past(namespace, pipeline)
        return self._pasts.is_current((namespace, history_name(pipeline)))

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

    def _of_pipeline(self, namespace: str, pipeline: str) -> NamespacePast | None:
        if not (self.enabled and self._is_readable):
            return None
        return self._pasts.of_pipeline((namespace, history_name(pipeline)))

    def _runs_of(self, key: HistoryKey) -> Runs:
        """What there is of a pipeline; of the name "", of those of a namespace that ran last."""
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
        return Runs(stored, [run for run in remembered if run is not None])

    def _remembered(self, key: HistoryKey, run: PastRun) -> PastRun | None:
        """What of a run counts: people forget what has not been written yet, too."""
        stored = self._of(key)
        return run if stored is None else stored.remembered(run)

    def _forgets_as_before(
        self, key: HistoryKey, before: ObservedHistory | None, new: ObservedHistory
    ) -> bool:
        """Whether what people have decided changes nothing of the runs there are."""
        spec = PipelineHistorySpec(pipeline="-") if before is None else before.spec
        if spec == new.spec:
            return True
        unwritten = (run.ended_at for run in self._unwritten.of_pipeline(key))
        return new.forgets_like(spec, (*new.ended.values(), *unwritten))
