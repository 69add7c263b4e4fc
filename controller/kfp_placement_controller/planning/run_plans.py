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
from kfp_placement_controller.planning.first_plans import FirstPlans
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.promising import Promising
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.runs.intake import Intake
from kfp_placement_controller.runs.open_runs import OpenRun
from kfp_placement_controller.runs.overheads import OverheadsByNamespace
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import Turns
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.model.keys import RunKey

WITHOUT_PAST_RUNS = "past runs do not count for some plans"
"""Consequence of a defect in what past runs are used for."""


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
        was_unread: dict[TrackedRun, bool] = {}
        for run in self.intake.due(now, may_be_large=may_be_large):
            was_unread[run] = run.is_unread
            self._take_turn(run, partial(self._read, run))
        if was_unread:
            # By now it is known how many steps they have.
            self.intake.settle(now)
        return [run for run, is_new in was_unread.items() if is_new and run.reading is not None]

    def update(self, now: datetime, monotonic_seconds: float) -> PlanUpdate:
        """Evaluate what has changed, plan new ones, and return what to search next."""
        evaluated: list[TrackedRun] = []
        for run in self.turns.in_time(self._to_evaluate(monotonic_seconds)):
            self._take_turn(run, partial(self._evaluate, run, now, monotonic_seconds))
            evaluated.append(run)
        planned: list[OpenRun] = []
        for new in self.first_plans.due(monotonic_seconds):
            turn = partial(self.planner.plan_at_once, new, now, monotonic_seconds)
            self._take_turn(new.tracked, turn)
            planned.append(new)
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

    def has_unevaluated(self) -> bool:
        """Return whether runs have changed that are still to be evaluated."""
        return any(run.changed for run in self.registry.unsettled.ordered())

    def _to_evaluate(self, monotonic_seconds: float) -> list[TrackedRun]:
        """Return the runs that have changed, and from time to time all that can be planned."""
        unsettled = self.registry.unsettled.ordered()
        if not lasts(self.params.evaluation_seconds, self._all_evaluated_at, monotonic_seconds):
            self._all_evaluated_at = monotonic_seconds
            for run in unsettled:
                run.changed |= run.is_open
        return [run for run in unsettled if run.changed]

    def _evaluate(self, run: TrackedRun, now: datetime, monotonic_seconds: float) -> None:
        """Evaluate a run, plan it again if there is a reason, and learn from it."""
        run.changed, was_held = False, run.held
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
