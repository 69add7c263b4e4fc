"""What to do when one of our components is dead, so that no pod and no run waits for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.liveness import (
    LeaseWatch,
    gates_finding,
    scheduler_finding,
    unpublished,
)
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import CloseQueue, DeletePod, SayFindings
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.policy import PlacementPolicySpec, PlacementPolicyStatus
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.change import Change


def stranded_pods(
    pods: Iterable[ObservedPod],
    age_seconds: float,
    policy: PlacementPolicySpec,
    now: datetime,
    sources: RunSources,
) -> list[ObservedPod]:
    """Pods that wait for a dead scheduler and must be deleted: their runs make them again.

    `schedulerName` cannot be changed, and admission gives new pods to the default scheduler while
    ours is not ready. Only pods that a run's object owns are touched: nobody would make others
    again.

    Args:
        pods: any that ask for our scheduler.
        age_seconds: since our scheduler's Lease was renewed, whoever has it by now: one that is
            given back is taken over by the other replica, or by the same after its restart.
        policy: in force.
        now: the time.
        sources: say which run a pod is of.
    """
    if age_seconds <= policy.scheduler_stale_after_seconds:
        return []
    names = frozenset(policy.scheduler_names)
    deadline = timedelta(seconds=policy.unbound_deadline_seconds)
    return [
        pod
        for pod in pods
        if pod.scheduler_name in names
        and not pod.node_name
        and not pod.ended
        and not pod.deleting
        and not pod.gates
        and (run := sources.run_of(pod)) is not None
        and run.uid
        and pod.created_at is not None
        and now - pod.created_at > deadline
    ]


@dataclass
class Guard:
    """Says what is alive, and frees pods of what is not.

    Attributes:
        retry_seconds: between two tries of the same.
        sources: say which run a pod is of.
        may_gate: whether we may take gates off.
        lease: of our scheduler.
    """

    retry_seconds: float
    sources: RunSources
    may_gate: bool = True
    lease: LeaseWatch = field(default_factory=LeaseWatch)
    _published_at: datetime | None = None
    _deleted_at: dict[str, datetime] = field(default_factory=dict)

    def due(
        self,
        policy: PlacementPolicySpec,
        status: PlacementPolicyStatus | None,
        pods: Iterable[ObservedPod],
        now: datetime,
    ) -> Iterator[SayFindings | DeletePod]:
        """What must be published and done now; of the planner that leads.

        Args:
            policy: in force.
            status: what the policy's status says.
            pods: of runs, those that ask for our scheduler.
            now: the time.
        """
        age = self.lease.age_seconds(now)
        alive = scheduler_finding(self.lease, policy, now)
        gates = gates_finding(leads=True, installed=self.may_gate)
        findings = tuple(each for each in (alive, gates) if each is not None)
        if unpublished(findings, status) and self._may(self._published_at, now):
            self._published_at = now
            yield SayFindings(findings)
        stranded = stranded_pods(pods, age, policy, now, self.sources)
        uids = {pod.uid for pod in stranded}
        self._deleted_at = {uid: at for uid, at in self._deleted_at.items() if uid in uids}
        for pod in stranded:
            if self._may(self._deleted_at.get(pod.uid), now):
                self._deleted_at[pod.uid] = now
                yield DeletePod(pod)

    def _may(self, last: datetime | None, now: datetime) -> bool:
        return not lasts(self.retry_seconds, last, now)


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
            if not lasts(self.retry_seconds, self._closed_at.get(key), now):
                self._closed_at[key] = now
                yield CloseQueue(key)
