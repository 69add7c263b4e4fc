"""Plans of all runs: one at once for each new run, then improvements one after another."""

import logging
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from kfp_placement_controller.metrics import (
    PLANNING_ROUND_SECONDS,
    PLANNING_ROUNDS,
    PLANS_AT_ONCE,
    STEPS_FORECAST,
)
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.current_plan import CurrentPlan, plan_in_force
from kfp_placement_controller.planning.improvement import held_run, plan_round
from kfp_placement_controller.planning.learning import LearnedOverheads
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.rounds import PlanningRound, RoundFailure, RoundResult
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.run_variants import OpenRun, PlannedRun, key_text
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_controller.planning.triggers import Trigger
from kfp_placement_engine.contract.policy import PlacementPolicySpec, planning_policy
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.run_graph import RunGraph, StepKind
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_runs
from kfp_placement_engine.planning.policy_options import policy_options

_LOG = logging.getLogger(__name__)

MAX_CRASHES = 2
"""Searches of one run that may end a worker; then the run is refused."""

MOST_LAG = timedelta(minutes=2)
"""How far our clock may be behind the API server's; a run submitted later had a wrong clock."""


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
        cluster: where they run.
        learned: overheads seen.
        params: times and thresholds.
        problems: what there is to say of a run's planning, by run.
    """

    registry: RunRegistry
    cluster: ClusterState
    learned: LearnedOverheads
    params: PlanningParams
    problems: dict[RunKey, str] = field(default_factory=dict)
    _asked: _Asked | None = None
    _rounds: int = 0
    _triggers: _Triggers | None = None
    _may_gain: bool = False
    _alone: bool = False

    def trigger(self, run: TrackedRun, why: Iterable[Trigger], now: datetime) -> None:
        """A run must be planned again."""
        new = set(why)
        if new:
            run.pending |= new
            self._note(now)

    def may_gain(self, now: datetime) -> None:
        """There is more room than before: runs may be better off elsewhere."""
        if any(True for _ in self.registry.planned()):
            self._may_gain = True
            self._note(now)

    def plan_at_once(self, run: OpenRun, policy: PlacementPolicySpec, now: datetime) -> bool:
        """Give a run a list-scheduling plan beside the others'; returns whether it has one."""
        fixed = [other for other in self.registry.planned() if other.run is not run.run]
        asked = self._round([run], [], fixed, policy, now, self._options(policy, quick=True))
        asked = replace(asked, to_replan=tuple(map(_without_forecast, asked.to_replan)))
        try:
            plan = plan_round(asked).plans[key_text(run.key)]
        except PlanningError as error:
            self.problems[run.key] = str(error)
            return False
        PLANS_AT_ONCE.inc()
        self.problems.pop(run.key, None)
        self._enforce(run, plan, now, quick=True)
        self.trigger(run.run, {Trigger.NEW_RUN}, now)
        return True

    @property
    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return self._asked is not None

    def forecast_round(
        self, run: PlannedRun, policy: PlacementPolicySpec, now: datetime
    ) -> PlanningRound:
        """The round in which a run keeps its plan, for what can be promised by now."""
        fixed = [other for other in self.registry.planned() if other.run is not run.run]
        asked = self._round([run], [], fixed, policy, now, self._options(policy, quick=True))
        (alone,) = asked.to_replan
        held = replace(held_run(alone, asked.warm_start), forecast=run.forecast)
        return replace(asked, to_replan=(held,), is_forecast=True)

    def forecast_after_start(
        self, run: PlannedRun, policy: PlacementPolicySpec, now: datetime
    ) -> PlanningRound:
        """The round in which a run that is held back begins now, as if no other were planned.

        Who is there when it begins is not known; how much longer its pipeline took beside others is
        part of what past runs tell.
        """
        asked = self._round([run], [], [], policy, now, self._options(policy, quick=True))
        (alone,) = asked.to_replan
        begun = replace(alone, release_seconds=0.0, forecast=run.reading.forecast)
        return replace(asked, to_replan=(begun,), is_forecast=True)

    def plan_alone(
        self,
        key: RunKey,
        together: Container[RunKey],
        policy: PlacementPolicySpec,
        graph: RunGraph,
    ) -> Plan:
        """A list-scheduling plan of a run from its submission on, as if no other run were there.

        Args:
            key: of the run.
            together: runs whose pods do not count.
            policy: in force.
            graph: of the run.

        Raises:
            PlanningError: it cannot be planned.
        """
        cluster = self.cluster.snapshot(together, {key.namespace})
        runs = (ActiveRun(key_text(key), graph),)
        return plan_runs(runs, cluster, self._options(policy, quick=True)).plans[key_text(key)]

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
        planned = list(self.registry.planned())
        # One that is held back is planned again when it goes on; until then it takes no room.
        runs = [each for each in planned if each.run.unstarted() and not each.run.held]
        most = 1 if self._alone else policy.replanning.runs_per_round
        asking = [each for each in runs if each.run.pending]
        to_replan = asking[:most]
        movable = (
            []
            if self._alone
            else [run for run in runs if run not in asking][: most - len(to_replan)]
        )
        if not to_replan and not (movable and self._may_gain):
            self._rest()
            return None
        fixed = [run for run in planned if run not in to_replan and run not in movable]
        options = self._options(policy, budget_seconds=self._budget(to_replan, now))
        asked = self._round(to_replan, movable, fixed, policy, now, options)
        for each in to_replan:
            each.run.pending.clear()
        self._asked = _Asked(
            asked, tuple(run.key for run in to_replan), tuple(run.key for run in movable), now
        )
        self._rest()
        if len(asking) > len(to_replan):
            self._note(now)
        return asked

    def round_ended(self, result: RoundResult, now: datetime) -> list[RunKey]:
        """Put the plans of a round into force; returns the runs whose plans have changed."""
        asked = self._finish(result.number)
        if asked is None:
            return []
        self._alone = False
        PLANNING_ROUNDS.labels("improved").inc()
        PLANNING_ROUND_SECONDS.observe((now - asked.started_at).total_seconds())
        changed: list[RunKey] = []
        for key in (*asked.to_replan, *asked.movable):
            run, plan = self.registry.open_run(key), result.plans.get(key_text(key))
            if run is None or plan is None:
                continue
            if key in asked.to_replan:
                run.run.crashes = 0
                self.problems.pop(key, None)
            if not run.fits(plan):
                self.trigger(run.run, {Trigger.WIDTH}, now)
            elif key in asked.to_replan or run.is_moved_by(plan):
                self._enforce(run, plan, asked.started_at, quick=False)
                run.run.promised(plan)
                changed.append(key)
        return changed

    def round_failed(self, failure: RoundFailure, now: datetime) -> None:
        """A round brought nothing; after a death runs are tried one at a time."""
        asked = self._finish(failure.number)
        if asked is None:
            return
        names = ", ".join(map(key_text, asked.to_replan)) or "others"
        _LOG.warning("round %d (%s): %s", failure.number, names, failure.why)
        PLANNING_ROUNDS.labels("died" if failure.died else "failed").inc()
        for key in (*asked.to_replan, *asked.movable) if failure.died else ():
            run = self.registry.runs.get(key)
            if run is not None:
                run.forecast_apart = True
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
            self.trigger(run, {Trigger.NEW_RUN}, now)

    def _finish(self, number: int) -> _Asked | None:
        asked = self._asked
        if asked is None or asked.round.number != number:
            return None
        self._asked = None
        return asked

    def _note(self, now: datetime) -> None:
        first_at = now if self._triggers is None else self._triggers.first_at
        self._triggers = _Triggers(first_at, now)

    def _rest(self) -> None:
        self._triggers = None
        self._may_gain = False

    def _options(
        self,
        policy: PlacementPolicySpec,
        *,
        quick: bool = False,
        budget_seconds: float | None = None,
    ) -> PlanOptions:
        options = policy_options(planning_policy(policy), self.learned.driver_seconds)
        longest = options.budget_seconds
        return replace(
            options,
            budget_seconds=longest if budget_seconds is None else min(longest, budget_seconds),
            compare=(),
            threads=1,
            quick=quick,
            # They take longer than the plan itself; the first round brings them.
            alternatives=not quick,
        )

    def _budget(self, to_replan: Iterable[PlannedRun], now: datetime) -> float | None:
        """Time until the first executor of a run that has not begun; None = no such limit."""
        left = [
            start - (now - run.observed.submitted_at).total_seconds()
            for run in to_replan
            if all(status.started_at is None for status in run.run.statuses.values())
            and (start := run.first_start()) is not None
        ]
        return max(self.params.least_budget_seconds, min(left)) if left else None

    def _round(
        self,
        to_replan: Sequence[OpenRun],
        movable: Sequence[PlannedRun],
        fixed: Sequence[PlannedRun],
        policy: PlacementPolicySpec,
        now: datetime,
        options: PlanOptions,
    ) -> PlanningRound:
        self._rounds += 1
        planned = {run.key for run in self.registry.planned()}
        planned |= {run.key for run in to_replan}
        now = _in_step((*to_replan, *movable, *fixed), now)
        return PlanningRound(
            number=self._rounds,
            to_replan=tuple(run.active_run(now) for run in to_replan),
            movable=tuple(run.active_run(now) for run in movable),
            reserved=tuple(run.reserved(now) for run in movable),
            fixed=tuple(run.reserved(now) for run in fixed),
            cluster=self.cluster.snapshot(planned, {key[0] for key in planned}),
            options=options,
            warm_start={
                (key_text(run.key), name): node
                for run in (*to_replan, *movable)
                for name, node in run.planned_nodes.items()
            },
            gain_percent=policy.replanning.gain_percent,
        )

    def _enforce(self, run: OpenRun, plan: Plan, planned_at: datetime, *, quick: bool) -> None:
        before: CurrentPlan | None = run.plan
        if before is None:
            _count_levels(run)
        revision = 1 if before is None else before.revision + 1
        begun = frozenset(name for name, status in run.run.statuses.items() if not status.unstarted)
        run.run.put_into_force(
            plan_in_force(plan, before, revision, planned_at, begun, quick=quick)
        )


def _count_levels(run: OpenRun) -> None:
    """Tell the metrics what the run times of a new run rest on."""
    if run.reading.forecast is None:
        return
    for step in run.graph.steps:
        if step.kind is StepKind.CONTAINER:
            known = run.reading.forecast.steps.get(step.name)
            STEPS_FORECAST.labels("none" if known is None else str(known.basis.level)).inc()


def _without_forecast(run: ActiveRun) -> ActiveRun:
    """A plan at once promises nothing: to play samples takes longer than to make it."""
    return replace(run, forecast=None)


def _in_step(runs: Iterable[OpenRun], now: datetime) -> datetime:
    """The time, but no run is submitted after it: our clock may be behind the API server's.

    To a run that is to come, a step that others start at that very moment has not begun, and the
    room that they have reserved would seem to be free.
    """
    moments = [run.observed.submitted_at for run in runs]
    return max([now, *(moment for moment in moments if moment <= now + MOST_LAG)])
