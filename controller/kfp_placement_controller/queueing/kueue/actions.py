"""Writes of Kueue's objects that the backend decides on and its writer carries out: plain data."""

from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

from kfp_placement_controller.queueing.actions import BackendAction
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import JsonObject, Kind, key_of


class FieldManager(StrEnum):
    """Owner of fields in a status; each applies all the fields that it owns."""

    CHECK = "kfp-placement-planner"
    """Owner of our entry in a Workload's checks, and of our condition in an AdmissionCheck."""

    FINISH = "kfp-placement-finish"
    """Owner of the condition that the run has ended."""

    RECLAIM = "kueue-reclaimable-pods"
    """Owner of the units that the run has given back; the name is Kueue's own."""


@dataclass(frozen=True)
class CreateWorkload(BackendAction):
    """Create the Workload of a run, to ask for quota.

    Attributes:
        run: key of the run.
        body: the Workload; the client adds its kind and version.
    """

    run: RunKey
    body: JsonObject

    @property
    @override
    def identity(self) -> tuple[str, ...]:
        return ("create", *self.run, self.body["metadata"]["name"])


@dataclass(frozen=True)
class PatchWorkload(BackendAction):
    """Change the Workload of a run, to ask for something else.

    Attributes:
        run: key of the run.
        name: name of the Workload.
        patch: merge patch, with the resource version on which the decision was made.
    """

    run: RunKey
    name: str
    patch: JsonObject

    @property
    @override
    def identity(self) -> tuple[str, ...]:
        return ("patch", *self.run, str(self.patch))


@dataclass(frozen=True)
class ApplyStatus(BackendAction):
    """Apply fields to the status of one of Kueue's objects.

    Attributes:
        kind: kind of the object.
        manager: owner of the fields.
        body: object with these fields alone, for server-side apply; the client adds its kind and
            version.
    """

    kind: Kind
    manager: FieldManager
    body: JsonObject

    @property
    @override
    def identity(self) -> tuple[str, ...]:
        # Conditions and checks have the time of the decision in them: compared, none would be equal
        # to the one before. So a changed answer waits until the next try.
        content = {**self.body["status"], "conditions": None, "admissionChecks": None}
        return ("apply", self.kind.plural, *key_of(self.body), self.manager, str(content))


@dataclass(frozen=True)
class _OfOneWorkload(BackendAction):
    """Action on a Workload as a whole.

    Attributes:
        run: key of the run.
        name: name of the Workload.
        uid: uid of the Workload: another one of the same name is left alone.
    """

    run: RunKey
    name: str
    uid: str

    @property
    @override
    def identity(self) -> tuple[str, ...]:
        return (type(self).__name__, *self.run, self.uid)


class ClearAdmission(_OfOneWorkload):
    """Give back the quota of an evicted Workload, whose run has no pods any more."""


class DeleteWorkload(_OfOneWorkload):
    """Delete a Workload, to withdraw the request for quota."""


KueueAction = CreateWorkload | PatchWorkload | ApplyStatus | ClearAdmission | DeleteWorkload
