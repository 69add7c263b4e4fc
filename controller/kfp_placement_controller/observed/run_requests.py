"""RunRequests, slimmed; one that cannot be read says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.contract.resources import RunRequest, read_resource
from kfp_placement_engine.contract.run_request import RunRequestSpec, RunRequestStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.times import read_moment


@dataclass(frozen=True)
class ObservedRequest:
    """A RunRequest.

    Attributes:
        key: of its run.
        uid: of the object.
        version: of the object; a write names it.
        owner_uids: of the objects that own it.
        spec: what the planner says; None = it cannot be read.
        status: what the queue says; nothing where it cannot be read.
        is_status_malformed: whether it cannot be read.
        admit_at: when somebody has asked that the run begins; None = nobody has.
        preempt_at: the same for that it stops.
    """

    key: RunKey
    uid: str
    version: str
    owner_uids: tuple[str, ...] = ()
    spec: RunRequestSpec | None = None
    status: RunRequestStatus = field(default_factory=RunRequestStatus)
    is_status_malformed: bool = False
    admit_at: datetime | None = None
    preempt_at: datetime | None = None


def observe_request(raw: Mapping[str, Any]) -> ObservedRequest:
    """A RunRequest as the API server prints it, whatever it says.

    Raises:
        InputError: not even its metadata can be read.
    """
    metadata = Fields(raw, Place("RunRequest")).flat("metadata")
    key = RunKey(metadata.text("namespace"), metadata.text("name"))
    uid, version = metadata.text("uid"), metadata.text("resourceVersion")
    request, is_status_malformed = _read(raw)
    if request is None:
        return ObservedRequest(key, uid, version)
    annotations = request.metadata.annotations or {}
    return ObservedRequest(
        key,
        uid,
        version,
        tuple(each.uid for each in request.metadata.owner_references or ()),
        request.spec,
        request.status or RunRequestStatus(),
        is_status_malformed,
        read_moment(annotations.get(ADMIT_ANNOTATION)),
        read_moment(annotations.get(PREEMPT_ANNOTATION)),
    )


def _read(raw: Mapping[str, Any]) -> tuple[RunRequest | None, bool]:
    """All of it, or all but a malformed status, and whether that is so; None = nothing."""
    without_status = {name: value for name, value in raw.items() if name != "status"}
    for each, is_status_malformed in ((raw, False), (without_status, True)):
        try:
            return read_resource(RunRequest, each), is_status_malformed
        except InputError:
            continue
    return None, False
