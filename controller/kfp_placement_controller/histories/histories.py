"""Past runs of each namespace, read from PipelineHistories, to which ended runs are added.

The objects are the truth; what forecasts are made of is built from them (`known_pasts`). The
process works on without: a run whose past is not built yet is planned as if it had none.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.histories.known_pasts import KnownPast, KnownPasts
from kfp_placement_controller.histories.runs_to_store import RunsToStore
from kfp_placement_controller.observed.histories import HistoryKey, ObservedHistory
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistorySpec
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from kfp_placement_engine.model.policy import KEEP_DAYS
from kfp_placement_kube.change import Change


@dataclass
class Histories:
    """The past of all namespaces.

    Attributes:
        enabled: whether it is installed; otherwise nothing is learned and nothing known.
        leads: whether this planner leads; only a leader has seen all past runs.
        json_bytes: size of all objects.
        pasts: forecasts' input from these runs, as far as it has been built.
    """

    enabled: bool = False
    leads: bool = True
    json_bytes: int = 0
    _stored: dict[HistoryKey, ObservedHistory] = field(default_factory=dict)
    _deleting: set[HistoryKey] = field(default_factory=set)
    _to_store: RunsToStore = field(default_factory=RunsToStore)
    _is_readable: bool = True

    def __post_init__(self) -> None:
        """Build nothing yet."""
        self._warnings = WarningLog(__name__)
        self.pasts = KnownPasts(self._stored, KEEP_DAYS, self._warnings)

    def changed(self, change: Change[ObservedHistory]) -> None:
        """Take in that a PipelineHistory is new, has changed or is gone."""
        key, new = HistoryKey(*change.key), change.new
        before = self._stored.pop(key, None)
        self.json_bytes += (new.json_bytes if new else 0) - (before.json_bytes if before else 0)
        is_ours = key in self._deleting
        self._deleting.discard(key)
        if new is None:
            # An object deleted to make room still counts until another planner leads.
            if not is_ours:
                self.pasts.outdated(key.namespace)
            return
        self._stored[key] = new
        self._to_store.seen(key, new)
        if _is_continued(before, new):
            self.pasts.add(key, new.ended.keys() - (before.ended if before else ()))
        else:
            self.pasts.outdated(key.namespace)

    def readable(self, is_readable: bool) -> None:
        """Note whether the objects can be read; while they cannot, ended runs are only remembered.

        What is known of a few runs would else be promised as if it were all.
        """
        if self._is_readable and not is_readable:
            self._warnings.warn(
                "PipelineHistories cannot be read; until they can, no past run counts for a plan"
            )
        self._is_readable = is_readable

    def lead(self) -> None:
        """Answer from now on; rebuild all pasts from the stored objects."""
        self.leads = True
        self.pasts.outdated()

    def follow(self) -> None:
        """Stop answering, as another planner leads from now on."""
        self.leads = False

    @property
    def objects(self) -> int:
        """Number of PipelineHistories."""
        return len(self._stored)

    def use(self, settings: HistorySettings) -> None:
        """Follow what the policy says from now on."""
        if self.pasts.keep_days != settings.keep_days:
            self.pasts.keep_days = settings.keep_days
            self.pasts.outdated()

    def past(self, namespace: str, pipeline: str) -> KnownPast | None:
        """Return the past of a pipeline; None = it is not known yet, or another planner leads."""
        if not (self.enabled and self.leads and self._is_readable):
            return None
        without = f"runs of namespace {namespace} are planned without past ones"
        key = HistoryKey.of(namespace, pipeline)
        return self._warnings.take_turn(without, partial(self.pasts.of_pipeline, key))

    def knows(self, namespace: str, pipeline: str, uid: str, ended_at: datetime) -> bool:
        """Return whether a run that ended at that time has been learned from."""
        before = self._ended_before(HistoryKey.of(namespace, pipeline), uid)
        return before is not None and before >= ended_at.replace(microsecond=0)

    def run_ended(self, namespace: str, run: PastRun) -> bool:
        """Learn from an ended run, once; a run that was retried counts as it ended last.

        Returns:
            Whether the run ended for the first time, so that its end counts.
        """
        if self.knows(namespace, run.pipeline, run.uid, run.ended_at):
            return False
        key = HistoryKey.of(namespace, run.pipeline)
        is_new, stored = self._ended_before(key, run.uid) is None, self._stored.get(key)
        if not is_new:
            # Nobody knows how long it lay between its ends.
            run = replace(run, seconds=None, planned_seconds=None)
        elif stored is not None and stored.is_older(run):
            return False
        self._to_store.add(namespace, run)
        return is_new

    def due(self, monotonic_seconds: float) -> list[HistoryAction]:
        """Return what must be written now; only the leader calls this."""
        if not self._is_readable:
            return []
        write = self._to_store.due(self.pasts.keep_days, monotonic_seconds)
        if write is None:
            return []
        if write.key in self._stored:
            return [write]
        too_many, is_full = self._too_many(write.namespace)
        if is_full:
            self._to_store.answered(write, HistoryOutcome.FAILED, monotonic_seconds)
            return [*too_many]
        return [*too_many, write]

    def answered(self, answer: HistoryAnswer, monotonic_seconds: float) -> None:
        """Take in that an action has been done, or has failed."""
        action = answer.action
        if isinstance(action, WriteHistory):
            self._to_store.answered(action, answer.outcome, monotonic_seconds)
        elif answer.outcome is not HistoryOutcome.DONE:
            self._deleting.discard(HistoryKey(action.namespace, action.name))
        if answer.why:
            what = f"PipelineHistories of namespace {action.namespace} are not written"
            self._warnings.warn(
                f"{what}, and what ends there teaches nothing until they are: {answer.why}"
            )

    def _ended_before(self, key: HistoryKey, uid: str) -> datetime | None:
        """Return when a run ended, or None if it has not been learned from."""
        stored = self._stored.get(key)
        to_store_ended_at = self._to_store.ended_at(key, uid)
        return to_store_ended_at or (None if stored is None else stored.ended.get(uid))

    def _too_many(self, namespace: str) -> tuple[list[DeleteHistory], bool]:
        """Objects that must go for one that is new: those whose last run is the oldest.

        Those that are deleted count until they are gone, since finalizers of others may keep them.

        Returns:
            These objects, and whether the new one must wait for others to go.
        """
        own = {key: each for key, each in self._stored.items() if key.namespace == namespace}
        staying = [key for key in own if not own[key].is_going and key not in self._deleting]
        surplus, going = max(0, len(own) + 1 - MOST_PIPELINES), len(own) - len(staying)
        if surplus and going:
            self._warnings.warn(
                f"namespace {namespace} has {MOST_PIPELINES} PipelineHistories with those that are"
                " deleted but not gone; until they are, other pipelines teach nothing there"
            )
        oldest = sorted(staying, key=lambda key: own[key].last_ended_at)[: max(0, surplus - going)]
        self._deleting.update(oldest)
        return [DeleteHistory(*key) for key in oldest], bool(surplus and going)


def _is_continued(before: ObservedHistory | None, new: ObservedHistory) -> bool:
    """Return whether the object differs only in runs that were added or removed."""
    if before is None:
        return new.spec == PipelineHistorySpec(pipeline=new.spec.pipeline)
    ended = before.ended.items()
    return before.spec == new.spec and all(new.ended.get(uid, at) == at for uid, at in ended)
