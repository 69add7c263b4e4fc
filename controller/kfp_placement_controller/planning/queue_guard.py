"""What the planner does when nobody admits runs: it says that no more may be held."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.liveness import LeaseWatch
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.planning.actions import CloseQueue
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change


@dataclass
class QueueGuard:
    """Looks after the process that admits runs.

    Attributes:
        retry_seconds: between two tries of the same.
        lease: of the queue.
    """

    retry_seconds: float
    lease: LeaseWatch = field(default_factory=LeaseWatch)
    _open: dict[QueueKey, ObservedQueue] = field(default_factory=dict)
    _closed_at: dict[QueueKey, datetime] = field(default_factory=dict)

    def queue_changed(self, change: Change[ObservedQueue]) -> None:
        """A RunQueue is new, has changed or is gone."""
        key, queue = QueueKey(*change.key), change.new
        if queue is not None and queue.status.ready and not queue.holds_without_controller:
            self._open[key] = queue
        else:
            self._open.pop(key, None)

    def due(self, policy: PlacementPolicySpec, now: datetime) -> Iterator[CloseQueue]:
        """Queues that would hold new runs, while nobody could let them begin.

        Args:
            policy: says when a Lease is too old.
            now: the time.
        """
        if self.lease.age_seconds(now) <= policy.scheduler_stale_after_seconds:
            self._closed_at.clear()
            return
        for key in self._open:
            if not lasts(timedelta(seconds=self.retry_seconds), self._closed_at.get(key), now):
                self._closed_at[key] = now
                yield CloseQueue(key)
