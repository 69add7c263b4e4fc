"""While a RunQueue asks for Kueue: reads Kueue's objects, and lets them be followed."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.observed.kueue_quotas import KueueListing
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_kube.exceptions import AccessError, KubernetesError

_LOG = logging.getLogger(__name__)

LIST_SECONDS = 30.0
"""Between two lists: kopf does not report what is deleted while it reconnects."""

RETRY_SECONDS = 5.0
"""Between two tries to list."""

MAX_PROBLEM_CHARACTERS = 900
"""Of what is wrong; a condition says it with a few words before it."""


@dataclass
class KueueFollowing:
    """Nothing of Kueue has to be there while no RunQueue asks for it.

    Attributes:
        objects: Kueue's, which the backend decides by.
        check: whether Kueue is there and may be used; raises what read does, and AccessError.
        read: all of Kueue's objects as they are now.
        clock: the time.
        began: is called once they can be read, for them to be followed.
        ended: is called when nobody asks for Kueue any more, or we do not lead.
    """

    objects: KueueObjects
    check: Callable[[], None]
    read: Callable[[], KueueListing]
    clock: Callable[[], datetime]
    began: Callable[[], None]
    ended: Callable[[], None]
    _follows: bool = False
    _next_at: datetime | None = None
    _problem: str = ""

    def follow(self, coordinator: QueueCoordinator) -> None:
        """Begin or stop following, and check and read from time to time.

        Rights may be taken away at any time, so they are checked each time.
        """
        if coordinator.epoch is None or not coordinator.queues.ask_for_kueue:
            self.stop()
            return
        now = self.clock()
        if self._next_at is not None and now < self._next_at:
            return
        try:
            self.check()
            listing = self.read()
        except (AccessError, KubernetesError) as error:
            self._next_at = now + timedelta(seconds=RETRY_SECONDS)
            self._not_listed(coordinator, str(error))
            return
        self._problem = ""
        self._next_at = now + timedelta(seconds=LIST_SECONDS)
        self.objects.listed(listing)
        coordinator.decide_soon()
        if not self._follows:
            self._follows = True
            self.began()

    def stop(self) -> None:
        """Follow nothing."""
        self._next_at = None
        if self._follows:
            self._follows = False
            self.ended()

    def _not_listed(self, coordinator: QueueCoordinator, error: str) -> None:
        problem = f"Kueue cannot be used: {error}"[:MAX_PROBLEM_CHARACTERS]
        if problem != self._problem:
            _LOG.warning("%s", problem)
        self._problem = problem
        self.objects.not_listed(problem)
        coordinator.decide_soon()
