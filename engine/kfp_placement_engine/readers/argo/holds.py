"""Workflows that wait in a queue: whether one does, and the change that lets it begin.

The label asks for a controller that there is none of, so Argo leaves the Workflow alone and no
clock runs. `spec.suspend` would begin it, and its deadline with it.
"""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.contract.keys import QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL

PENDING = "Pending"
"""The phase of a Workflow that waits."""

MAX_MESSAGE_CHARACTERS = 256
"""Kept from what a Workflow says, whoever has written it."""

HELD_SELECTOR = f"{INSTANCE_LABEL}={QUEUE_INSTANCE}"
"""Selects Workflows that are held."""


def is_held(workflow: Mapping[str, Any]) -> bool:
    """Whether a Workflow waits in a queue."""
    labels = _mapping(_mapping(workflow.get("metadata")).get("labels"))
    return labels.get(INSTANCE_LABEL) == QUEUE_INSTANCE


def held_message(workflow: Mapping[str, Any]) -> str:
    """What a held Workflow says of that; "" = nothing yet, or something else."""
    status = _mapping(workflow.get("status"))
    message = status.get("message")
    says = is_held(workflow) and status.get("phase") == PENDING and isinstance(message, str)
    return str(message)[:MAX_MESSAGE_CHARACTERS] if says else ""


def holding_patch(version: str, message: str) -> dict[str, Any]:
    """The merge patch by which a held Workflow says that it waits.

    Without a phase, KFP shows its status as unknown.
    """
    return _versioned(version) | {"status": {"phase": PENDING, "message": message}}


def releasing_patch(version: str, *, says_so: bool) -> dict[str, Any]:
    """The merge patch that gives a held Workflow to Argo, as if it had been created now.

    Args:
        version: of the Workflow that it was decided by.
        says_so: the Workflow says that it waits.
    """
    patch = _versioned(version, labels={INSTANCE_LABEL: None})
    return patch | ({"status": {"phase": None, "message": None}} if says_so else {})


def _versioned(version: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, **metadata}}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
