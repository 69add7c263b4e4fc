"""Workflows that wait in a queue, and the patches that let one wait, begin, stop or go on.

A label asks for a workflow controller that does not exist, so Argo leaves the Workflow alone and no
clock runs. `spec.suspend` would begin the Workflow, and its deadline with it.
"""

from collections import Counter
from collections.abc import Container
from typing import Any

import orjson

from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION, PREEMPTED_LABEL, QUEUE_INSTANCE
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.keys import (
    ARTIFACT_FINALIZER,
    COMPLETED_LABEL,
    INSTANCE_LABEL,
)
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import UNNAMED, mapping_or_empty

_Patch = dict[str, Any]

PENDING = "Pending"
"""Phase of a Workflow that waits."""

MAX_MESSAGE_CHARACTERS = 256
"""Length of the longest message that is kept, in characters; anybody may have written it."""

HELD_SELECTOR = f"{INSTANCE_LABEL}={QUEUE_INSTANCE}"
"""Label selector of Workflows that wait in a queue."""

PREEMPTED_SELECTOR = f"{PREEMPTED_LABEL}=true"
"""Label selector of Workflows that their queue has suspended."""

_NODES = ("nodes", "compressedNodes", "offloadNodeStatusVersion")
"""Fields of a Workflow's status with the steps that have begun."""

_REFERENCES = {"templateref", "workflowtemplateref"}
_EXIT_HANDLERS = {"onexit", "hooks", *_REFERENCES}
_BY_AN_AGENT = {"http", "plugin"}
"""Keys of a spec, in lower case, by which Argo may make pods although the Workflow is to end."""


def is_held(workflow: RawMapping) -> bool:
    """Return whether a Workflow waits in a queue."""
    labels = _metadata(workflow, "labels")
    return labels.get(INSTANCE_LABEL) == QUEUE_INSTANCE


def is_preempted(workflow: RawMapping) -> bool:
    """Return whether its queue has suspended a Workflow; others may have suspended it as well."""
    annotations = _metadata(workflow, "annotations")
    is_suspended = mapping_or_empty(workflow.get("spec")).get("suspend") is True
    return is_suspended and bool(annotations.get(PREEMPTED_ANNOTATION))


def is_for_others(workflow: RawMapping) -> bool:
    """Return whether a Workflow asks for a workflow controller that is not this cluster's Argo."""
    labels = _metadata(workflow, "labels")
    return bool(labels.get(INSTANCE_LABEL, QUEUE_INSTANCE) != QUEUE_INSTANCE)


def has_ended(workflow: RawMapping) -> bool:
    """Return whether Argo is done with a Workflow: it ignores one with this label.

    That is so whoever has written the label. A phase alone stops nothing.
    """
    labels = _metadata(workflow, "labels")
    return _is_completed(labels)


def ends_without_pods(workflow: RawMapping) -> bool:
    """Return whether Argo, given a Workflow that makes no pods yet, ends it without making any.

    `shutdown: Terminate` stops all pods. `Stop` and `activeDeadlineSeconds: 0`, which is what KFP's
    Terminate sets, let exit handlers run; the latter also begins templates that an agent runs. Any
    other text in `shutdown` stops nothing. What a reference leads to is not looked at. Pods that
    delete artifacts are made after the end, of the steps in the status, where a new Workflow says
    whatever its creator likes.
    """
    if ARTIFACT_FINALIZER in _finalizers(workflow):
        return False
    spec = mapping_or_empty(workflow.get("spec"))
    shutdown, deadline = spec.get("shutdown"), spec.get("activeDeadlineSeconds")
    status = mapping_or_empty(workflow.get("status"))
    # Of steps that are packed or elsewhere it is not seen which artifacts must be deleted.
    if any(status.get(each) for each in _NODES[1:]):
        return False
    keys = {"artifactgc", *_REFERENCES} if status.get(_NODES[0]) else set()
    if shutdown == "Stop":
        keys |= _EXIT_HANDLERS
    elif deadline == 0 and not isinstance(deadline, bool) and not shutdown:
        keys |= _EXIT_HANDLERS | _BY_AN_AGENT
    elif shutdown != "Terminate":
        return False
    # Argo reads some Workflows by a parser for which these are the same keys.
    folded = Counter(str(each).casefold() for each in spec)
    if max(folded["shutdown"], folded["activedeadlineseconds"]) > 1:
        return False
    try:
        text = orjson.dumps([spec, status]).decode().casefold()
    except orjson.JSONEncodeError:
        return False
    return not any(f'"{each}":' in text for each in keys)


def held_message(workflow: RawMapping) -> str:
    """Return the message of a Workflow that waits in a queue; "" = it has none."""
    status = mapping_or_empty(workflow.get("status"))
    message = status.get("message")
    is_waiting = is_held(workflow) and status.get("phase") == PENDING and isinstance(message, str)
    return str(message)[:MAX_MESSAGE_CHARACTERS] if is_waiting else ""


def holding_patch(version: str, message: str) -> _Patch:
    """Return the merge patch that writes into a held Workflow's status that it waits.

    Without a phase, KFP shows its status as unknown.
    """
    return _versioned(version) | {"status": {"phase": PENDING, "message": message}}


def releasing_patch(version: str, *, has_message: bool) -> _Patch:
    """Return the merge patch that gives a held Workflow to Argo, as if it had been created now.

    Args:
        version: resource version of the Workflow that was looked at.
        has_message: whether the Workflow's status says that it waits.
    """
    patch = _versioned(version, labels={INSTANCE_LABEL: None})
    return patch | ({"status": {"phase": None, "message": None}} if has_message else {})


def suspending_patch(version: str, preempted_for: str) -> _Patch:
    """Return the merge patch after which Argo makes no new pods for a Workflow.

    Args:
        version: resource version of the Workflow that was looked at.
        preempted_for: run for which the Workflow makes room.
    """
    return _suspension(version, preempted_for, suspend=True)


def resuming_patch(version: str) -> _Patch:
    """Return the merge patch by which Argo goes on with a Workflow that its queue has suspended."""
    return _suspension(version, None, suspend=None)


def hold_operations(
    workflow: RawMapping, before: RawMapping | None, exempt: Container[str] = ()
) -> list[_Patch]:
    """Return the JSON patch that lets a Workflow wait from its admission; empty = it does not wait.

    Only a run that is new to Argo, or retried after its end, may wait: if a run gets the label
    while its steps run, Argo does not notice their ends. A Workflow that asks for an exempt
    workflow controller is left alone as long as it does. The status of a new Workflow does not
    count: its creator may write anything into it.

    Args:
        workflow: the Workflow as it would be stored.
        before: the Workflow as it is stored; None = it is being created.
        exempt: instance ids of workflow controllers whose Workflows do not wait.

    Raises:
        InputError: one of the two is malformed.
    """
    created = Fields(workflow, UNNAMED)
    metadata = created.fields("metadata")
    if not metadata:
        raise InputError("a Workflow needs metadata")
    labels = metadata.text_mapping("labels")
    instance = labels.get(INSTANCE_LABEL)
    if instance == QUEUE_INSTANCE or instance in exempt or _is_completed(labels):
        return []
    if before is not None and not _is_as_good_as_new(before, instance):
        return []
    if metadata.get("labels") is None:
        return [
            {"op": "add", "path": "/metadata/labels", "value": {INSTANCE_LABEL: QUEUE_INSTANCE}}
        ]
    # A slash within a key (RFC 6901).
    path = f"/metadata/labels/{INSTANCE_LABEL.replace('/', '~1')}"
    change = "add" if instance is None else "replace"
    return [{"op": change, "path": path, "value": QUEUE_INSTANCE}]


def _is_as_good_as_new(before: RawMapping, instance: str | None) -> bool:
    """Return whether a stored Workflow has ended, or was not for its present controller.

    Args:
        before: the stored Workflow.
        instance: id of the present controller; None = this cluster's Argo.
    """
    labels = Fields(before, UNNAMED).fields("metadata").text_mapping("labels")
    was_for = labels.get(INSTANCE_LABEL, QUEUE_INSTANCE)
    return _is_completed(labels) or was_for not in (QUEUE_INSTANCE, instance)


def _is_completed(labels: RawMapping) -> bool:
    return bool(labels.get(COMPLETED_LABEL) == "true")


def _suspension(version: str, preempted_for: str | None, *, suspend: bool | None) -> _Patch:
    """Return one patch for both marks and the suspension, which never occur alone."""
    metadata = {
        "annotations": {PREEMPTED_ANNOTATION: preempted_for},
        "labels": {PREEMPTED_LABEL: "true" if suspend else None},
    }
    return _versioned(version, **metadata) | {"spec": {"suspend": suspend}}


def _versioned(version: str, **metadata: Any) -> _Patch:
    return {"metadata": {"resourceVersion": version, **metadata}}


def _finalizers(workflow: RawMapping) -> list[Any]:
    finalizers = mapping_or_empty(workflow.get("metadata")).get("finalizers")
    return finalizers if isinstance(finalizers, list) else []


def _metadata(workflow: RawMapping, kind: str) -> RawMapping:
    return mapping_or_empty(mapping_or_empty(workflow.get("metadata")).get(kind))
