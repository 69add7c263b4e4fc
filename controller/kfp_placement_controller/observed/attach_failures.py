"""What is kept from the events which say that a pod's volume is not attached."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_controller.observed.pods import MAX_MESSAGE_CHARACTERS
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

ATTACH_FAILED = "FailedAttachVolume"
"""Reason of Kubernetes' attach-detach controller."""

ATTACH_FAILED_SELECTOR = f"reason={ATTACH_FAILED}"
"""The only events that are asked for: a cluster makes many thousands an hour."""

MAX_ATTACH_FAILURES = 5_000
"""Events that are kept; more say little about few, and anybody may write them."""

MAX_UID_CHARACTERS = 64
"""A uid has 36; an event may name anything."""


@dataclass(frozen=True, slots=True)
class AttachFailure:
    """A volume that could not be attached for a pod.

    Attributes:
        pod_uid: of the pod.
        message: for people, such as `Multi-Attach error for volume "pvc-1" ...`.
    """

    pod_uid: str
    message: str


def observe_attach_failure(raw: Mapping[str, Any]) -> AttachFailure | None:
    """Keep what matters of an event as the API server prints it; None = it is about no pod.

    Raises:
        InputError: it is malformed.
    """
    event = Fields(raw, Place("event"))
    regarding = event.fields("regarding")
    pod_uid = regarding.text("uid")
    if regarding.get("kind") != "Pod" or not pod_uid or event.get("reason") != ATTACH_FAILED:
        return None
    return AttachFailure(pod_uid[:MAX_UID_CHARACTERS], event.text("note")[:MAX_MESSAGE_CHARACTERS])
