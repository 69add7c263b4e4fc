"""Plans of all runs: one at once for each new run, then improvements one after another."""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
from kfp_placement_controller.runs.open_runs import OpenRun, key_text
from kfp_placement_controller.runs.parameters import PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.plans.plan import Plan

_LOG = logging.getLogger(__name__)

MAX_CRASHES = 2
"""Searches of one run that may end a worker; then the run is refused."""


@dataclass(frozen=True)
class _Asked:
    """A round under way."""

    round: PlanningRound
    to_replan: tuple[RunKey, ...]
    movable: tuple[RunKey, ...]
    started_at: datetime


class _Triggers(NamedTuple):
    """What asks for the next round."""

    first_at: datetime
    last_at: datetime


@dataclass
class Planner:
    """Decides when which runs are planned, and which plans come into force.

    Attributes:
        registry: the runs.
        builder: makes the questions that searches are asked.
        params: times and thresholds.
        problems: what there is to say of a run's planning, by run.
    """

    registry: RunRegistry
    builder: RoundBuilder
    params: PlanningParams
    problems: dict[RunKey, str] = field(default_factory=dict)
    _asked: _Asked | None = None
    _triggers: _Triggers | None = None
    _may_gain: bool = False
    _alone: bool = False

    def trigger(self, run: TrackedRun, now: datetime) -> None:
        """A run must be planned again."""
        run.pending = True
        self._note(now)

    def may_gain(self, now: datetime) -> None:
        """There is more room than before: runs may be better off elsewhere."""
        if any(True for _ in self.registry.planned()):
            self._may_gain = True
            self._note(now)

    def rest(self) -> None:
        """Ask for no round until something new does, as while another plans."""
        self._triggers = None
        self._may_gain = False

    def clock_set(self, step: timedelta) -> None:
        """Somebody has set our clock.

        Args:
            step: by how much.
        """
        if self._triggers is not None:
            first_at, last_at = self._triggers
            self._triggers = _Triggers(first_at + step, last_at + step)

    def plan_at_once(self, run: OpenRun, policy: PlacementPolicySpec, now: datetime) -> None:
        """Give a run a list-scheduling plan beside the others'."""
        asked = self.builder.at_once(run, policy, now)
        try:
            plan = plan_round(asked).plans[key_text(run.key)]
        except PlanningError as error:
            self.problems[run.key] = str(error)
            return
        PLANS_AT_ONCE.inc()
        self.problems.pop(run.key, None)
        self._enforce(run, plan, now, now, quick=True)
        self.trigger(run.run, now)

    def due_at(self) -> datetime | None:
        """When the next round is to begin; None = nothing asks for one, or one is under way."""
        if self._asked is not None or self._triggers is None:
            return None
        return min(
            self._triggers.last_at + timedelta(seconds=self.params.debounce_seconds),
            self._triggers.first_at + timedelta(seconds=self.params.debounce_limit_seconds),
        )

    def next_round(self, policy: PlacementPolicySpec, now: datetime) -> PlanningRound | None:
        """The next round if it is time for one."""
        due_at = self.due_at()
        if due_at is None or now < due_at:
            return None
        # One that is held back is planned again when it goes on; until then it takes no room.
        runs = [
            each for each in self.registry.planned() if each.run.unstarted() and not each.run.held
        ]
        most = 1 if self._alone else policy.replanning.runs_per_round
        asking = [each for each in runs if each.run.pending]
        to_replan = asking[:most]
        movable = (
            []
            if self._alone
            else [run for run in runs if run not in asking][: most - len(to_replan)]
        )
        if not to_replan and not (movable and self._may_gain):
            self.rest()
            return None
        asked = self.builder.round_of(to_replan, movable, policy, now)
        for each in to_replan:
            each.run.pending = False
        self._asked = _Asked(
            asked, tuple(run.key for run in to_replan), tuple(run.key for run in movable), now
        )
        self.rest()
        if len(asking) > len(to_replan):
            self._note(now)
        return asked

    def round_ended(self, outcome: RoundResult | RoundFailure, now: datetime) -> None:
        """Take what a round has brought, unless nobody waits for it any more."""
        asked = self._asked
        if asked is None or asked.round.number != outcome.number:
            return
        self._asked = None
        if isinstance(outcome, RoundFailure):
            self._failed(asked, outcome, now)
        else:
            self._improved(asked, outcome, now)

    def _improved(self, asked: _Asked, result: RoundResult, now: datetime) -> None:
        """Put the plans of a round into force."""
        self._alone = False
        PLANNING_ROUNDS.labels("improved").inc()
        PLANNING_ROUND_SECONDS.observe((now - asked.started_at).total_seconds())
        for key in (*asked.to_replan, *asked.movable):
            run, plan = self.registry.open_run(key), result.plans.get(key_text(key))
            if run is None or plan is None:
                continue
            if key in asked.to_replan:
                run.run.crashes = 0
                self.problems.pop(key, None)
            if not run.fits(plan):
                self.trigger(run.run, now)
            elif key in asked.to_replan or run.is_moved_by(plan):
                self._enforce(run, plan, asked.started_at, now, quick=False)

    def _failed(self, asked: _Asked, failure: RoundFailure, now: datetime) -> None:
        """A round brought nothing; after a death runs are tried one at a time."""
        names = ", ".join(map(key_text, asked.to_replan)) or "others"
        _LOG.warning("round %d (%s): %s", failure.number, names, failure.why)
        PLANNING_ROUNDS.labels("died" if failure.died else "failed").inc()
        for key in asked.to_replan:
            run = self.registry.runs.get(key)
            if run is not None:
                text = f"the search failed, the plan made at once holds: {failure.why}"
                self.problems[key] = text
                if failure.died:
                    self._died(run, asked, failure.why, now)
        self._alone = failure.died

    def _died(self, run: TrackedRun, asked: _Asked, why: str, now: datetime) -> None:
        """A search of the run ended its process: try it a second time, alone, then never again."""
        run.crashes += 1
        if run.crashes >= MAX_CRASHES and len(asked.to_replan) == 1:
            run.refuse(f"planning this run failed {run.crashes} times: {why}")
        else:
            self.trigger(run, now)

    def _note(self, now: datetime) -> None:
        first_at = now if self._triggers is None else self._triggers.first_at
        self._triggers = _Triggers(first_at, now)

    def _enforce(
        self, run: OpenRun, plan: Plan, planned_at: datetime, now: datetime, *, quick: bool
    ) -> None:
        before = run.run.plan
        if before is None:
            _count_levels(run)
        begun = frozenset(name for name, status in run.run.statuses.items() if not status.unstarted)
        run.run.put_into_force(plan_in_force(plan, before, planned_at, now, begun, quick=quick))


def _count_levels(run: OpenRun) -> None:
    """Tell the metrics what the run times of a new run rest on."""
    if run.reading.forecast is None:
        return
    for step in run.graph.steps:
        if step.kind is StepKind.CONTAINER:
            known = run.reading.forecast.steps.get(step.name)
            STEPS_FORECAST.labels("none" if known is None else str(known.level)).inc()
