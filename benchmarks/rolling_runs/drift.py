"""Drift from the plan, at which the controller plans again.

The thresholds are the controller's (`planning.parameters`), and so is the patience with steps that
are overdue (`runs.drift`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.rolling_runs.tasks import State, Task
from kfp_placement_controller.runs.drift import MOST_PATIENCE
from kfp_placement_controller.runs.planner_parameters import PlanningParams


@dataclass
class Drift:
    """Compares what happens with the plan; an overdue step counts once for each plan.

    Attributes:
        params: the thresholds.
    """

    params: PlanningParams = field(default_factory=PlanningParams)
    _makespans: dict[int, float] = field(default_factory=dict)
    _reported: set[int] = field(default_factory=set)
    _overdue: Counter[tuple[Task, State]] = field(default_factory=Counter)

    def planned(self, makespans: Mapping[int, float]) -> None:
        """Take a new plan, with the times from submission to end of its runs."""
        self._makespans.update(makespans)
        self._reported.clear()

    def is_apart(self, task: Task, actual: float, planned: float) -> bool:
        """Return whether a step has started or ended too far from its plan."""
        return abs(actual - planned) > self._limit(task.run)

    def is_overdue(self, number: int, steps: Mapping[str, Task], now: float) -> bool:
        """Return whether steps should have started or ended long before; longer each time."""
        if number in self._reported:
            return False
        limit = self._limit(number)
        late = [
            (task, task.state)
            for task in steps.values()
            if task.state is not State.DONE
            and (task.finish if task.state is State.RUNS else task.start) < now - limit
        ]
        late = [key for key in late if self._is_beyond(key, now, limit)]
        if late:
            self._overdue.update(late)
            self._reported.add(number)
        return bool(late)

    def _is_beyond(self, key: tuple[Task, State], now: float, limit: float) -> bool:
        task, state = key
        planned = task.finish if state is State.RUNS else task.start
        patience = limit * min(MOST_PATIENCE, 2 ** self._overdue[key])
        return bool(planned < now - patience)

    def _limit(self, run: int) -> float:
        share = self.params.drift_percent / 100
        return max(self.params.drift_seconds, self._makespans.get(run, 0.0) * share)
