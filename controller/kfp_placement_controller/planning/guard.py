"""What to do when a part of ours is dead, so that no pod of anybody waits for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.kube.pods import ObservedPod
from kfp_placement_controller.kube.policies import Finding
from kfp_placement_controller.planning.actions import DeletePod, SayFindings
from kfp_placement_engine.contract.resources_policy import (
    PlacementPolicySpec,
    PlacementPolicyStatus,
)

SCHEDULER_READY = "SchedulerReady"
GATES_READY = "GatesReady"


@dataclass
class LeaseWatch:
    """How old a Lease of others is, by our own clock: since it was last seen to change.

    The holder's clock may be off by minutes; a Lease that has not changed for long is stale.
    """

    _seen: object = None
    _changed_at: datetime | None = None

    def observe(self, renewed: object, now: datetime) -> None:
        """What the Lease says of its renewal now; None = there is none, or nobody holds it."""
        if renewed is None:
            self._seen, self._changed_at = None, None
        elif renewed != self._seen:
            self._seen, self._changed_at = renewed, now

    def age_seconds(self, now: datetime) -> float | None:
        """Seconds since it was seen to change; None = nobody holds it."""
        return None if self._changed_at is None else (now - self._changed_at).total_seconds()


def scheduler_finding(age_seconds: float | None, policy: PlacementPolicySpec) -> Finding:
    """Whether marked pods may be given to our scheduler."""
    limit = policy.scheduler_stale_after_seconds
    if age_seconds is None:
        return _not_ready("NoLease", "nobody holds the scheduler's Lease")
    if age_seconds > limit:
        return _not_ready("LeaseStale", f"the scheduler has not renewed its Lease for {limit:g} s")
    return Finding(SCHEDULER_READY, True, "LeaseFresh", "the scheduler is alive", "schedulerReady")


def gates_finding(*, ready: bool) -> Finding:
    """Whether new pods may be gated; only a planner that leads and is synced says that they may."""
    if ready:
        return Finding(GATES_READY, True, "PlannerLeads", "a planner opens gates", "gatesReady")
    return Finding(GATES_READY, False, "NoPlanner", "no planner opens gates", "gatesReady")


def stranded_pods(
    pods: Iterable[ObservedPod],
    age_seconds: float | None,
    policy: PlacementPolicySpec,
    now: datetime,
) -> list[ObservedPod]:
    """Pods that wait for a dead scheduler and are to be deleted: Argo makes them again.

    `schedulerName` cannot be changed, and admission gives new pods to the default scheduler while
    ours is not ready. Only pods that a Workflow owns are touched; nobody would make others again.

    Args:
        pods: any.
        age_seconds: of our scheduler's Lease; None = nobody holds it.
        policy: in force.
        now: the time.
    """
    if age_seconds is not None and age_seconds <= policy.scheduler_stale_after_seconds:
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
        and pod.workflow_uid
        and pod.scheduler_mark
        and pod.created_at is not None
        and now - pod.created_at > deadline
    ]


def _not_ready(reason: str, message: str) -> Finding:
    return Finding(SCHEDULER_READY, False, reason, message, "schedulerReady")


@dataclass
class Guard:
    """Says what is alive, and frees pods of what is not.

    Attributes:
        retry_seconds: between two tries of the same.
        lease: of our scheduler.
    """

    retry_seconds: float
    lease: LeaseWatch = field(default_factory=LeaseWatch)
    _said_at: datetime | None = None
    _deleted_at: dict[str, datetime] = field(default_factory=dict)

    def due(
        self,
        policy: PlacementPolicySpec,
        status: PlacementPolicyStatus,
        pods: Iterable[ObservedPod],
        now: datetime,
    ) -> list[SayFindings | DeletePod]:
        """What is to be said and done now; of the planner that leads.

        Args:
            policy: in force.
            status: what the policy's status says.
            pods: of Workflows.
            now: the time.
        """
        age = self.lease.age_seconds(now)
        findings = (scheduler_finding(age, policy), gates_finding(ready=True))
        found: list[SayFindings | DeletePod] = []
        said = {SCHEDULER_READY: status.scheduler_ready, GATES_READY: status.gates_ready}
        differs = any(said[each.condition] is not each.holds for each in findings)
        if differs and self._may(self._said_at, now):
            self._said_at = now
            found.append(SayFindings(findings))
        stranded = stranded_pods(pods, age, policy, now)
        uids = {pod.uid for pod in stranded}
        self._deleted_at = {uid: at for uid, at in self._deleted_at.items() if uid in uids}
        for pod in stranded:
            if self._may(self._deleted_at.get(pod.uid), now):
                self._deleted_at[pod.uid] = now
                found.append(DeletePod(pod))
        return found

    def _may(self, last: datetime | None, now: datetime) -> bool:
        return last is None or now - last >= timedelta(seconds=self.retry_seconds)
