"""What past runs have taught, namespace by namespace: read from PipelineHistories, and added to.

The objects are the truth; what forecasts are made of is built from them, a little at a time, and
built again when somebody else has changed one: a little of all pipelines of a namespace, and all of
those whose runs are planned. The process works on without: a run whose past is not built yet is
planned as if it had none.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from kfp_placement_controller.observed.histories import ObservedHistory
from kfp_placement_controller.planning.actions import DeleteHistory, WriteHistory
from kfp_placement_controller.planning.namespace_past import NamespacePast
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.unwritten_runs import HistoryKey, UnwrittenRuns
from kfp_placement_engine.contract.pipeline_history import as_stored, history_name
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.history import NodeFactors
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from kfp_placement_engine.model.policy import sharing_with
from kfp_placement_kube.change import Change

_LOG = logging.getLogger(__name__)

BUILD_OBSERVATIONS = 100
"""Steps learned from between two decisions, some 5 ms: what is learned keeps no plan waiting."""

BUILT_AT_ONCE = 2 * BUILD_OBSERVATIONS
"""Steps learned from when a run comes: of a small past, before its first plan."""

MOST_BUILT = 50
"""Namespaces whose past is kept built; those not asked for longest are built again."""

MOST_IDLE = 100
"""Pipelines whose past is kept though no run of them is planned any more."""


@dataclass
class Histories:
    """The past of all namespaces.

    Attributes:
        enabled: whether it is installed; otherwise nothing is learned and nothing known.
        factors: of nodes; namespaces share them.
        settings: how long runs count, and which namespaces share what.
        json_bytes: size of all objects.
    """

    enabled: bool = False
    factors: NodeFactors = field(default_factory=NodeFactors)
    settings: HistorySettings = field(default_factory=HistorySettings)
    json_bytes: int = 0
    _stored: dict[str, dict[str, ObservedHistory]] = field(default_factory=dict)
    _deleting: set[HistoryKey] = field(default_factory=set)
    _unwritten: UnwrittenRuns = field(default_factory=UnwrittenRuns)
    _built: dict[str, NamespacePast] = field(default_factory=dict)
    _of_pipelines: dict[HistoryKey, NamespacePast] = field(default_factory=dict)
    _building: dict[HistoryKey, NamespacePast] = field(default_factory=dict)
    _asked: set[HistoryKey] = field(default_factory=set)
    _asked_before: set[HistoryKey] = field(default_factory=set)
    _left: int = BUILT_AT_ONCE
    _is_readable: bool = True
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def changed(self, change: Change[ObservedHistory]) -> None:
        """An object is new, has changed or is gone."""
        namespace, name = change.key
        own = self._stored.setdefault(namespace, {})
        before, new = own.pop(name, None), change.new
        self.json_bytes -= 0 if before is None else before.json_bytes
        self._deleting.discard((namespace, name))
        if new is None:
            self._forget(namespace)
            if not own:
                del self._stored[namespace]
            return
        own[name] = new
        self.json_bytes += new.json_bytes
        self._unwritten.seen((namespace, name), new)
        past = self._built.get(namespace)
        same_spec = before is None or before.spec == new.spec
        if past is not None and not (past.knows(new.ended) and same_spec):
            self._forget(namespace)

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
        before, self.settings = self.settings, settings
        if before.keep_days != settings.keep_days:
            for pasts in (self._built, self._of_pipelines, self._building):
                pasts.clear()
        for past in self._built.values():
            # Whom it asks from now on is said when it is asked for.
            past.share({})

    def past(self, namespace: str, pipeline: str) -> NamespacePast | None:
        """What is known of a pipeline; None = nothing yet, or it is still being built."""
        without = f"runs of namespace {namespace} are planned without past ones"
        return self._said.guarded(without, partial(self._of_pipeline, namespace, pipeline))

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
        pasts = (self._of_pipelines.get(key), self._built.get(namespace))
        if not all(past.add(run) for past in pasts if past is not None):
            self._forget(namespace)
        return is_new

    def build(self, *, is_busy: bool = False) -> None:
        """Go on with what is being built, for a moment: what was asked for first comes first.

        Args:
            is_busy: there is other work now, so that as little as possible is done.
        """
        self._drop_idle()
        self._asked_before, self._asked = self._asked, set()
        self._left = 1 if is_busy else BUILD_OBSERVATIONS
        self._go_on()
        self._left = BUILT_AT_ONCE

    @property
    def is_building(self) -> bool:
        """Whether `build` has something left to do."""
        return bool(self._building)

    @property
    def has_backlog(self) -> bool:
        """Whether there is more to do at once: something to build, or to write."""
        return self.is_building or self._unwritten.has_backlog

    def due(self, now: datetime) -> list[WriteHistory | DeleteHistory]:
        """What must be written now; the leader alone asks."""
        actions: list[WriteHistory | DeleteHistory] = []
        if not self._is_readable:
            return actions
        for write in self._unwritten.due(now):
            if self._of((write.namespace, history_name(write.pipeline))) is None:
                actions += self._too_many(write.namespace)
            actions.append(replace(write, keep_days=self.settings.keep_days))
        return actions

    def written(self, write: WriteHistory) -> None:
        """A write has been done, or the API server will never take it."""
        self._unwritten.written(write)

    def failed(self, action: WriteHistory | DeleteHistory, why: str) -> None:
        """A write has failed; it is tried again later."""
        if isinstance(action, DeleteHistory):
            self._deleting.discard((action.namespace, action.name))
        what = f"PipelineHistories of namespace {action.namespace} are not written"
        self._said.warning(f"{what}, learned from in the meantime: {why}")

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
            name: each for name, each in stored.items() if (namespace, name) not in self._deleting
        }
        new = [name for name in self._unwritten.tried(namespace) if name not in stored]
        surplus = max(0, len(own) + len(new) - MOST_PIPELINES)
        oldest = sorted(own, key=lambda name: own[name].last_ended_at)[:surplus]
        self._deleting |= {(namespace, name) for name in oldest}
        return [DeleteHistory(namespace, name) for name in oldest]

    def _of_pipeline(self, namespace: str, pipeline: str) -> NamespacePast | None:
        of_namespace = self._of_namespace(namespace)
        if of_namespace is None:
            return None
        key = (namespace, history_name(pipeline))
        past = self._of_pipelines.pop(key, None)
        if past is None:
            past = self._begin_pipeline(key, of_namespace)
        # What was asked for last is the last to go.
        self._of_pipelines[key] = past
        self._asked.add(key)
        return past if past.is_built else None

    def _of_namespace(self, namespace: str) -> NamespacePast | None:
        """What is known of all pipelines of a namespace; None = it is still being built."""
        if not (self.enabled and self._is_readable):
            return None
        past = self._built.pop(namespace, None)
        if past is None:
            if not self._has_room():
                self._said.warning(
                    f"runs of namespace {namespace} are planned without past ones while runs of"
                    f" {MOST_BUILT} other namespaces are planned with theirs"
                )
                return None
            past = self._begin(namespace)
        self._built[namespace] = past
        self._asked.add((namespace, ""))
        all_answer = past.share(self._shared_with(namespace))
        return past if past.is_built and all_answer else None

    def _shared_with(self, namespace: str) -> dict[str, NamespacePast]:
        """Namespaces that share with one, as far as they have seen anything and there is room."""
        shared: dict[str, NamespacePast] = {}
        for other in sharing_with(self.settings.share_between, namespace):
            past = self._built.get(other)
            # Runs of their own come first, so others make no room for them.
            if past is None and other in self._stored and len(self._built) < MOST_BUILT:
                past = self._built[other] = self._begin(other)
            if past is not None:
                shared[other] = past
        return shared

    def _has_room(self) -> bool:
        """Whether another namespace may be built; one that was not asked for lately makes room."""
        if len(self._built) < MOST_BUILT:
            return True
        oldest = next(iter(self._built))
        if (oldest, "") in self._asked | self._asked_before:
            return False
        self._forget(oldest)
        return True

    def _drop_idle(self) -> None:
        """Too many pipelines that no run asks for; those not asked for longest go."""
        idle = self._of_pipelines.keys() - self._asked - self._asked_before
        surplus = len(idle) - MOST_IDLE
        for key in [key for key in self._of_pipelines if key in idle][: max(0, surplus)]:
            self._of_pipelines.pop(key)
            self._building.pop(key, None)

    def _begin(self, namespace: str) -> NamespacePast:
        """The past of a namespace; what there is little of is built at once."""
        self.factors.forget(namespace)
        found = self._stored.get(namespace, {}).values()
        stored = sorted(found, key=lambda each: each.last_ended_at)[-MOST_PIPELINES:]
        unwritten = self._unwritten.of_namespace(namespace)
        days = self.settings.keep_days
        past = NamespacePast(namespace, self.factors, stored, unwritten, self._said, days)
        return self._begun((namespace, ""), past)

    def _begin_pipeline(self, key: HistoryKey, of_namespace: NamespacePast) -> NamespacePast:
        stored = self._of(key)
        past = NamespacePast(
            key[0],
            self.factors,
            () if stored is None else (stored,),
            self._unwritten.of_pipeline(key),
            self._said,
            self.settings.keep_days,
            of_namespace,
        )
        return self._begun(key, past)

    def _begun(self, key: HistoryKey, past: NamespacePast) -> NamespacePast:
        self._building[key] = past
        self._go_on()
        return past

    def _go_on(self) -> None:
        for key, past in list(self._building.items()):
            if self._left <= 0:
                return
            self._left = past.build(self._left)
            if past.is_built:
                del self._building[key]

    def _forget(self, namespace: str) -> None:
        self._built.pop(namespace, None)
        for pasts in (self._of_pipelines, self._building):
            for key in [key for key in pasts if key[0] == namespace]:
                del pasts[key]
