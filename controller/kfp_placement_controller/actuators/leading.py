"""Beginning and end of leading in the process `plan`, and the epoch that it leads with."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.lease import LeaderElection

_LOG = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
"""Pause between two tries to lead, each of which lists plans; as the election's for its Lease."""


@dataclass
class Leading:
    """Lets the coordinator lead while the Lease is ours.

    A higher epoch is never overwritten. That of a Lease which somebody has deleted counts from
    zero, while plans of earlier leaders are still there: then ours is raised above theirs first.

    Attributes:
        election: election for the planner's Lease.
        runner: reader of the existing plans.
        clock: time of day.
        monotonic: count of seconds that nobody sets.
    """

    election: LeaderElection
    runner: ActionRunner
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    _led: int | None = None
    _tried_at: float | None = None

    def follow_election(self, coordinator: Coordinator) -> None:
        """Begin or stop leading, as the election says now."""
        epoch, monotonic_seconds = self.election.epoch, self.monotonic()
        if epoch == coordinator.epoch:
            return
        coordinator.follow()
        if epoch is None or lasts(RETRY_SECONDS, self._tried_at, monotonic_seconds):
            return
        self._tried_at = monotonic_seconds
        try:
            placements = self.runner.read_placements()
        except KubernetesError as error:
            _LOG.warning("cannot lead yet: %s", error)
            return
        highest = self.runner.highest_epoch
        if highest > epoch or (highest == epoch and epoch != self._led):
            _LOG.warning("plans of epoch %d are there, ours is %d: it is raised", highest, epoch)
            self.election.raise_epoch(highest + 1)
            return
        self._led = epoch
        coordinator.lead(epoch, placements, self.clock())
