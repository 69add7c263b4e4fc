"""Workloads of Kueue that stand for runs, slimmed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.kinds import RUN_REQUESTS
from kfp_placement_controller.observed.limited_fields import MAX_LISTED, entries, limited_text
from kfp_placement_engine.contract.quota_units import QuotaUnits
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, mapping_or_empty
from kfp_placement_engine.units.resources import is_extended
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import JsonObject

MAX_READ_POD_SETS = 18
"""Limit of podSets that are read; no Workload of Kueue has more."""

_RESET_FROM_REJECTED = "Previously: Rejected"
"""End of the message of a rejected check that Kueue has reset."""

_COUNTED_TOO = ("initContainers", "overhead", "resources")
"""Fields of a pod's spec that take quota in addition to its containers."""


@dataclass(frozen=True, slots=True)
class KueueCondition:
    """A condition of one of Kueue's objects.

    Attributes:
        holds: whether the condition is true.
        reason: reason of its state, as one word.
        message: reason of its state, for people.
    """

    holds: bool
    reason: str
    message: str


@dataclass(frozen=True)
class ObservedWorkload:
    """A Workload that a RunRequest owns.

    Attributes:
        namespace: namespace of the object.
        name: name of the object.
        uid: uid of the object.
        version: resource version of the object; each write names it.
        owner_uid: uid of the RunRequest.
        created_at: creation time; None = the object does not give it.
        local_queue: name of the LocalQueue in which it waits.
        priority: priority by which Kueue orders Workloads; 0 if it has none.
        is_active: whether it is active; Kueue does not admit an inactive Workload.
        pod_sets: quota that it reserves, one item for each podSet; None = they cannot be read.
        reclaimed: pods whose quota it has given back, by podSet.
        conditions: conditions of its status, by type.
        checks: states of its AdmissionChecks, by name.
        rejected_checks: names of the checks that are rejected, or were before it was evicted.
        flavors: names of the ResourceFlavors that Kueue has assigned to it.
    """

    namespace: str
    name: str
    uid: str
    version: str
    owner_uid: str
    created_at: datetime | None
    local_queue: str
    priority: int
    is_active: bool
    pod_sets: tuple[QuotaUnits, ...] | None
    reclaimed: Mapping[str, int]
    conditions: Mapping[str, KueueCondition]
    checks: Mapping[str, str]
    rejected_checks: frozenset[str]
    flavors: tuple[str, ...]

    def is_(self, condition: str) -> bool:
        """Return whether a condition of the Workload is true."""
        current = self.conditions.get(condition)
        return current is not None and current.holds

    @property
    def has_reservation(self) -> bool:
        """Return whether Kueue has reserved quota for the Workload."""
        return self.is_("QuotaReserved")

    @property
    def is_finished(self) -> bool:
        """Return whether the Workload is finished, as Kueue sees it."""
        return self.is_("Finished")

    @property
    def is_evicted(self) -> bool:
        """Return whether the Workload is evicted and must still give back its quota."""
        return self.is_("Evicted") and self.has_reservation and not self.is_finished

    @property
    def is_admitted(self) -> bool:
        """Return whether the Workload is admitted, so that its run may start."""
        return self.is_("Admitted") and self.has_reservation and not self.is_("Evicted")


def observe_workload(raw: JsonObject) -> ObservedWorkload | None:
    """Slim a Workload as the API server prints it; None = no RunRequest owns it.

    Raises:
        InputError: not even its metadata can be read.
    """
    fields = Fields(raw, Place("Workload"))
    metadata = fields.flat("metadata")
    owner_uid = _owner_uid(metadata)
    if not owner_uid:
        return None
    spec, status = fields.flat("spec"), fields.flat("status")
    return ObservedWorkload(
        namespace=metadata.name("namespace"),
        name=metadata.name("name"),
        uid=metadata.text("uid"),
        version=metadata.text("resourceVersion"),
        owner_uid=owner_uid,
        created_at=read_moment(metadata.get("creationTimestamp")),
        local_queue=limited_text(spec.get("queueName")),
        priority=_number_or_zero(spec.get("priority")),
        is_active=spec.get("active") is not False,
        pod_sets=_pod_sets(spec),
        reclaimed={
            limited_text(each.get("name")): _number_or_zero(each.get("count"))
            for each in entries(status, "reclaimablePods")
        },
        conditions=conditions_of(status),
        checks={
            limited_text(each.get("name")): limited_text(each.get("state"))
            for each in entries(status, "admissionChecks")
        },
        rejected_checks=frozenset(
            limited_text(each.get("name"))
            for each in entries(status, "admissionChecks")
            if _was_rejected(each)
        ),
        flavors=_flavors(status),
    )


def conditions_of(status: Fields) -> dict[str, KueueCondition]:
    """Read the conditions of a status, by type."""
    return {
        limited_text(each.get("type")): KueueCondition(
            each.get("status") == "True",
            limited_text(each.get("reason")),
            limited_text(each.get("message")),
        )
        for each in entries(status, "conditions")
    }


def _was_rejected(check: Fields) -> bool:
    """Return whether a check is rejected, or was until Kueue evicted the Workload and reset it."""
    state, message = check.get("state"), limited_text(check.get("message"))
    return state == "Rejected" or (state == "Pending" and message.endswith(_RESET_FROM_REJECTED))


def _owner_uid(metadata: Fields) -> str:
    for owner in entries(metadata, "ownerReferences"):
        is_ours = (owner.get("apiVersion"), owner.get("kind")) == (
            RUN_REQUESTS.api_version,
            RUN_REQUESTS.kind,
        )
        if is_ours and owner.get("controller") is True:
            return limited_text(owner.get("uid"))
    return ""


def _pod_sets(spec: Fields) -> tuple[QuotaUnits, ...] | None:
    """Return the quota of each podSet; None = the podSets are not in the form that we write."""
    try:
        pod_sets = [*spec.each("podSets")]
        if len(pod_sets) > MAX_READ_POD_SETS:
            return None
        return tuple(_units(each) for each in pod_sets)
    except InputError:
        return None


def _units(pod_set: Fields) -> QuotaUnits:
    pod = pod_set.flat("template").flat("spec")
    containers = [*pod.each("containers")]
    if len(containers) != 1 or any(key in pod for key in _COUNTED_TOO):
        raise pod_set.error("must have one container and nothing else that takes resources")
    requests = containers[0].flat("resources").resources("requests")
    # The API server sorts by name; we put first the extended resource that the podSet is for.
    ordered = sorted(requests.items(), key=lambda each: (not is_extended(each[0]), each[0]))
    return QuotaUnits(pod_set.name("name"), pod_set.count("count"), dict(ordered))


def _flavors(status: Fields) -> tuple[str, ...]:
    admission = Fields(mapping_or_empty(status.get("admission")), status.place)
    assignments = entries(admission, "podSetAssignments")
    names = {
        limited_text(name): None for each in assignments for name in _values(each.get("flavors"))
    }
    return tuple(names)


def _values(value: object) -> Iterable[object]:
    return [*value.values()][:MAX_LISTED] if isinstance(value, Mapping) else ()


def _number_or_zero(value: object) -> int:
    """Read a whole number; 0 = the value is not a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
