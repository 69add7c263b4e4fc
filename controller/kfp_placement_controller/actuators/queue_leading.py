"""When the process `queue` begins to lead: with our objects as they are then."""

import logging
from collections.abc import Callable
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


class QueueLeading:
    """Lets the coordinator lead while the Lease is ours, and our kinds be followed as long.

    Without having read all RunQueues it would take runs for runs without a queue.
    """

    def __init__(
        self,
        election: LeaderElection,
        runner: QueueActionRunner,
        clock: Callable[[], datetime],
        *,
        began: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """This does not lead yet.

        Args:
            election: for the Lease.
            runner: reads the existing RunQueues and RunRequests.
            clock: the time.
            began: is called when we begin to lead.
            ended: is called when we no longer lead.
        """
        self._election = election
        self._runner = runner
        self._clock = clock
        self._began = began
        self._ended = ended
        self._not_before: datetime | None = None
        self._listed_at: datetime | None = None

    def follow_election(self, coordinator: QueueCoordinator) -> None:
        """Begin or stop leading, as the election says now."""
        epoch, now = self._election.epoch, self._clock()
        if epoch == coordinator.epoch:
            if epoch is not None:
                self._list_again(coordinator, now)
            return
        if coordinator.epoch is not None:
            coordinator.follow()
            self._ended()
        if epoch is None or (self._not_before is not None and now < self._not_before):
            return
        self._not_before = now + timedelta(seconds=RETRY_SECONDS)
        try:
            queues, requests = self._runner.read_queues(), self._runner.read_requests()
        except KubernetesError as error:
            _LOG.warning("cannot lead yet: %s", error)
            return
        coordinator.lead(epoch, queues, requests)
        self._listed_at = now
        self._began()

    def still_leads(self, coordinator: QueueCoordinator) -> bool:
        """Whether the Lease is that by which the coordinator leads."""
        return coordinator.epoch is not None and self._election.epoch == coordinator.epoch

    def _list_again(self, coordinator: QueueCoordinator, now: datetime) -> None:
        if self._listed_at is not None and now - self._listed_at < timedelta(seconds=LIST_SECONDS):
            return
        self._listed_at = now
        try:
            coordinator.listed(self._runner.read_queues(), self._runner.read_requests())
        except KubernetesError as error:
            _LOG.warning("RunQueues and RunRequests are not listed: %s", error)
