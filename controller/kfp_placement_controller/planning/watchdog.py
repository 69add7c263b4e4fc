"""Watchdog over our other components: no pod and no run waits for one that is dead."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.liveness import (
    LeaseWatch,
    gates_finding,
    policy_finding,
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
    """Return the pods to delete, as they wait for a dead scheduler; their runs make them again.

    `schedulerName` cannot be changed, and admission gives new pods to the default scheduler while
    ours is not ready. Only pods that a run's object owns are touched: nobody would make others
    again.

    Args:
        pods: pods that ask for our scheduler.
        age_seconds: age of the last renewal of our scheduler's Lease, whoever holds it by now: one
            that is given back is taken over by the other replica, or by the same after a restart.
        policy: policy in force.
        now: the time.
        sources: kinds of runs, which say which run a pod belongs to.
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
        and sources.run_of(pod) is not None
        and pod.created_at is not None
        and now - pod.created_at > deadline
    ]


@dataclass
class Watchdog:
    """Watchdog that acts while our scheduler, or the process that admits runs, is dead.

    Attributes:
        retry_seconds: pause between two tries of the same write.
        sources: kinds of runs, which say which run a pod belongs to.
        may_gate: whether the planner may take gates off pods.
        policy_problem: reason why a part of the policy is not used; "" = all of it is.
        scheduler_lease: watch on the scheduler's Lease.
        queue_lease: watch on the Lease of the process that admits runs.
    """

    retry_seconds: float
    sources: RunSources
    may_gate: bool = True
    policy_problem: str = ""
    scheduler_lease: LeaseWatch = field(default_factory=LeaseWatch)
    queue_lease: LeaseWatch = field(default_factory=LeaseWatch)
    _published_at: float | None = None
    _deleted_at: dict[str, float] = field(default_factory=dict)
    _open_queues: dict[QueueKey, ObservedQueue] = field(default_factory=dict)
    _closed_at: dict[QueueKey, float] = field(default_factory=dict)

    def queue_changed(self, change: Change[ObservedQueue]) -> None:
        """Take in that a RunQueue is new, has changed or is gone."""
        key, queue = QueueKey(*change.key), change.new
        if queue is not None and queue.status.ready and not queue.holds_without_controller:
            self._open_queues[key] = queue
        else:
            self._open_queues.pop(key, None)

    def scheduler_due(
        self,
        policy: PlacementPolicySpec,
        status: PlacementPolicyStatus | None,
        pods: Iterable[ObservedPod],
        now: datetime,
        monotonic_seconds: float,
    ) -> Iterator[SayFindings | DeletePod]:
        """Yield the findings to publish in the policy now, and the pods to delete.

        Args:
            policy: policy in force.
            status: status of the policy as stored; None = it has none.
            pods: pods of runs that ask for our scheduler.
            now: the time.
            monotonic_seconds: the present moment.
        """
        age_seconds = self.scheduler_lease.age_seconds(monotonic_seconds)
        alive = scheduler_finding(self.scheduler_lease, policy, monotonic_seconds)
        gates = gates_finding(leads=True, installed=self.may_gate)
        valid = policy_finding(self.policy_problem)
        findings = tuple(each for each in (alive, gates, valid) if each is not None)
        if unpublished(findings, status) and self._may_retry(self._published_at, monotonic_seconds):
            self._published_at = monotonic_seconds
            yield SayFindings(findings)
        stranded = stranded_pods(pods, age_seconds, policy, now, self.sources)
        uids = {pod.uid for pod in stranded}
        self._deleted_at = {uid: at for uid, at in self._deleted_at.items() if uid in uids}
        for pod in stranded:
            if self._may_retry(self._deleted_at.get(pod.uid), monotonic_seconds):
                self._deleted_at[pod.uid] = monotonic_seconds
                yield DeletePod(pod)

    def queue_due(
        self, policy: PlacementPolicySpec, monotonic_seconds: float
    ) -> Iterator[CloseQueue]:
        """Yield the queues that would hold new runs while nobody could let these start.

        Args:
            policy: policy in force, which says when a Lease is too old.
            monotonic_seconds: the present moment.
        """
        if self.queue_lease.age_seconds(monotonic_seconds) <= policy.scheduler_stale_after_seconds:
            self._closed_at.clear()
            return
        for key, queue in self._open_queues.items():
            if self._may_retry(self._closed_at.get(key), monotonic_seconds):
                self._closed_at[key] = monotonic_seconds
                yield CloseQueue(queue)

    def _may_retry(self, last_at: float | None, monotonic_seconds: float) -> bool:
        return not lasts(self.retry_seconds, last_at, monotonic_seconds)
