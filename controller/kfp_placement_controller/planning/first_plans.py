"""First plans: which of the runs that have no plan that can be followed get one next."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.runs.open_runs import OpenRun
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.turns import Turns, work_of
from kfp_placement_engine.model.keys import RunKey

_STEPS_TRIED_IN_A_SECOND = 200


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

    def due(self, monotonic_seconds: float) -> Iterator[OpenRun]:
        """Yield the next few runs: new ones in turn, then those refused longest ago.

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
            and not run.tracked.changed
            and not lasts(self._pause(run), self._tried_at.get(run.key), monotonic_seconds)
        ]
        refused.sort(key=lambda run: self._tried_at.get(run.key, 0.0))
        work = map(work_of, (*new, *refused))
        for run in self.turns.take(work, most=PLANS_PER_EVALUATION):
            self._tried_at[run.key] = monotonic_seconds
            yield run

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
            if not run.tracked.problem
            # Its steps are looked at first.
            and not run.tracked.changed
            and not self.awaits_package(run.key, monotonic_seconds)
        ]

    def _lacking(self) -> list[OpenRun]:
        return [run for run in self.registry.active() if run.needs_plan]


def _has_begun(run: OpenRun) -> bool:
    return any(not status.unstarted for status in run.tracked.statuses.values())
