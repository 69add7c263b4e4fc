"""Which runs are evaluated when, and which get a plan at once: none keeps the others waiting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.runs.open_runs import OpenRun
from kfp_placement_controller.runs.overheads import LearnedOverheads
from kfp_placement_controller.runs.parameters import PLANS_PER_EVALUATION, PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.keys import RunKey


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
        everything = not lasts(self.params.evaluation_seconds, self._all_at, now)
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


@dataclass
class FirstPlans:
    """Runs without a plan, whose loops have become wider than it, or that are no longer held back.

    Attributes:
        registry: the runs.
        problems: of those for which no plan could be made, by run; the planner's.
        retry_seconds: after which such a run is tried again; others may have left it room.
    """

    registry: RunRegistry
    problems: Mapping[RunKey, str]
    retry_seconds: float
    _tried_at: dict[RunKey, datetime] = field(default_factory=dict)

    def due(self, now: datetime) -> list[OpenRun]:
        """The next few: oldest first, then those refused before, the longest ago first."""
        lacking = self._lacking()
        self._tried_at = {run.key: at for run in lacking if (at := self._tried_at.get(run.key))}
        new = [run for run in lacking if self._is_new(run)]
        refused = [
            run
            for run in lacking
            if not (
                self._is_new(run) or lasts(self.retry_seconds, self._tried_at.get(run.key), now)
            )
        ]
        refused.sort(key=lambda run: self._tried_at.get(run.key, run.observed.submitted_at))
        chosen = [*new, *refused][:PLANS_PER_EVALUATION]
        self._tried_at |= {run.key: now for run in chosen}
        return chosen

    def awaited(self) -> frozenset[RunKey]:
        """Runs whose plan is still to be tried for the first time."""
        return frozenset(run.key for run in self._lacking() if self._is_new(run))

    def _lacking(self) -> list[OpenRun]:
        return [run for run in self.registry.active() if run.needs_plan]

    def _is_new(self, run: OpenRun) -> bool:
        return run.key not in self.problems
