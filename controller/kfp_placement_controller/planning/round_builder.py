"""Builder of planning rounds: which runs are searched, in which room, with which options."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.runs.open_runs import (
    OpenRun,
    PlannedRun,
    key_text,
)
from kfp_placement_controller.runs.overheads import OverheadsByNamespace
from kfp_placement_controller.runs.planner_parameters import MOST_LAG, PlanningParams
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.sources.source import PodRun
from kfp_placement_engine.contract.planned_policy import planning_policy
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_runs
from kfp_placement_engine.planning.policy_options import policy_options
from kfp_placement_engine.plans.plan import Plan


@dataclass
class RoundBuilder:
    """Builder that knows all that a plan is made of; it decides nothing, and changes no run.

    Attributes:
        registry: all runs.
        cluster: cluster in which they run.
        learned: overheads that each namespace has shown.
        params: times and thresholds.
    """

    registry: RunRegistry
    cluster: ClusterState
    learned: OverheadsByNamespace
    params: PlanningParams
    _rounds: int = 0

    @property
    def has_nodes(self) -> bool:
        """True if there is any node to plan with."""
        return bool(self.cluster.nodes)

    def round_of(
        self, to_replan: Sequence[PlannedRun], movable: Sequence[PlannedRun], now: datetime
    ) -> PlanningRound:
        """Return the round in which some runs are planned again; all others stay.

        Args:
            to_replan: runs that are planned again.
            movable: runs that move only for a gain.
            now: the time.
        """
        options = self._options(budget_seconds=self._budget(to_replan, now))
        return self._round(to_replan, movable, now, options)

    def at_once(self, run: OpenRun, now: datetime) -> PlanningRound:
        """Return the round that plans a run by list scheduling, beside the plans of the others."""
        return self._round([run], [], now, self._options(quick=True))

    def plan_alone(self, key: RunKey, together: Iterable[PodRun], graph: RunGraph) -> Plan:
        """Return a list-scheduling plan of a run from its submission on, as if it were alone.

        Args:
            key: key of the run.
            together: runs whose pods do not count.
            graph: graph of the run.

        Raises:
            PlanningError: it cannot be planned.
        """
        rooms = chain.from_iterable(map(self.cluster.load.of_run, together))
        cluster = self.cluster.snapshot(rooms, {key.namespace})
        namespace = key.namespace
        runs = (
            ActiveRun(
                key_text(key),
                graph,
                namespace=namespace,
                driver_seconds=self._driver_seconds(namespace),
            ),
        )
        return plan_runs(runs, cluster, self._options(quick=True)).plans[key_text(key)]

    def _options(self, *, quick: bool = False, budget_seconds: float = math.inf) -> PlanOptions:
        options = policy_options(planning_policy(self.registry.policy()))
        return replace(
            options,
            budget_seconds=min(options.budget_seconds, budget_seconds),
            compare=(),
            threads=1,
            quick=quick,
            # Alternatives take longer than the plan itself; the first round finds them.
            alternatives=not quick,
        )

    def _active_run(self, run: OpenRun, now: datetime) -> ActiveRun:
        return run.active_run(now, self._driver_seconds(run.key.namespace))

    def _driver_seconds(self, namespace: str) -> float | None:
        """Return the time of drivers as a namespace has shown it; None = as the policy says."""
        is_given = "driver_seconds" in planning_policy(self.registry.policy()).assumed_values()
        return None if is_given else self.learned[namespace].driver_seconds

    def _budget(self, to_replan: Iterable[PlannedRun], now: datetime) -> float:
        """Return the seconds until the first step of a run that has not begun; infinite = none."""
        left = [
            start - (now - run.observed.submitted_at).total_seconds()
            for run in to_replan
            if all(status.started_at is None for status in run.tracked.statuses.values())
            and (start := run.first_start()) is not None
        ]
        return max(self.params.least_budget_seconds, min(left, default=math.inf))

    def _round(
        self,
        to_replan: Sequence[OpenRun],
        movable: Sequence[PlannedRun],
        now: datetime,
        options: PlanOptions,
    ) -> PlanningRound:
        self._rounds += 1
        chosen = {run.tracked for run in (*to_replan, *movable)}
        fixed = [run for run in self.registry.planned() if run.tracked not in chosen]
        runs = (*to_replan, *movable, *fixed)
        now = _in_step(runs, now)
        running = {run.key: run.running_pods(now) for run in runs}
        return PlanningRound(
            number=self._rounds,
            to_replan=tuple(self._active_run(run, now) for run in to_replan),
            movable=tuple(self._active_run(run, now) for run in movable),
            reserved=tuple(run.reserved(now, running[run.key]) for run in movable),
            fixed=tuple(run.reserved(now, running[run.key]) for run in fixed),
            cluster=self.cluster.snapshot(
                (each.covered for each in chain.from_iterable(running.values())),
                {run.key.namespace for run in runs},
            ),
            options=options,
            warm_start={
                (key_text(run.key), name): node
                for run in (*to_replan, *movable)
                for name, node in run.planned_nodes.items()
            },
            gain_percent=self.registry.policy().replanning.gain_percent,
        )


def _in_step(runs: Iterable[OpenRun], now: datetime) -> datetime:
    """Return the time, but not before a run was submitted: our clock may lag the API server's.

    To a run that is to come, a step that others start at that very moment has not begun, and the
    room that they have reserved would seem to be free.
    """
    moments = [run.observed.submitted_at for run in runs]
    return max([now, *(moment for moment in moments if moment <= now + MOST_LAG)])
