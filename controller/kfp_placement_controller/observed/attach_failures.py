"""Events which say that a pod's volume cannot be attached, slimmed."""

from dataclasses import dataclass

from kfp_placement_controller.observed.limited_fields import MAX_TEXT_CHARACTERS
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject

ATTACH_FAILED = "FailedAttachVolume"
"""Reason of Kubernetes' attach-detach controller."""

ATTACH_FAILED_SELECTOR = f"reason={ATTACH_FAILED}"
"""Selector of the only events that are read: a cluster makes many thousands an hour."""

MAX_ATTACH_FAILURES = 5_000
"""Limit of kept events; anybody may write events, and more of them tell little that is new."""

MAX_UID_CHARACTERS = 64
"""Longest uid that is kept, in characters; a real one has 36, but an event may name anything."""


@dataclass(frozen=True, slots=True)
class AttachFailure:
    """A volume that could not be attached for a pod.

    Attributes:
        namespace: namespace of the event, in which the pod must be.
        pod_uid: uid of the pod.
        message: text for people, such as `Multi-Attach error for volume "pvc-1" ...`.
    """

    namespace: str
    pod_uid: str
    message: str


def observe_attach_failure(raw: JsonObject) -> AttachFailure | None:
    """Slim an event as the API server prints it; None = it is not a pod's attach failure.

    Raises:
        InputError: the event is malformed.
    """
    event = Fields(raw, Place("event"))
    regarding = event.fields("regarding")
    pod_uid = regarding.text("uid")
    if regarding.get("kind") != "Pod" or not pod_uid or event.get("reason") != ATTACH_FAILED:
        return None
    return AttachFailure(
        event.flat("metadata").text("namespace"),
        pod_uid[:MAX_UID_CHARACTERS],
        event.text("note")[:MAX_TEXT_CHARACTERS],
    )
