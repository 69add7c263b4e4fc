"""Liveness of our scheduler and of the planner, read from their Leases and shown in the policy."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_engine.contract.policy import PlacementPolicySpec, PlacementPolicyStatus
from kfp_placement_engine.contract.policy_status import PolicyFinding
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject

SCHEDULER_READY = "SchedulerReady"
"""Condition of the PlacementPolicy: marked pods may be given to our scheduler."""

GATES_READY = "GatesReady"
"""Condition of the PlacementPolicy: new pods may be gated."""

POLICY_VALID = "Valid"
"""Condition of the PlacementPolicy: all of it is used."""

_LEASE = Place("lease")


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A Lease that somebody holds.

    Attributes:
        holder: identity of the process that holds it.
        renewed_at: last renewal, by the holder's clock; None = the Lease has no such time.
    """

    holder: str
    renewed_at: datetime | None


def observe_held_lease(raw: JsonObject) -> HeldLease | None:
    """Slim a Lease; None = nobody holds it.

    Raises:
        InputError: the Lease is malformed.
    """
    spec = Fields(raw, _LEASE).flat("spec")
    holder, renewed_at = spec.text("holderIdentity"), spec.moment("renewTime")
    return HeldLease(holder, renewed_at) if holder else None


def renewed_at(raw: JsonObject) -> datetime | None:
    """Return the last renewal of a Lease, even if its holder has given it back since.

    Returns:
        Time of the renewal; None = the Lease has no such time.

    Raises:
        InputError: the Lease is malformed.
    """
    return Fields(raw, _LEASE).flat("spec").moment("renewTime")


@dataclass
class LeaseWatch:
    """Age of another process' Lease, in monotonic seconds since its last renewal that we saw.

    A change of the holder or of the time of renewal counts as a renewal. The time itself is not
    used: the clocks of both machines may differ by minutes, or may be set.

    Attributes:
        lease: the Lease as last seen; None = nobody holds it.
        has_renewed: whether we saw its holder renew it. Until then the holder may be dead.
    """

    lease: HeldLease | None = None
    has_renewed: bool = False
    _seen_at: float | None = None

    def observe(self, lease: HeldLease | None, monotonic_seconds: float) -> None:
        """Note the Lease as it is, or None if nobody holds it."""
        if lease is None:
            # The next holder has not renewed it yet. The age still counts from the last renewal.
            self.has_renewed = False
        elif lease != self.lease:
            self.has_renewed, self._seen_at = self.lease is not None, monotonic_seconds
        self.lease = lease

    def restart(self) -> None:
        """Count the age from the next look on, and wait for a renewal.

        For a process that begins to lead: without an API server nobody can lead, nor renew this
        Lease.
        """
        self.has_renewed, self._seen_at = False, None

    def age_seconds(self, monotonic_seconds: float) -> float:
        """Return the seconds since the last renewal, even if the Lease is given back or deleted.

        The age of a Lease that we never saw begins with the first call: its holder may be starting.
        """
        if self._seen_at is None:
            self._seen_at = monotonic_seconds
        return monotonic_seconds - self._seen_at


def unpublished(
    findings: Iterable[PolicyFinding], status: PlacementPolicyStatus | None
) -> list[PolicyFinding]:
    """Return the findings that the policy's status does not show yet.

    Args:
        findings: present findings.
        status: status of the policy; None = it has none yet.
    """
    published = status or PlacementPolicyStatus()
    flags = {"schedulerReady": published.scheduler_ready, "gatesReady": published.gates_ready}
    by_type = {each.type: each for each in published.conditions}
    return [
        each
        for each in findings
        if flags.get(each.flag, each.holds) is not each.holds
        or (stored := by_type.get(each.condition)) is None
        or not each.is_published_as(stored.status, stored.reason, stored.message)
    ]


def scheduler_finding(
    watch: LeaseWatch, policy: PlacementPolicySpec, monotonic_seconds: float
) -> PolicyFinding | None:
    """Find whether marked pods may be given to our scheduler; None = that is not known yet.

    If nobody holds the Lease they may not: new pods need not wait for the next holder.

    Args:
        watch: watch of the scheduler's Lease.
        policy: policy in force.
        monotonic_seconds: the present moment.
    """
    age_seconds, limit = watch.age_seconds(monotonic_seconds), policy.scheduler_stale_after_seconds
    if watch.lease is None:
        return _not_ready("NoLease", "nobody holds the scheduler's Lease")
    if age_seconds > limit:
        return _not_ready("LeaseStale", f"the scheduler has not renewed its Lease for {limit:g} s")
    if not watch.has_renewed:
        return None
    return PolicyFinding(
        SCHEDULER_READY, True, "LeaseFresh", "the scheduler is alive", "schedulerReady"
    )


def gates_finding(*, leads: bool, installed: bool = True) -> PolicyFinding:
    """Find whether new pods may be gated: a planner must lead and be allowed to open gates.

    Args:
        leads: whether a planner leads.
        installed: whether that planner is allowed to open gates.
    """
    if not leads:
        return _no_gates("NoPlanner", "no planner leads, so nobody would open gates")
    if not installed:
        return _no_gates("NotInstalled", "a planner leads; features/gates is not installed")
    return PolicyFinding(GATES_READY, True, "PlannerLeads", "a planner opens gates", "gatesReady")


def policy_finding(problem: str) -> PolicyFinding:
    """Find whether all of the policy is used.

    Args:
        problem: reason why a part of it is not; "" = all of it is.
    """
    if problem:
        message = f"a part of it is not used: {problem}"
        return PolicyFinding(POLICY_VALID, False, "Misconfigured", message)
    return PolicyFinding(POLICY_VALID, True, "Valid", "the policy is as it is written")


def _no_gates(reason: str, message: str) -> PolicyFinding:
    return PolicyFinding(GATES_READY, False, reason, message, "gatesReady")


def _not_ready(reason: str, message: str) -> PolicyFinding:
    return PolicyFinding(SCHEDULER_READY, False, reason, message, "schedulerReady")
