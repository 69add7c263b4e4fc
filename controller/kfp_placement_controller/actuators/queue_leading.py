"""When the process `queue` begins to lead: with our objects as they are then."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.lease import LeaderElection

_LOG = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
"""Between two tries to lead."""

LIST_SECONDS = 30.0
"""Between two lists of our kinds: kopf does not report what is deleted while it reconnects."""


@dataclass
class QueueLeading:
    """Lets the coordinator lead while the Lease is ours, and our kinds be followed as long.

    Without having read all RunQueues it would take runs for runs without a queue.

    Attributes:
        election: for the Lease.
        runner: reads the existing RunQueues and RunRequests.
        clock: the time.
        began: is called when we begin to lead.
        ended: is called when we no longer lead.
    """

    election: LeaderElection
    runner: QueueActionRunner
    clock: Callable[[], datetime]
    began: Callable[[], None]
    ended: Callable[[], None]
    _not_before: datetime | None = None
    _listed_at: datetime | None = None

    def follow_election(self, coordinator: QueueCoordinator) -> None:
        """Begin or stop leading, as the election says now."""
        epoch, now = self.election.epoch, self.clock()
        if epoch == coordinator.epoch:
            if epoch is not None:
                self._list_again(coordinator, now)
            return
        if coordinator.epoch is not None:
            coordinator.follow()
            self.ended()
        if epoch is None or (self._not_before is not None and now < self._not_before):
            return
        self._not_before = now + timedelta(seconds=RETRY_SECONDS)
        try:
            queues, requests = self.runner.read_queues(), self.runner.read_requests()
        except KubernetesError as error:
            _LOG.warning("cannot lead yet: %s", error)
            return
        coordinator.lead(epoch, queues, requests)
        self._listed_at = now
        self.began()

    def still_leads(self, coordinator: QueueCoordinator) -> bool:
        """Whether the Lease is that by which the coordinator leads."""
        return coordinator.epoch is not None and self.election.epoch == coordinator.epoch

    def _list_again(self, coordinator: QueueCoordinator, now: datetime) -> None:
        if self._listed_at is not None and now - self._listed_at < timedelta(seconds=LIST_SECONDS):
            return
        self._listed_at = now
        try:
            coordinator.listed(self.runner.read_queues(), self.runner.read_requests())
        except KubernetesError as error:
            _LOG.warning("RunQueues and RunRequests are not listed: %s", error)
