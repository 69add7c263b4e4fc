"""When runs end, as far as past runs tell: said of their plans, and again as they go on."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
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

PAUSE_SECONDS = 10.0
"""Pause between two promises of one run by the same plan."""

LONGEST_PAUSE_SECONDS = 30.0
"""The same while nothing happens to its steps; so long is a search awaited that plans it better,
and so long are runs not read again that hear of past ones."""

PAUSE_BEFORE_START_SECONDS = 600.0
"""Pause between two promises of a run that waits for its start: it is planned for each."""

READ_AT_ONCE = 20
"""Runs that hear of past runs in one decision, some 10 ms each; others do in the next ones."""


class _Made(NamedTuple):
    """The last promise of a run: when it was made, by which plan, and what had happened by then."""

    at: datetime
    revision: int
    started: int
    ended: int


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
                continue
            reading = run.reading
            if reading is None or not self._may_hear(run, reading, now):
                continue
            past = self.histories.past(run.key.namespace, reading.graph.name)
            is_news = reading.past is None or (past is not None and past.runs != reading.past_runs)
            if past is not None and is_news:
                news.append((run, past))
        # Those that wait for longest come first: of one pipeline hundreds may hear of one run.
        news.sort(key=lambda each: self._read_at.get(each[0].key, each[0].observed.submitted_at))
        for run, past in news[:READ_AT_ONCE]:
            self._read_with(run, past, policy, now)

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
        waiting: list[PlannedRun] = []
        for run in self.registry.planned():
            if run.reading.forecast is None:
                continue
            if not run.run.waits_to_begin:
                self._guarded(partial(self._promise_again, run, now))
            elif run.key not in self._made or not lasts(
                PAUSE_BEFORE_START_SECONDS, self._made[run.key].at, now
            ):
                waiting.append(run)
        # To plan one takes some 50 ms, and hundreds may wait.
        if waiting:
            first = min(waiting, key=self._made_at)
            self._guarded(partial(self._promise_from_start, first, policy, now))

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

    def _may_hear(self, run: TrackedRun, reading: RunReading, now: datetime) -> bool:
        """Return whether past runs may tell what they did not when the run was read."""
        if reading.past is None:
            return True
        is_told = not run.promises.is_unknown
        return not (is_told or lasts(LONGEST_PAUSE_SECONDS, self._read_at.get(run.key), now))

    def _read_with(
        self, run: TrackedRun, past: KnownPast, policy: PlacementPolicySpec, now: datetime
    ) -> None:
        """Read a run again, with what its past says now, and plan it so."""
        self._read_at[run.key] = now
        run.use_past(past)
        run.reread(policy)
        self._made.pop(run.key, None)
        run.changed = True
        if isinstance(run.open, PlannedRun) and run.unstarted():
            self.planner.trigger(run, now)

    def _made_at(self, run: PlannedRun) -> datetime:
        made = self._made.get(run.key)
        return run.observed.submitted_at if made is None else made.at

    def _promise_again(self, run: PlannedRun, now: datetime) -> None:
        if _awaits_search(run, now):
            return
        made, revision = self._made.get(run.key), run.plan.revision
        # To count steps takes time, and this is asked of all runs between two decisions.
        if made is not None and made.revision == revision and lasts(PAUSE_SECONDS, made.at, now):
            return
        current = _now_of(run, now)
        if (
            made is not None
            and made[1:] == current[1:]
            and lasts(LONGEST_PAUSE_SECONDS, made.at, now)
        ):
            return
        self._made[run.key] = current
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
        self._made[run.key] = _now_of(run, now)
        together = {each.key for each in self.registry.planned()}
        plan = self.builder.plan_alone(run.key, together, policy, run.graph)
        promise = run.promise_from_start(plan)
        if promise is not None:
            run.run.promises.take_after_start(promise)


def _now_of(run: PlannedRun, now: datetime) -> _Made:
    statuses = run.run.statuses.values()
    started = sum(each.started_at is not None for each in statuses)
    return _Made(now, run.plan.revision, started, sum(each.ended for each in statuses))


def _awaits_search(run: PlannedRun, now: datetime) -> bool:
    """Return whether a search is about to bring a better plan."""
    is_asked = run.plan.quick and run.run.pending and run.run.unstarted()
    # Beside many other runs its turn may come late, or never.
    return is_asked and lasts(LONGEST_PAUSE_SECONDS, run.plan.planned_at, now)
