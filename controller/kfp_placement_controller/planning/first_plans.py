"""Which runs get a plan at once, and in which order: none keeps the others waiting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.planning.open_runs import OpenRun
from kfp_placement_controller.planning.parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_engine.model.keys import RunKey


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
        refused = [run for run in lacking if not self._is_new(run) and self._may_retry(run, now)]
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

    def _may_retry(self, run: OpenRun, now: datetime) -> bool:
        return not lasts(timedelta(seconds=self.retry_seconds), self._tried_at.get(run.key), now)
