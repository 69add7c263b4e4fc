"""Which runs are evaluated when, and what follows for their plans and for what is learned."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.planning.overheads import LearnedOverheads
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec


@dataclass
class Evaluations:
    """Looks at what happened to runs.

    Attributes:
        registry: the runs.
        planner: learns which of them must be planned again.
        learned: overheads seen.
        params: times and thresholds.
    """

    registry: RunRegistry
    planner: Planner
    learned: LearnedOverheads
    params: PlanningParams
    _all_at: datetime | None = None

    def due(self, now: datetime) -> list[TrackedRun]:
        """Runs that have changed, and from time to time all active ones."""
        pause = timedelta(seconds=self.params.evaluation_seconds)
        everything = not lasts(pause, self._all_at, now)
        if everything:
            self._all_at = now
        return [
            run
            for run in self.registry.open.ordered()
            if run.changed or (everything and run.open is not None)
        ]

    def evaluate(self, run: TrackedRun, policy: PlacementPolicySpec, now: datetime) -> None:
        """Evaluate a run, plan it again if there is a reason, and learn from it."""
        was_held = run.held
        if run.evaluate(policy, now, self.params):
            self.planner.trigger(run, now)
        if run.held and not was_held and run.plan is not None:
            self.planner.may_gain(now)
        if run.reading is not None and not run.refusal:
            self.learned.learn(run, run.reading)
