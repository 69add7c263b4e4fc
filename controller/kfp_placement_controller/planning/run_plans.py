"""Plans of all runs, kept up to date at each tick: runs are evaluated, planned, improved, promised.

None keeps the others waiting: few are planned at once in one tick, and a defect ends one turn only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.promising import Promising
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.runs.intake import Intake
from kfp_placement_controller.runs.open_runs import OpenRun
from kfp_placement_controller.runs.overheads import OverheadsByNamespace
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION, PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import Turns, work_of
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.model.keys import RunKey

WITHOUT_PAST_RUNS = "past runs do not count for some plans"
"""Consequence of a defect in what past runs are used for."""


_STEPS_TRIED_IN_A_SECOND = 200


class PlanUpdate(NamedTuple):
    """Changes of plans in one tick.

    Attributes:
        evaluated: runs whose steps were evaluated.
        planned: runs that were planned at once, or could not be.
        next_round: round that must be searched now; None = it is not time for one.
    """

    evaluated: Sequence[TrackedRun]
    planned: Sequence[OpenRun]
    next_round: PlanningRound | None


@dataclass
class RunPlans:
    """Keeper of the plans of all runs, with the parts that make them.

    Attributes:
        registry: all runs.
        cluster: cluster in which they run.
        params: times and thresholds.
        awaits_package: function that returns whether the first plan of a run waits for its
            package, by the run's key and the present moment.
        learned: overheads that the cluster has shown.
        turns: turns of the namespaces.
    """

    registry: RunRegistry
    cluster: ClusterState
    params: PlanningParams
    awaits_package: Callable[[RunKey, float], bool] = lambda _key, _moment: False
    learned: OverheadsByNamespace = field(default_factory=OverheadsByNamespace)
    turns: Turns = field(default_factory=Turns)
    _all_evaluated_at: float | None = None

    def __post_init__(self) -> None:
        """Make the parts."""
        self._warnings = WarningLog(__name__)
        self.builder = RoundBuilder(self.registry, self.cluster, self.learned, self.params)
        self.intake = Intake(self.registry, self.turns)
        self.planner = Planner(self.registry, self.builder, self.params, self.turns)
        self.first_plans = FirstPlans(
            self.registry, self.params.evaluation_seconds, self.awaits_package, self.turns
        )
        self.promising = Promising(self.registry, self.builder, self.planner)

    def read(self, now: datetime, *, may_be_large: bool) -> Sequence[TrackedRun]:
        """Read the runs whose turn it is, and return those that were read for the first time.

        Args:
            now: the time.
            may_be_large: whether it may be one that takes long: its turn comes after the plans.
        """
        due = self.intake.due(now, may_be_large=may_be_large)
        unread = [run for run in due if run.is_unread]
        for run in due:
            self._take_turn(run, partial(self._read, run))
        if due:
            # By now it is known how many steps they have.
            self.intake.settle(now)
        return [run for run in unread if run.reading is not None]

    def update(self, now: datetime, monotonic_seconds: float) -> PlanUpdate:
        """Evaluate what has changed, plan new ones, and return what to search next."""
        evaluated = self._to_evaluate(monotonic_seconds)
        for run in evaluated:
            self._take_turn(run, partial(self._evaluate, run, now, monotonic_seconds))
        planned = self.first_plans.due(monotonic_seconds)
        for new in planned:
            turn = partial(self.planner.plan_at_once, new, now, monotonic_seconds)
            self._take_turn(new.tracked, turn)
        next_round = self.planner.next_round(now, monotonic_seconds)
        self._warnings.take_turn(
            WITHOUT_PAST_RUNS, partial(self.promising.promise, now, monotonic_seconds)
        )
        return PlanUpdate(evaluated, planned, next_round)

    def _read(self, run: TrackedRun) -> None:
        self.registry.read(run)
        if run.plan is not None and run.unstarted():
            self.planner.trigger(run)

    def evaluate_adopted(self, run: TrackedRun, now: datetime, monotonic_seconds: float) -> None:
        """Evaluate a run whose plan another planner has made, before that plan is adopted."""
        policy = self.registry.policy()
        self._take_turn(run, partial(run.evaluate, policy, now, monotonic_seconds, self.params))

    def _to_evaluate(self, monotonic_seconds: float) -> list[TrackedRun]:
        """Return the runs that have changed, and from time to time all that can be planned."""
        everything = not lasts(
            self.params.evaluation_seconds, self._all_evaluated_at, monotonic_seconds
        )
        if everything:
            self._all_evaluated_at = monotonic_seconds
        return [
            run
            for run in self.registry.unsettled.ordered()
            if run.changed or (everything and run.is_open)
        ]

    def _evaluate(self, run: TrackedRun, now: datetime, monotonic_seconds: float) -> None:
        """Evaluate a run, plan it again if there is a reason, and learn from it."""
        was_held = run.held
        if run.evaluate(self.registry.policy(), now, monotonic_seconds, self.params):
            self.planner.trigger(run)
        if run.held and not was_held and run.plan is not None:
            self.planner.may_gain()
        if run.reading is not None and not run.refusal:
            self.learned[run.key.namespace].learn(run, run.reading)

    def _take_turn(self, run: TrackedRun, turn: Callable[[], object]) -> None:
        """Work on the plan of a run; after a defect in that it is refused, and no other run."""
        consequence = f"run {run.key.namespace}/{run.key.name} is not planned"
        self._warnings.take_turn(consequence, turn, run.refuse)


@dataclass
class FirstPlans:
    """Choice of the runs that get a plan at once: those that have none that can be followed.

    Such a run has no plan yet, has wider loops than its plan, or was held back when it was planned.

    Attributes:
        registry: all runs.
        retry_seconds: pause until such a run is tried again if it is not large; others may have
            left it room.
        awaits_package: function that returns whether a run waits for its package at a moment.
        turns: turns of the namespaces.
    """

    registry: RunRegistry
    retry_seconds: float
    awaits_package: Callable[[RunKey, float], bool]
    turns: Turns
    _tried_at: dict[RunKey, float] = field(default_factory=dict)

    def due(self, monotonic_seconds: float) -> list[OpenRun]:
        """Return the next few runs: new ones in turn, then those refused longest ago.

        New ones of which no step has begun come first in their namespace: their first pod can
        still follow.
        """
        lacking = self._lacking()
        tried_at = self._tried_at
        self._tried_at = {run.key: tried_at[run.key] for run in lacking if run.key in tried_at}
        new = sorted(self._new(lacking, monotonic_seconds), key=_has_begun)
        refused = [
            run
            for run in lacking
            if run.tracked.problem
            and not lasts(self._pause(run), self._tried_at.get(run.key), monotonic_seconds)
        ]
        refused.sort(key=lambda run: self._tried_at.get(run.key, 0.0))
        work = map(work_of, (*new, *refused))
        chosen = self.turns.take(work, most=PLANS_PER_EVALUATION)
        self._tried_at |= {run.key: monotonic_seconds for run in chosen}
        return chosen

    def awaited(self) -> frozenset[RunKey]:
        """Return the runs whose plan is still to be tried for the first time."""
        return frozenset(run.key for run in self._lacking() if not run.tracked.problem)

    def has_backlog(self, monotonic_seconds: float) -> bool:
        """Return whether a run can be planned for the first time now."""
        return bool(self._new(self._lacking(), monotonic_seconds))

    def _pause(self, run: OpenRun) -> float:
        """Return the pause until a run is tried again; large ones take long, and so wait longer."""
        return self.retry_seconds * max(1.0, run.steps / _STEPS_TRIED_IN_A_SECOND)

    def _new(self, lacking: Sequence[OpenRun], monotonic_seconds: float) -> list[OpenRun]:
        return [
            run
            for run in lacking
            if not run.tracked.problem and not self.awaits_package(run.key, monotonic_seconds)
        ]

    def _lacking(self) -> list[OpenRun]:
        return [run for run in self.registry.active() if run.needs_plan]


def _has_begun(run: OpenRun) -> bool:
    return any(not status.unstarted for status in run.tracked.statuses.values())
