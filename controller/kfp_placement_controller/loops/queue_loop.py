"""The loop of `queue`: lets the coordinator decide which runs start, and carries that out."""

from dataclasses import dataclass
from datetime import datetime

from typing_extensions import override

from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.loops.kueue_following import KueueFollowing
from kfp_placement_controller.metrics import (
    LONGEST_WAIT_SECONDS,
    QUEUE_DEMAND,
    QUEUE_QUOTA,
    QUEUE_TICK_SECONDS,
    RUNS_ADMITTED,
    RUNS_WAITING,
)
from kfp_placement_controller.queueing.actions import SteeringAction
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.queueing.verdicts import RUNS
from kfp_placement_engine.contract.run_queue import resources_of
from kfp_placement_engine.units.quantities import in_base_units
from kfp_placement_kube.lease import LeaderElection


@dataclass
class QueueLoop(DecisionLoop[QueueCoordinator]):
    """The one thread that calls the coordinator.

    Attributes:
        election: election for the Lease of `queue`; the coordinator writes only while it is ours.
        kueue: reader of Kueue's objects while a RunQueue asks for Kueue.
        runner: object that carries out the actions.
    """

    name = "queue"
    election: LeaderElection
    kueue: KueueFollowing
    runner: QueueActionRunner

    @override
    def _decide(self) -> None:
        self.decider.follow_election(self.election.epoch)
        self.kueue.follow(self.decider)
        now, began_at = self.clock(), self.monotonic()
        actions = self.decider.tick(now)
        if actions is None:
            # No decision was due, so there is nothing to measure.
            return
        QUEUE_TICK_SECONDS.observe(self.monotonic() - began_at)
        for action in actions:
            # Writing can take seconds; meanwhile another process may have begun to lead.
            if self._stopping or self.election.epoch != self.decider.epoch:
                return
            if self.runner.run(action) and isinstance(action, SteeringAction):
                self.decider.steering.refused(action)
        _count(self.decider, self.clock())


def _count(coordinator: QueueCoordinator, now: datetime) -> None:
    """Show the numbers of all queues in the metrics, and drop those of queues that are gone."""
    for each in (RUNS_WAITING, RUNS_ADMITTED, QUEUE_DEMAND, QUEUE_QUOTA, LONGEST_WAIT_SECONDS):
        each.clear()
    for key, counts in coordinator.publisher.counts.items():
        RUNS_WAITING.labels(*key).set(counts.waiting)
        RUNS_ADMITTED.labels(*key).set(counts.admitted)
        for name, amount in counts.used.items():
            QUEUE_DEMAND.labels(*key, name).set(in_base_units(name, amount))
    for queue in coordinator.queues:
        quota = queue.spec.quota
        for name, amount in resources_of(quota.resources).items():
            QUEUE_QUOTA.labels(*queue.key, name).set(in_base_units(name, amount))
        if quota.runs is not None:
            QUEUE_QUOTA.labels(*queue.key, RUNS).set(quota.runs)
    for namespace, seconds in coordinator.longest_waits(now).items():
        LONGEST_WAIT_SECONDS.labels(namespace).set(seconds)
