"""Kueue's Workloads of runs, slimmed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_controller.kinds import RUN_REQUESTS
from kfp_placement_controller.observed.kueue_fields import (
    MAX_LISTED,
    KueueCondition,
    conditions_of,
    entries,
    short_text,
    whole_number,
)
from kfp_placement_engine.contract.quota_units import QuotaUnits
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.resources import is_extended
from kfp_placement_engine.units.times import read_moment

MAX_POD_SETS = 18
"""Kueue has no Workload with more."""

_RESET_FROM_REJECTED = "Previously: Rejected"
"""How Kueue ends the message of a check that it has reset."""

_COUNTED_TOO = ("initContainers", "overhead", "resources")
"""What Kueue counts of a pod beside its containers."""


@dataclass(frozen=True)
class ObservedWorkload:
    """A Workload that a RunRequest owns.

    Attributes:
        namespace, name: of the object.
        uid: of the object.
        version: of the object; a write names it.
        owner_uid: of the RunRequest.
        created_at: when it was made; None = nobody says.
        local_queue: that it waits in.
        priority: as Kueue orders it; 0 if it has none.
        is_active: whether nobody has stopped it.
        pod_sets: units of what it reserves; None = they cannot be read.
        reclaimed: units that it has given back, by podSet.
        conditions: by type.
        checks: states of its AdmissionChecks, by name.
        rejected_checks: names of those that were rejected, before or since it was evicted for that.
        flavors: names of the ResourceFlavors that it was assigned.
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
        """Whether a condition is there and holds."""
        found = self.conditions.get(condition)
        return found is not None and found.holds

    @property
    def has_reservation(self) -> bool:
        """Whether quota is reserved for it."""
        return self.is_("QuotaReserved")

    @property
    def is_finished(self) -> bool:
        """Whether it is over for Kueue."""
        return self.is_("Finished")

    @property
    def is_evicted(self) -> bool:
        """Whether it must give back the quota that is still reserved for it."""
        return self.is_("Evicted") and self.has_reservation and not self.is_finished

    @property
    def is_admitted(self) -> bool:
        """Whether its run may run."""
        return self.is_("Admitted") and self.has_reservation and not self.is_("Evicted")


def observe_workload(raw: Mapping[str, Any]) -> ObservedWorkload | None:
    """A Workload as the API server prints it; None = no RunRequest owns it.

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
        local_queue=short_text(spec.get("queueName")),
        priority=whole_number(spec.get("priority")),
        is_active=spec.get("active") is not False,
        pod_sets=_pod_sets(spec),
        reclaimed={
            short_text(each.get("name")): whole_number(each.get("count"))
            for each in entries(status, "reclaimablePods")
        },
        conditions=conditions_of(status),
        checks={
            short_text(each.get("name")): short_text(each.get("state"))
            for each in entries(status, "admissionChecks")
        },
        rejected_checks=frozenset(
            short_text(each.get("name"))
            for each in entries(status, "admissionChecks")
            if _was_rejected(each)
        ),
        flavors=_flavors(status),
    )


def _was_rejected(check: Fields) -> bool:
    """Whether a check is rejected, or was before its Workload was evicted: Kueue resets it then."""
    state, message = check.get("state"), short_text(check.get("message"))
    return state == "Rejected" or (state == "Pending" and message.endswith(_RESET_FROM_REJECTED))


def _owner_uid(metadata: Fields) -> str:
    for owner in entries(metadata, "ownerReferences"):
        is_ours = (owner.get("apiVersion"), owner.get("kind")) == (
            RUN_REQUESTS.api_version,
            RUN_REQUESTS.kind,
        )
        if is_ours and owner.get("controller") is True:
            return short_text(owner.get("uid"))
    return ""


def _pod_sets(spec: Fields) -> tuple[QuotaUnits, ...] | None:
    """What is reserved; of podSets that others have made something else, nothing."""
    try:
        found = [*spec.each("podSets")]
        if len(found) > MAX_POD_SETS:
            return None
        return tuple(_units(each) for each in found)
    except InputError:
        return None


def _units(pod_set: Fields) -> QuotaUnits:
    pod = pod_set.flat("template").flat("spec")
    containers = [*pod.each("containers")]
    if len(containers) != 1 or any(key in pod for key in _COUNTED_TOO):
        raise pod_set.error("must have one container and nothing else that takes resources")
    requests = containers[0].flat("resources").resources("requests")
    # The API server prints them by name; what the podSet is for comes first.
    ordered = sorted(requests.items(), key=lambda each: (not is_extended(each[0]), each[0]))
    return QuotaUnits(pod_set.name("name"), pod_set.count("count"), dict(ordered))


def _flavors(status: Fields) -> tuple[str, ...]:
    assignments = entries(_part(status, "admission"), "podSetAssignments")
    names = {
        short_text(name): None for each in assignments for name in _values(each.get("flavors"))
    }
    return tuple(names)


def _values(value: object) -> Iterable[object]:
    return [*value.values()][:MAX_LISTED] if isinstance(value, Mapping) else ()


def _part(fields: Fields, key: str) -> Fields:
    value = fields.get(key)
    return Fields(value if isinstance(value, dict) else {}, fields.place)
