"""The loop of `plan`: lets the coordinator decide, and carries that out."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from kfp_placement_controller.actuators.leading import Leading
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.metrics import (
    HISTORIES,
    HISTORIES_BYTES,
    LEARNED_SECONDS,
    PLANNER_TICK_SECONDS,
    QUEUE_LEASE_AGE_SECONDS,
    RUNS,
)
from kfp_placement_controller.planning.conditions import phase
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_engine.contract.placement import Phase


class PlannerLoop(DecisionLoop[Coordinator]):
    """The one thread that calls the coordinator."""

    def __init__(
        self,
        coordinator: Coordinator,
        inbox: Inbox[Coordinator],
        leading: Leading,
        runner: ActionRunner,
        clock: Callable[[], datetime],
    ) -> None:
        """Nothing is done yet.

        Args:
            coordinator: decides.
            inbox: the messages for it.
            leading: says when it leads.
            runner: carries out what it has decided.
            clock: the time.
        """
        super().__init__("planner", coordinator, inbox, clock)
        self._leading = leading
        self._runner = runner

    # `typing.override` came with Python 3.12.
    def _decide(self) -> None:  # type: ignore[explicit-override]
        coordinator = self._decider
        self._leading.follow_election(coordinator)
        with PLANNER_TICK_SECONDS.time():
            actions = coordinator.tick(self._clock())
        for action in actions:
            if self._stopping.is_set():
                return
            self._runner.run(action, coordinator)
        _count(coordinator, self._clock())


def _count(coordinator: Coordinator, now: datetime) -> None:
    """Tell the metrics what there is."""
    counts = Counter(phase(run) for run in coordinator.registry.runs.values())
    for each in Phase:
        RUNS.labels(str(each)).set(counts[each])
    learned = coordinator.learned
    if coordinator.queues:
        age_seconds = coordinator.queue_guard.lease.age_seconds(now)
        QUEUE_LEASE_AGE_SECONDS.set(age_seconds)
    HISTORIES.set(coordinator.histories.objects)
    HISTORIES_BYTES.set(coordinator.histories.json_bytes)
    LEARNED_SECONDS.labels("driver").set(learned.driver.value or 0.0)
    LEARNED_SECONDS.labels("start").set(learned.start.value or 0.0)
