"""When runs end, as far as past runs tell: made with their plans, and again as they go on.

What is promised is played by the process that searches, like every plan. Where it does not answer,
plans come as before, and what was promised last stays.
"""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from kfp_placement_controller.planning.actions import StartRound
from kfp_placement_controller.planning.histories import Histories
from kfp_placement_controller.planning.namespace_past import NamespacePast
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_controller.planning.run_reading import RunReading
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.run_variants import PlannedRun, key_text
from kfp_placement_controller.planning.step_states import StepStatus
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_controller.planning.triggers import Trigger
from kfp_placement_engine.contract.policy import HistorySettings, PlacementPolicySpec
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import StepPromise

_LOG = logging.getLogger(__name__)

PAUSE = timedelta(seconds=30)
"""Between two forecasts of one run, and so long is a search awaited that brings a promise."""

READ_AT_ONCE = 20
"""Runs that hear of past runs in one decision, some 10 ms each; others do in the next ones."""

PAUSE_AFTER_START = timedelta(minutes=10)
"""Between two forecasts of a run that waits for its start."""

LONGEST_PAUSE = timedelta(hours=1)
"""After forecasts of a namespace that failed; it begins with `PAUSE` and doubles, as searches wait
for them."""

MOST_FAILURES = 3
"""Of a run in a row; after these it is not forecast again."""

_Progress = frozenset[tuple[str, bool, bool]]
"""Steps of a run that have started or ended: name, whether it has started, and ended."""


class _Asked(NamedTuple):
    """A forecast that is being made."""

    number: int
    key: RunKey
    uid: str
    after_start: bool


class _Made(NamedTuple):
    """The last forecast of a run.

    Attributes:
        at: when it was asked for, or failed.
        progress: what had happened by then; None = it is made again, whatever happens: it failed,
            or past runs tell something else since.
        failures: in a row.
    """

    at: datetime
    progress: _Progress | None
    failures: int = 0


class _Pause(NamedTuple):
    """Nothing of a namespace is forecast for a time, after that number of failures in a row."""

    failures: int
    since: datetime
    length: timedelta


@dataclass
class Forecasts:
    """Says when runs are forecast again.

    Attributes:
        registry: the runs.
        builder: makes the questions.
        planner: searches, with which forecasts take turns.
        histories: the past of their namespaces.
    """

    registry: RunRegistry
    builder: RoundBuilder
    planner: Planner
    histories: Histories
    _made: dict[RunKey, _Made] = field(default_factory=dict)
    _asked: _Asked | None = None
    _pauses: dict[str, _Pause] = field(default_factory=dict)
    _read_at: dict[RunKey, datetime] = field(default_factory=dict)

    def use_histories(self, policy: PlacementPolicySpec, now: datetime) -> None:
        """Plan runs that came before the past of their pipeline was known with it.

        The first runs of a pipeline may have begun before one of them ended.
        """
        if not self.histories.enabled:
            return
        news: list[tuple[TrackedRun, NamespacePast]] = []
        for run in self.registry.open.ordered():
            if run.open is None:
                # It may stay for days, and has no use for it.
                run.use_past(None)
                continue
            reading = run.variant.reading
            if reading is None:
                continue
            past = self.histories.past(run.key.namespace, reading.graph.name)
            if past is None:
                continue
            if self._tells_more(run, reading, past, now):
                news.append((run, past))
            else:
                run.use_past(past)
        # Those that wait for longest come first: of one pipeline hundreds may hear of one run.
        news.sort(key=lambda each: self._read_at.get(each[0].key, each[0].observed.submitted_at))
        for run, past in news[:READ_AT_ONCE]:
            self._read_with(run, past, policy, now)

    def _read_with(
        self, run: TrackedRun, past: NamespacePast, policy: PlacementPolicySpec, now: datetime
    ) -> None:
        """Read a run again, with what its past says now, and plan and forecast it so."""
        self._read_at[run.key] = now
        run.use_past(past)
        run.reread(policy)
        self._make_again(run.key)
        run.changed = True
        if isinstance(run.variant, PlannedRun) and run.unstarted():
            self.planner.trigger(run, {Trigger.HISTORY}, now)

    def _tells_more(
        self, run: TrackedRun, reading: RunReading, past: NamespacePast, now: datetime
    ) -> bool:
        """Whether a past may tell of a run what it did not when the run was read."""
        if reading.past is None:
            return True
        if not run.promises.is_unknown or past.learned == reading.past_runs:
            return False
        return not lasts(PAUSE, self._read_at.get(run.key), now)

    def use_settings(self, settings: HistorySettings) -> None:
        """The policy says something else of past runs: runs are read again with what it says."""
        self.histories.use(settings)
        for each in self.registry.active():
            each.run.use_past(None)

    def due(self, policy: PlacementPolicySpec, now: datetime) -> list[StartRound]:
        """The run that is forecast next, if it is time for one; one at a time, and no search."""
        if not self.histories.enabled or self._asked is not None or self.planner.is_busy:
            return []
        planned = list(self.registry.planned())
        known = {run.key for run in planned}
        self._made = {key: made for key, made in self._made.items() if key in known}
        namespaces = {run.key.namespace for run in planned}
        self._pauses = {name: each for name, each in self._pauses.items() if name in namespaces}
        paused = {
            name for name, each in self._pauses.items() if lasts(each.length, each.since, now)
        }
        candidates = [
            run for run in planned if run.key.namespace not in paused and self._is_due(run, now)
        ]
        if not candidates:
            return []
        # Those that go on come first: of the others there may be many.
        run = min(
            candidates,
            key=lambda each: (each.run.waits_to_begin, self._made_at(each), each.key),
        )
        self._made[run.key] = _Made(now, _progress(run.run), self._failures(run.key))
        after_start = run.run.waits_to_begin
        forecast = self.builder.forecast_after_start if after_start else self.builder.forecast
        asked = forecast(run, policy, now)
        self._asked = _Asked(asked.number, run.key, run.observed.uid, after_start)
        return [StartRound(asked)]

    def ended(self, outcome: RoundResult | RoundFailure, now: datetime) -> bool:
        """Take a forecast; returns whether the outcome was of one."""
        asked = self._asked
        if asked is None or outcome.number != asked.number:
            return False
        self._asked = None
        run = self.registry.runs.get(asked.key)
        if run is not None and run.observed.uid != asked.uid:
            # Another one has its name by now.
            return True
        if isinstance(outcome, RoundFailure):
            self._has_failed(asked.key, outcome, now)
            return True
        self._pauses.pop(asked.key.namespace, None)
        if asked.key in self._made:
            self._made[asked.key] = self._made[asked.key]._replace(failures=0)
        if run is not None and run.open is not None:
            plan = outcome.plans.get(key_text(asked.key))
            if plan is not None and asked.after_start:
                if plan.promise is not None and run.waits_to_begin:
                    run.promises.take_after_start(plan.promise)
            elif plan is not None:
                run.promised(plan)
                run.forecast_apart = False
        return True

    def clock_set(self) -> None:
        """Somebody has set our clock: what was promised by it is promised again."""
        self._made.clear()

    def forget(self, key: RunKey) -> None:
        """A run is gone."""
        self._made.pop(key, None)
        self._read_at.pop(key, None)

    def _has_failed(self, key: RunKey, failure: RoundFailure, now: datetime) -> None:
        """It is tried again after a pause, a few times; failures in a row make it longer."""
        before = self._pauses.get(key.namespace)
        failures = 0 if before is None else before.failures
        if not failures:
            _LOG.warning(
                "forecast of %s: %s; plans go on without such forecasts, which are tried again",
                key_text(key),
                failure.why,
            )
        self._made[key] = _Made(now, None, self._failures(key) + 1)
        length = min(LONGEST_PAUSE, PAUSE * 2 ** min(failures, 10))
        self._pauses[key.namespace] = _Pause(failures + 1, now, length)

    def _make_again(self, key: RunKey) -> None:
        """Past runs tell something new of a run: it is forecast again, whatever happened to it."""
        if key in self._made:
            self._made[key] = self._made[key]._replace(progress=None)

    def _made_at(self, run: PlannedRun) -> datetime:
        made = self._made.get(run.key)
        return run.observed.submitted_at if made is None else made.at

    def _is_due(self, run: PlannedRun, now: datetime) -> bool:
        """Whether a step has started or ended since, or should have, or it waits for its start."""
        made = self._made.get(run.key)
        if made is not None and made.failures >= MOST_FAILURES:
            return False
        if run.run.waits_to_begin:
            is_new = made is None or not lasts(PAUSE_AFTER_START, made.at, now)
            return is_new and run.reading.forecast is not None
        known = run.reading.forecast
        # Where nothing is known of any step, that is said once.
        if known is None or not (known.steps or run.run.promises.last is None):
            return False
        if _awaits_search(run, now):
            return False
        if made is None:
            # The plan itself came with a promise; one that an earlier leader made may be old.
            return run.run.promises.last is None or bool(_progress(run.run))
        if lasts(PAUSE, made.at, now):
            return False
        return _progress(run.run) != made.progress or _is_overdue(run.run, now)

    def _failures(self, key: RunKey) -> int:
        made = self._made.get(key)
        return 0 if made is None else made.failures


def _awaits_search(run: PlannedRun, now: datetime) -> bool:
    """Whether a search is about to bring a better plan, which comes with a promise."""
    is_asked = run.plan.quick and bool(run.run.pending) and run.run.unstarted()
    # Beside many other runs its turn may come late, or never.
    return is_asked and lasts(PAUSE, run.plan.planned_at, now)


def _progress(run: TrackedRun) -> _Progress:
    """What has happened; it is asked for of all runs between two decisions."""
    return frozenset(
        (name, each.started_at is not None, each.ended)
        for name, each in run.statuses.items()
        if each.started_at is not None or each.ended
    )


def _is_overdue(run: TrackedRun, now: datetime) -> bool:
    """Whether a running step should have ended, another one started, or the run ended."""
    expected = run.promises.expected
    if expected is None:
        return False
    elapsed = (now - run.observed.submitted_at).total_seconds()
    if expected.ends is not None and elapsed > expected.ends.high_seconds:
        return True
    return any(
        _is_late(each, promised, elapsed, is_held=run.held)
        for name, promised in expected.steps.items()
        if (each := run.statuses.get(name)) is not None
    )


def _is_late(status: StepStatus, promised: StepPromise, elapsed: float, *, is_held: bool) -> bool:
    """Whether a step should have ended, or if it has not started and may, should have started."""
    if status.ended:
        return False
    if status.started_at is not None:
        return elapsed > promised.ends.typical_seconds
    return not is_held and elapsed > promised.starts.high_seconds
