"""RunRequests, slimmed; a malformed one is kept without the parts that cannot be read."""

from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_engine.contract.custom_resources import RunRequest, read_resource
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.contract.run_request import RunRequestSpec, RunRequestStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import JsonObject


@dataclass(frozen=True)
class ObservedRequest:
    """A RunRequest.

    Attributes:
        key: namespace and name of its run.
        uid: uid of the object.
        version: resource version of the object; each write names it.
        owner_uids: uids of the objects that own it.
        spec: part that the planner writes; None = the object cannot be read.
        status: part that the queue writes; empty if it cannot be read.
        is_status_malformed: whether the status cannot be read.
        admit_asked_at: time when somebody asked that the run starts; None = nobody asked.
        preempt_asked_at: time when somebody asked that the run stops; None = nobody asked.
        is_going: whether the object has been deleted, and only its finalizers keep it.
    """

    key: RunKey
    uid: str
    version: str
    owner_uids: tuple[str, ...] = ()
    spec: RunRequestSpec | None = None
    status: RunRequestStatus = field(default_factory=RunRequestStatus)
    is_status_malformed: bool = False
    admit_asked_at: datetime | None = None
    preempt_asked_at: datetime | None = None
    is_going: bool = False


def observe_request(raw: JsonObject) -> ObservedRequest:
    """Slim a RunRequest as the API server prints it, even if its spec or status is malformed.

    Raises:
        InputError: not even its metadata can be read.
    """
    metadata = Fields(raw, Place("RunRequest")).flat("metadata")
    key = RunKey(metadata.text("namespace"), metadata.text("name"))
    uid, version = metadata.text("uid"), metadata.text("resourceVersion")
    is_going = metadata.get("deletionTimestamp") is not None
    request, is_status_malformed = _read(raw)
    if request is None:
        return ObservedRequest(key, uid, version, is_going=is_going)
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
        is_going,
    )


def _read(raw: JsonObject) -> tuple[RunRequest | None, bool]:
    """Read a RunRequest, without its status if only that is malformed.

    Returns:
        The RunRequest, or None if it cannot be read; whether its status is malformed.
    """
    without_status = {name: value for name, value in raw.items() if name != "status"}
    for each, is_status_malformed in ((raw, False), (without_status, True)):
        try:
            return read_resource(RunRequest, each), is_status_malformed
        except InputError:
            continue
    return None, False
