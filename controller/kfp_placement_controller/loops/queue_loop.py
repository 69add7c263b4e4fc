"""The loop of `queue`: lets the coordinator decide which runs start, and carries that out."""

from collections.abc import Callable
from datetime import datetime

from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.actuators.queue_leading import QueueLeading
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.metrics import RUNS_WAITING
from kfp_placement_controller.queueing.coordinator import QueueCoordinator


class QueueLoop(DecisionLoop[QueueCoordinator]):
    """The one thread that calls the coordinator."""

    def __init__(
        self,
        coordinator: QueueCoordinator,
        inbox: Inbox[QueueCoordinator],
        leading: QueueLeading,
        runner: QueueActionRunner,
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
        super().__init__("queue", coordinator, inbox, clock)
        self._leading = leading
        self._runner = runner

    # `typing.override` came with Python 3.12.
    def _decide(self) -> None:  # type: ignore[explicit-override]
        self._leading.follow_election(self._decider)
        for action in self._decider.tick(self._clock()):
            if self._stopping.is_set():
                return
            self._runner.run(action)
        _count(self._decider)


def _count(coordinator: QueueCoordinator) -> None:
    """Tell the metrics how many runs wait."""
    RUNS_WAITING.clear()
    for namespace, number in coordinator.waiting().items():
        RUNS_WAITING.labels(namespace).set(number)
