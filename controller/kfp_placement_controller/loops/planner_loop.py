"""The loop of `plan`: lets the coordinator decide, and carries that out."""

from collections import Counter
from dataclasses import dataclass

from typing_extensions import override

from kfp_placement_controller.actuators.leading import Leading
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.metrics import (
    HISTORIES,
    HISTORIES_BYTES,
    LEARNED_SECONDS,
    PLANNER_TICK_SECONDS,
    QUEUE_LEASE_AGE_SECONDS,
    RUNS_BY_PHASE,
    RUNS_OVER_BUDGET,
)
from kfp_placement_controller.planning.actions import WritePlacement
from kfp_placement_controller.planning.conditions import phase
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_engine.contract.placement import Phase


@dataclass
class PlannerLoop(DecisionLoop[Coordinator]):
    """The one thread that calls the coordinator.

    Attributes:
        leading: object that lets the coordinator lead while the Lease is ours.
        runner: object that carries out the actions.
    """

    name = "planner"
    leading: Leading
    runner: ActionRunner

    @override
    def _decide(self) -> None:
        coordinator = self.decider
        self.leading.follow_election(coordinator)
        with PLANNER_TICK_SECONDS.time():
            actions = coordinator.tick(self.clock())
        writes = [each for each in actions if isinstance(each, WritePlacement)]
        firsts = [each for each in writes if self.runner.is_first(each)]
        if firsts:
            # Pods wait for first plans alone; every other write is still due at the next decision.
            others = [each for each in actions if not isinstance(each, WritePlacement)]
            actions = [*firsts, *others]
            self.inbox.wake()
        for action in actions:
            if self._stopping:
                return
            self.runner.run(action, coordinator)
        _count(coordinator, self.monotonic())


def _count(coordinator: Coordinator, monotonic_seconds: float) -> None:
    """Tell the metrics what there is."""
    counts = Counter(phase(run) for run in coordinator.registry.runs.values())
    for each in Phase:
        RUNS_BY_PHASE.labels(str(each)).set(counts[each])
    RUNS_OVER_BUDGET.clear()
    for namespace, number in coordinator.plans.intake.over_budget.items():
        RUNS_OVER_BUDGET.labels(namespace).set(number)
    learned = coordinator.plans.learned
    if coordinator.queues:
        age_seconds = coordinator.watchdog.queue_lease.age_seconds(monotonic_seconds)
        QUEUE_LEASE_AGE_SECONDS.set(age_seconds)
    HISTORIES.set(coordinator.histories.objects)
    HISTORIES_BYTES.set(coordinator.histories.json_bytes)
    LEARNED_SECONDS.labels("driver").set(learned.median_driver_seconds)
    LEARNED_SECONDS.labels("start").set(learned.median_start_seconds)
