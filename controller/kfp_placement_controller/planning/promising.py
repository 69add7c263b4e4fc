"""Promises of when runs end, by past runs: made for their plans, and again as they go on."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from kfp_placement_controller.histories.known_pasts import KnownPast
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.runs.open_runs import PlannedRun
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.model.promise import Promise
from kfp_placement_engine.planning.past_runs.outlook import outlook_of, promise_of

PAUSE_SECONDS = 30.0
"""Pause between two promises of one run by the same plan, and between two uses of past runs."""

PROMISED_AT_ONCE = 5
"""Number of runs promised in one tick: some 10 ms each, and 60 ms if one waits for its start."""


@dataclass
class Promising:
    """Promises of when runs end.

    Attributes:
        registry: all runs, and past runs of their namespaces.
        builder: builder that plans a run that waits for its start, as if it were alone.
        planner: planner that plans runs again once their past is known.
    """

    registry: RunRegistry
    builder: RoundBuilder
    planner: Planner
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def promise(self, now: datetime, monotonic_seconds: float) -> None:
        """Make promises for runs that have none, or that have progressed.

        A defect in one promise does not affect other runs.
        """
        if not self.registry.histories.enabled:
            return
        due = [run for run in self.registry.planned() if self._is_due(run, monotonic_seconds)]
        due.sort(key=lambda run: run.tracked.promises.tried_at or 0.0)
        for run in due[:PROMISED_AT_ONCE]:
            run.tracked.promises.tried_at = monotonic_seconds
            promise = partial(self._promise, run, now, monotonic_seconds)
            self._warnings.take_turn("it is not said when some runs end", promise)

    def _is_due(self, run: PlannedRun, monotonic_seconds: float) -> bool:
        """Return whether a run is promised again: by another plan, by past runs, or as it goes on.

        One that waits for its start does not go on.
        """
        tried_at = run.tracked.promises.tried_at
        # The cheap test comes first, as this is worked out for all runs in each tick.
        if lasts(PAUSE_SECONDS, tried_at, monotonic_seconds):
            return False
        if self._news(run) is not None:
            return True
        goes_on = tried_at is None or not run.tracked.waits_to_begin
        return goes_on and run.reading.forecast is not None

    def _news(self, run: PlannedRun) -> KnownPast | None:
        """Return the past runs of a pipeline if they tell something new about `run`, else None.

        The first runs of a pipeline may have begun before one of them ended; then the run was read
        without a past, or its promise does not rest on it.
        """
        reading, last = run.reading, run.tracked.promises.last
        is_promised = last is not None and last.ends is not None and not last.after_start
        if is_promised and reading.past is not None:
            return None
        past = self.registry.histories.past(run.key.namespace, reading.graph.name)
        if past is None or (reading.past is not None and past.runs == reading.past_runs):
            return None
        return past

    def _promise(self, run: PlannedRun, now: datetime, monotonic_seconds: float) -> None:
        past, tracked = self._news(run), run.tracked
        if past is not None:
            tracked.use_past(past)
            self.registry.read(tracked)
            if tracked.unstarted():
                self.planner.trigger(tracked)
        read = self.registry.open_run(run.key)
        if not isinstance(read, PlannedRun) or read.needs_plan:
            return
        if _awaits_search(read, monotonic_seconds):
            return
        promise = self._by_now(read, now)
        if promise is not None:
            # The first steps of a run start while its first plan is being made.
            is_early = not any(status.ended for status in tracked.statuses.values())
            made_seconds = (now - tracked.observed.submitted_at).total_seconds()
            tracked.promises.take(
                promise, made_seconds, tracked.held_seconds, may_be_first=is_early
            )

    def _by_now(self, run: PlannedRun, now: datetime) -> Promise | None:
        """Return what is promised of a run by now; None = past runs tell nothing of it."""
        forecast = run.reading.forecast
        if forecast is None:
            return None
        if run.tracked.waits_to_begin:
            # Nobody knows which runs will be there when it begins. Past runs show how much longer
            # the pipeline took beside others.
            planned = self.registry.planned()
            together = [each.observed.as_pods_name_it for each in planned]
            plan = self.builder.plan_alone(run.key, together, run.graph)
            promise = promise_of(outlook_of(plan), run.graph, forecast)
            return replace(promise, steps={}, after_start=True)
        if run.tracked.held:
            return Promise(forecast.confidence, unknown="the run is held back")
        return promise_of(run.outlook(now), run.graph, forecast, run.tracked.promises.first)


def _awaits_search(run: PlannedRun, monotonic_seconds: float) -> bool:
    """Return whether a search is about to bring a better plan than that of a run that goes on."""
    if run.tracked.waits_to_begin:
        return False
    # Among many other runs, the search of this one may come late, or never.
    is_new = lasts(PAUSE_SECONDS, run.plan.quick_at, monotonic_seconds)
    return is_new and run.tracked.pending and run.tracked.unstarted()
