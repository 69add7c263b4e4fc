"""Start and end of following Kueue's objects, which are needed while a RunQueue asks for Kueue."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kfp_placement_controller.observed.kueue_quotas import KueueListing
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_kube.exceptions import AccessError, KubernetesError

_LOG = logging.getLogger(__name__)

LIST_SECONDS = 30.0
"""Pause between two full reads, as kopf misses objects that are deleted while it reconnects."""

RETRY_SECONDS = 5.0
"""Pause between two tries of a failed read."""

MAX_PROBLEM_CHARACTERS = 900
"""Longest text about a problem, in characters; a condition adds a few words."""


@dataclass
class KueueFollowing:
    """Reader of Kueue's objects while a RunQueue asks for Kueue; otherwise Kueue may be missing.

    Attributes:
        objects: objects of Kueue that the backend decides by.
        check: function that raises AccessError or KubernetesError if Kueue cannot be used.
        read: function that reads all of Kueue's objects; raises KubernetesError.
        monotonic: monotonic clock, in seconds.
        began: function called once the objects can be read, to follow them.
        ended: function called when no RunQueue asks for Kueue any more, or we do not lead.
    """

    objects: KueueObjects
    check: Callable[[], None]
    read: Callable[[], KueueListing]
    monotonic: Callable[[], float]
    began: Callable[[], None]
    ended: Callable[[], None]
    _follows: bool = False
    _next_at_seconds: float | None = None

    def follow(self, coordinator: QueueCoordinator) -> None:
        """Begin or stop following, and check our rights and read the objects from time to time.

        Rights may be taken away at any time, so they are checked before each list.
        """
        if coordinator.epoch is None or not coordinator.queues.ask_for_kueue:
            self.stop()
            return
        monotonic_seconds = self.monotonic()
        if self._next_at_seconds is not None and monotonic_seconds < self._next_at_seconds:
            return
        try:
            self.check()
            listing = self.read()
        except (AccessError, KubernetesError) as error:
            self._next_at_seconds = monotonic_seconds + RETRY_SECONDS
            problem = f"Kueue cannot be used: {error}"[:MAX_PROBLEM_CHARACTERS]
            if problem != self.objects.problem:
                _LOG.warning("%s", problem)
            self.objects.problem = problem
            coordinator.decide_soon()
            return
        self._next_at_seconds = monotonic_seconds + LIST_SECONDS
        self.objects.listed(listing)
        coordinator.decide_soon()
        if not self._follows:
            self._follows = True
            self.began()

    def stop(self) -> None:
        """Stop following."""
        self._next_at_seconds = None
        if self._follows:
            self._follows = False
            self.ended()
