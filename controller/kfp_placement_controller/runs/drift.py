"""Drift: what happens to a run is so far from its plan that the run is planned again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_engine.model.step_state import StepState

MOST_PATIENCE = 8
"""Longest wait until a run with an overdue step is planned again, in multiples of the limit."""


_Lateness = tuple[str, bool]
"""Step that is overdue, and whether it has started, so that its end is overdue, not its start."""


@dataclass
class DriftWatch:
    """Watch on the drift of one run, which reports each difference from the plan once."""

    _started: set[tuple[str, str]] = field(default_factory=set)
    """Starts that were compared with the plan: steps, each with the node where it runs."""
    _bound: set[str] = field(default_factory=set)
    """Steps whose pods were bound at the last evaluation."""
    _ended: set[str] = field(default_factory=set)
    """Steps that had ended by the last evaluation: their ends were compared with the plan."""
    _attempts: dict[str, int] = field(default_factory=dict)
    """Number of pods by step."""
    _overdue_revision: int = 0
    """Revision of the last plan that steps were overdue by."""
    _times_replanned: Counter[_Lateness] = field(default_factory=Counter)
    """Number of times that the run was planned again for an overdue step."""

    def evaluate(
        self,
        plan: CurrentPlan,
        statuses: Mapping[str, StepStatus],
        attempts: Mapping[str, int],
        submitted_at: datetime,
        now: datetime,
        params: PlanningParams,
    ) -> bool:
        """Return whether the plan is off by what has happened since the last evaluation.

        Args:
            plan: plan in force.
            statuses: statuses of the steps.
            attempts: number of pods made so far, by step.
            submitted_at: time zero of the plan.
            now: the time.
            params: thresholds.
        """
        ended = {name for name, status in statuses.items() if status.ended}
        bound = {name for name, status in statuses.items() if status.bound}
        # A step has lost its pod before it ended, perhaps with the node.
        is_off = bool((self._bound & statuses.keys()) - bound - ended)
        limit = _limit(plan, params)
        for name, status in statuses.items():
            if status.started_at is not None and (name, status.node) not in self._started:
                self._started.add((name, status.node))
                start = (status.started_at - submitted_at).total_seconds()
                is_off |= (status.node or None) != plan.node_of(name)
                is_off |= _apart(start, plan.start_of(name), limit)
            if status.ended and name not in self._ended:
                is_off |= _is_end_off(name, status, plan, submitted_at, limit)
        # A step that is retried loses its end, and will end again.
        self._bound, self._ended = bound, ended
        for name, number in attempts.items():
            is_off |= number > max(1, self._attempts.get(name, 1))
            self._attempts[name] = number
        if self._overdue_revision != plan.revision:
            late = self._late(plan, statuses, (now - submitted_at).total_seconds(), limit)
            if late:
                self._overdue_revision = plan.revision
                self._times_replanned.update(late)
                is_off = True
        return is_off

    def _late(
        self,
        plan: CurrentPlan,
        statuses: Mapping[str, StepStatus],
        elapsed_seconds: float,
        limit: float,
    ) -> list[_Lateness]:
        """Return the steps that are long overdue; the limit grows with each replanning."""
        late = []
        for name, status in statuses.items():
            lateness = (name, status.started_at is not None)
            patience = limit * min(MOST_PATIENCE, 2 ** self._times_replanned[lateness])
            if _is_overdue(name, status, plan, elapsed_seconds - patience):
                late.append(lateness)
        return late


def _is_end_off(
    name: str, status: StepStatus, plan: CurrentPlan, submitted_at: datetime, limit: float
) -> bool:
    """Return whether a step has ended far from its planned end, or without running."""
    if status.state in (StepState.CACHED, StepState.SKIPPED):
        return True
    if status.ended_at is None:
        return False
    return _apart((status.ended_at - submitted_at).total_seconds(), plan.finish_of(name), limit)


def _limit(plan: CurrentPlan, params: PlanningParams) -> float:
    makespan = plan.makespan_seconds or 0.0
    return max(params.drift_seconds, makespan * params.drift_percent / 100)


def _apart(actual: float, planned: float | None, limit: float) -> bool:
    return planned is not None and abs(actual - planned) > limit


def _is_overdue(name: str, status: StepStatus, plan: CurrentPlan, latest: float) -> bool:
    """Return whether a step should have started, or ended, by `latest`."""
    if status.ended:
        return False
    planned = plan.finish_of(name) if status.started_at is not None else plan.start_of(name)
    return planned is not None and planned < latest
