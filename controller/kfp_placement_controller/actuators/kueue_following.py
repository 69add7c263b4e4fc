"""While a RunQueue asks for Kueue: reads Kueue's objects, and lets them be followed."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from kfp_placement_controller.observed.kueue_quotas import KueueListing
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError

_LOG = logging.getLogger(__name__)

LIST_SECONDS = 30.0
"""Between two lists: kopf does not report what is deleted while it reconnects."""

RETRY_SECONDS = 5.0
"""Between two tries to list."""


class KueueFollowing:
    """Nothing of Kueue has to be there while no RunQueue asks for it."""

    def __init__(
        self,
        read: Callable[[], KueueListing],
        clock: Callable[[], datetime],
        *,
        began: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """Nothing is followed yet.

        Args:
            read: all of Kueue's objects as they are now.
            clock: the time.
            began: is called once they can be read, for them to be followed.
            ended: is called when nobody asks for Kueue any more, or we do not lead.
        """
        self._read = read
        self._clock = clock
        self._began = began
        self._ended = ended
        self._follows = False
        self._next_at: datetime | None = None

    def follow(self, coordinator: QueueCoordinator) -> None:
        """Begin or stop following, and read from time to time."""
        if coordinator.epoch is None or not coordinator.queues.ask_for_kueue:
            self.stop()
            return
        now = self._clock()
        if self._next_at is not None and now < self._next_at:
            return
        try:
            listing = self._read()
        except KubernetesError as error:
            self._next_at = now + timedelta(seconds=RETRY_SECONDS)
            _LOG.warning("Kueue's objects are not listed: %s", error)
            problem = _problem(error)
            coordinator.kueue_changed(lambda objects: objects.not_listed(problem))
            return
        self._next_at = now + timedelta(seconds=LIST_SECONDS)
        coordinator.kueue_changed(lambda objects: objects.listed(listing))
        if not self._follows:
            self._follows = True
            self._began()

    def stop(self) -> None:
        """Follow nothing."""
        self._next_at = None
        if self._follows:
            self._follows = False
            self._ended()


def _problem(error: KubernetesError) -> str:
    if isinstance(error, NotFoundError):
        return "Kueue's kinds are not installed in this cluster"
    return f"Kueue's objects cannot be read: {error}"[:500]
