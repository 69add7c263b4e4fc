"""The planner: a plan at once for each new run, then rounds that improve plans, one at a time."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.metrics import (
    PLANNING_ROUND_SECONDS,
    PLANNING_ROUNDS,
    PLANS_AT_ONCE,
    STEPS_FORECAST,
)
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.rounds import (
    PlanningRound,
    RoundFailure,
    RoundResult,
    plan_round,
)
from kfp_placement_controller.runs.current_plan import plan_in_force
from kfp_placement_controller.runs.open_runs import OpenRun, PlannedRun, key_text
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import Turns, work_of
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.plans.plan import Plan

_LOG = logging.getLogger(__name__)

STEPS_PER_ROUND = 10_000
"""Steps that are searched in one round, unless one run has more: the next round waits for them."""

MAX_CRASHES = 2
"""Number of searches of one run that end a worker, after which the run is refused."""


@dataclass(frozen=True)
class _RoundUnderWay:
    """A round that is being searched."""

    round: PlanningRound
    to_replan: tuple[RunKey, ...]
    movable: tuple[RunKey, ...]
    started_at: datetime
    started_seconds: float


class _Triggers(NamedTuple):
    """Moments of the first and the last reason for the next round, in monotonic seconds."""

    first_at: float
    last_at: float


@dataclass
class Planner:
    """Decisions about when which runs are planned, and which plans come into force.

    Attributes:
        registry: all runs.
        builder: builder of the rounds that are searched.
        params: times and thresholds.
        turns: turns of the namespaces.
    """

    registry: RunRegistry
    builder: RoundBuilder
    params: PlanningParams
    turns: Turns = field(default_factory=Turns)
    _under_way: _RoundUnderWay | None = None
    _triggers: _Triggers | None = None
    _is_triggered: bool = False
    _may_gain: bool = False
    _is_one_at_a_time: bool = False

    def trigger(self, run: TrackedRun) -> None:
        """Plan a run again in the next round."""
        run.pending = True
        self._is_triggered = True

    def may_gain(self) -> None:
        """Ask for a round, as there is more room: runs may be better off elsewhere."""
        if any(True for _ in self.registry.planned()):
            self._may_gain = True
            self._is_triggered = True

    def rest(self) -> None:
        """Drop all reasons for a round, as there is none, or another planner leads."""
        self._triggers = None
        self._is_triggered = self._may_gain = False

    def plan_at_once(self, run: OpenRun, now: datetime, monotonic_seconds: float) -> None:
        """Give a run a list-scheduling plan beside the others'."""
        alone = self.builder.at_once(run, now)
        try:
            plan = plan_round(alone).plans[key_text(run.key)]
        except PlanningError as error:
            run.tracked.problem = str(error)
            return
        PLANS_AT_ONCE.inc()
        run.tracked.problem = ""
        self._enforce(run, plan, now, now, quick_at=monotonic_seconds)
        self.trigger(run.tracked)

    def pause_seconds(self, monotonic_seconds: float) -> float | None:
        """Return the time until the next round, or None if nothing asks for one or one is made."""
        if self._is_triggered:
            first_at = monotonic_seconds if self._triggers is None else self._triggers.first_at
            self._triggers, self._is_triggered = _Triggers(first_at, monotonic_seconds), False
        if self._under_way is not None or self._triggers is None:
            return None
        first_at, last_at = self._triggers
        due_at = min(
            last_at + self.params.debounce_seconds, first_at + self.params.debounce_limit_seconds
        )
        return due_at - monotonic_seconds

    def next_round(self, now: datetime, monotonic_seconds: float) -> PlanningRound | None:
        """Return the next round, or None while it is not time for one."""
        pause_seconds = self.pause_seconds(monotonic_seconds)
        if pause_seconds is None or pause_seconds > 0:
            return None
        # A run that is held back takes no room, and is planned again when it goes on.
        runs = [
            run
            for run in self.registry.planned()
            if run.tracked.unstarted() and not run.tracked.held
        ]
        most = 1 if self._is_one_at_a_time else self.registry.policy().replanning.runs_per_round
        asking = [run for run in runs if run.tracked.pending]
        in_turn = [work.on for work in self.turns.order(map(work_of, asking))]
        to_replan = list(_within(STEPS_PER_ROUND, in_turn))[:most] or in_turn[:1]
        for run in to_replan:
            self.turns.count(run.key.namespace, run.steps)
        left = STEPS_PER_ROUND - sum(run.steps for run in to_replan)
        others = () if self._is_one_at_a_time else (run for run in runs if run not in asking)
        movable = list(_within(left, others))[: most - len(to_replan)]
        if not to_replan and not (movable and self._may_gain):
            self.rest()
            return None
        next_round = self.builder.round_of(to_replan, movable, now)
        for run in to_replan:
            run.tracked.pending = False
        self._under_way = _RoundUnderWay(
            next_round,
            tuple(run.key for run in to_replan),
            tuple(run.key for run in movable),
            now,
            monotonic_seconds,
        )
        self.rest()
        self._is_triggered = len(asking) > len(to_replan)
        return next_round

    def round_ended(
        self, outcome: RoundResult | RoundFailure, now: datetime, monotonic_seconds: float
    ) -> None:
        """Take in the outcome of a round, unless another has begun since."""
        ended = self._under_way
        if ended is None or ended.round.number != outcome.number:
            return
        self._under_way = None
        if isinstance(outcome, RoundFailure):
            self._failed(ended, outcome)
        else:
            PLANNING_ROUND_SECONDS.observe(monotonic_seconds - ended.started_seconds)
            self._improved(ended, outcome, now)

    def _improved(self, ended: _RoundUnderWay, result: RoundResult, now: datetime) -> None:
        """Put the plans of a round into force."""
        self._is_one_at_a_time = False
        PLANNING_ROUNDS.labels("improved").inc()
        for key in (*ended.to_replan, *ended.movable):
            run, plan = self.registry.open_run(key), result.plans.get(key_text(key))
            if run is None or plan is None:
                continue
            if key in ended.to_replan:
                run.tracked.crashes = 0
                run.tracked.problem = ""
            if not run.fits(plan):
                self.trigger(run.tracked)
            elif key in ended.to_replan or run.is_moved_by(plan):
                self._enforce(run, plan, ended.started_at, now, quick_at=None)

    def _failed(self, ended: _RoundUnderWay, failure: RoundFailure) -> None:
        """Take in that a round failed; if its process died, try runs one at a time."""
        names = ", ".join(map(key_text, ended.to_replan)) or "others"
        _LOG.warning("round %d (%s): %s", failure.number, names, failure.why)
        PLANNING_ROUNDS.labels("died" if failure.died else "failed").inc()
        for key in ended.to_replan:
            run = self.registry.runs.get(key)
            if run is not None:
                run.problem = f"the search failed, the plan made at once holds: {failure.why}"
                if failure.died:
                    self._died(run, ended, failure.why)
        self._is_one_at_a_time = failure.died

    def _died(self, run: TrackedRun, ended: _RoundUnderWay, why: str) -> None:
        """Retry, alone, a run whose search killed its process; refuse it after too many crashes."""
        run.crashes += 1
        if run.crashes >= MAX_CRASHES and len(ended.to_replan) == 1:
            run.refuse(f"planning this run failed {run.crashes} times: {why}")
        else:
            self.trigger(run)

    def _enforce(
        self,
        run: OpenRun,
        plan: Plan,
        planned_at: datetime,
        now: datetime,
        *,
        quick_at: float | None,
    ) -> None:
        before = run.tracked.plan
        if before is None:
            _count_levels(run)
        begun = frozenset(
            name for name, status in run.tracked.statuses.items() if not status.unstarted
        )
        run.tracked.put_into_force(
            plan_in_force(plan, before, planned_at, now, begun, quick_at=quick_at)
        )


def _within(most_steps: int, runs: Iterable[PlannedRun]) -> Iterator[PlannedRun]:
    """Yield the runs that fit into a number of steps together."""
    for run in runs:
        if run.steps <= most_steps:
            most_steps -= run.steps
            yield run


def _count_levels(run: OpenRun) -> None:
    """Count in the metrics what the run times of a new run rest on."""
    if run.reading.forecast is None:
        return
    for step in run.graph.steps:
        if step.kind is StepKind.CONTAINER:
            forecast = run.reading.forecast.steps.get(step.name)
            STEPS_FORECAST.labels("none" if forecast is None else str(forecast.level)).inc()
