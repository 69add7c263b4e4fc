"""When runs end, as far as past runs tell: said of their plans, and again as they go on."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from kfp_placement_controller.planning.histories import Histories
from kfp_placement_controller.planning.known_pasts import KnownPast
from kfp_placement_controller.planning.open_runs import PlannedRun
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.run_reading import RunReading
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import HistorySettings, PlacementPolicySpec
from kfp_placement_engine.model.keys import RunKey

_LOG = logging.getLogger(__name__)

PAUSE_SECONDS = 30.0
"""Pause between two promises of one run by the same plan; so long is a search awaited that plans it
better, and so long are runs not read again that hear of past ones."""

PAUSE_BEFORE_START_SECONDS = 600.0
"""Pause between two promises of a run that waits for its start: it is planned for each."""

READ_AT_ONCE = 20
"""Runs that hear of past runs in one decision, some 10 ms each; others do in the next ones."""


class _Made(NamedTuple):
    """When the last promise of a run was made, and by which of its plans."""

    at: datetime
    revision: int


_NEVER = _Made(datetime.min.replace(tzinfo=UTC), 0)


@dataclass
class Promising:
    """Says when runs end.

    Attributes:
        registry: the runs.
        builder: plans runs that wait for their start.
        planner: plans runs again that hear of past ones.
        histories: the past of their namespaces.
    """

    registry: RunRegistry
    builder: RoundBuilder
    planner: Planner
    histories: Histories
    _made: dict[RunKey, _Made] = field(default_factory=dict)
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))
    _read_at: dict[RunKey, datetime] = field(default_factory=dict)

    def use_histories(self, policy: PlacementPolicySpec, now: datetime) -> None:
        """Plan runs that came before the past of their pipeline was known with it.

        The first runs of a pipeline may have begun before one of them ended.
        """
        if not self.histories.enabled:
            return
        news: list[tuple[TrackedRun, KnownPast]] = []
        for run in self.registry.open.ordered():
            if run.open is None:
                # It may stay for days, and has no use for it.
                run.use_past(None)
            elif (past := self._news(run, run.open.reading, now)) is not None:
                news.append((run, past))
        # Those that wait for longest come first: of one pipeline hundreds may hear of one run.
        news.sort(key=lambda each: self._read_at.get(each[0].key, each[0].observed.submitted_at))
        for run, past in news[:READ_AT_ONCE]:
            self._read_at[run.key] = now
            run.use_past(past)
            run.reread(policy)
            self._made.pop(run.key, None)
            run.changed = True
            if isinstance(run.open, PlannedRun) and run.unstarted():
                self.planner.trigger(run, now)

    def use_settings(self, settings: HistorySettings) -> None:
        """Read runs again with what the policy says of past runs from now on."""
        self.histories.use(settings)
        self._read_at.clear()
        for each in self.registry.active():
            each.run.use_past(None)

    def promise(self, policy: PlacementPolicySpec, now: datetime) -> None:
        """Say when runs end of which that is not said yet, or of which something has happened."""
        if not self.histories.enabled:
            return
        due = [run for run in self.registry.planned() if self._is_due(run, now)]
        for run in due:
            if not run.run.waits_to_begin:
                self._guarded(partial(self._promise_again, run, now))
        # To plan one takes some 50 ms, and hundreds may wait.
        waiting = [run for run in due if run.run.waits_to_begin]
        for run in sorted(waiting, key=lambda each: self._last_of(each).at)[:1]:
            self._guarded(partial(self._promise_from_start, run, policy, now))

    def clock_set(self) -> None:
        """Promise again what was promised by a clock that somebody has set."""
        self._made.clear()

    def forget(self, key: RunKey) -> None:
        """Forget a run that is gone."""
        self._made.pop(key, None)
        self._read_at.pop(key, None)

    def _guarded(self, do: Callable[[], None]) -> None:
        """Promise one run; a defect in that hides those of no other."""
        self._said.guarded("it is not said when some runs end", do)

    def _news(self, run: TrackedRun, reading: RunReading, now: datetime) -> KnownPast | None:
        """The past, if that may tell what it did not when the run was read."""
        is_told = reading.past is not None and not run.promises.is_unknown
        if is_told or lasts(PAUSE_SECONDS, self._read_at.get(run.key), now):
            return None
        past = self.histories.past(run.key.namespace, reading.graph.name)
        is_as_before = past is not None and past.runs == reading.past_runs
        return None if reading.past is not None and is_as_before else past

    def _last_of(self, run: PlannedRun) -> _Made:
        return self._made.get(run.key, _NEVER)

    def _is_due(self, run: PlannedRun, now: datetime) -> bool:
        """Return whether the run is promised again: by another plan, or after a pause."""
        if run.reading.forecast is None:
            return False
        is_waiting, made = run.run.waits_to_begin, self._last_of(run)
        pause_seconds = PAUSE_BEFORE_START_SECONDS if is_waiting else PAUSE_SECONDS
        return made.revision != run.plan.revision or not lasts(pause_seconds, made.at, now)

    def _promise_again(self, run: PlannedRun, now: datetime) -> None:
        if _awaits_search(run, now):
            return
        self._made[run.key] = _Made(now, run.plan.revision)
        promise = run.promise(now)
        if promise is not None:
            run.run.promised(promise, now)

    def _promise_from_start(
        self, run: PlannedRun, policy: PlacementPolicySpec, now: datetime
    ) -> None:
        """Promise a run that is held back as if it began now and no other were planned.

        Who is there when it begins is not known; how much longer its pipeline took beside others is
        part of what past runs tell.
        """
        self._made[run.key] = _Made(now, run.plan.revision)
        together = {each.key for each in self.registry.planned()}
        plan = self.builder.plan_alone(run.key, together, policy, run.graph)
        promise = run.promise_from_start(plan)
        if promise is not None:
            run.run.promises.take_after_start(promise)


def _awaits_search(run: PlannedRun, now: datetime) -> bool:
    """Return whether a search is about to bring a better plan."""
    is_asked = run.plan.quick and run.run.pending and run.run.unstarted()
    # Beside many other runs its turn may come late, or never.
    return is_asked and lasts(PAUSE_SECONDS, run.plan.planned_at, now)
