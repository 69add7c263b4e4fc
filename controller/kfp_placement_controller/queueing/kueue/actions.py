"""What follows for Kueue's objects from what queues want, and others write: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from typing_extensions import override

from kfp_placement_controller.queueing.actions import BackendAction
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import Kind


class FieldManager(StrEnum):
    """Who owns which fields of a status; each applies all that it owns."""

    CHECK = "kfp-placement-planner"
    """Our entry of a Workload's checks, and our condition of an AdmissionCheck."""

    FINISH = "kfp-placement-finish"
    """The condition that the run has ended."""

    RECLAIM = "kueue-reclaimable-pods"
    """What the run has given back; Kueue's own name for it."""


@dataclass(frozen=True)
class CreateWorkload(BackendAction):
    """Ask for quota for a run.

    Attributes:
        run: that the Workload is of.
        body: the object.
    """

    run: RunKey
    body: Mapping[str, Any]

    @property
    @override
    def target(self) -> tuple[str, ...]:
        return ("create", *self.run, self.body["metadata"]["name"])


@dataclass(frozen=True)
class PatchWorkload(BackendAction):
    """Ask for something else.

    Attributes:
        run: that the Workload is of.
        name: of the Workload.
        patch: a merge patch that names the version which this was decided by.
    """

    run: RunKey
    name: str
    patch: Mapping[str, Any]

    @property
    @override
    def target(self) -> tuple[str, ...]:
        return ("patch", *self.run, str(self.patch))


@dataclass(frozen=True)
class ApplyStatus(BackendAction):
    """Say something in the status of one of Kueue's objects.

    Attributes:
        kind: of the object.
        namespace: where it is; "" for kinds without.
        name: of the object.
        manager: owns the fields.
        body: these fields, as server-side apply takes them.
    """

    kind: Kind
    namespace: str
    name: str
    manager: FieldManager
    body: Mapping[str, Any]

    @property
    @override
    def target(self) -> tuple[str, ...]:
        content = {**self.body["status"], "conditions": None, "admissionChecks": None}
        return ("apply", self.kind.plural, self.namespace, self.name, self.manager, str(content))


@dataclass(frozen=True)
class _OfOneWorkload(BackendAction):
    """Something that is done with a Workload as a whole.

    Attributes:
        run: that the Workload is of.
        name: of the Workload.
        uid: of the very object.
    """

    run: RunKey
    name: str
    uid: str

    @property
    @override
    def target(self) -> tuple[str, ...]:
        return (type(self).__name__, *self.run, self.uid)


class ClearAdmission(_OfOneWorkload):
    """Give back what is reserved for a Workload that was evicted: its run has no pods any more."""


class DeleteWorkload(_OfOneWorkload):
    """Withdraw what is asked for."""


KueueAction = CreateWorkload | PatchWorkload | ApplyStatus | ClearAdmission | DeleteWorkload
