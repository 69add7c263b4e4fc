"""Which pods execute a step of a KFP run, told without our mark.

Admission decides by the same three signs: a label that all pods of KFP have, an owner, and an init
container that its drivers and importers do not have.
"""

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL, UNPLANNED_LABEL
from kfp_placement_engine.readers.argo.keys import (
    GROUP,
    KFP_POD_LABEL,
    LAUNCHER_CONTAINER,
    WORKFLOW_NAMES,
)
from kfp_placement_engine.readers.fields import Fields


def is_unmarked_executor(pod: Fields) -> bool:
    """Whether a pod executes a step of KFP whose author says nothing of its scheduler.

    Where its namespace lets all steps of KFP runs count as marked, this pod is one of them.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    metadata = pod.flat("metadata")
    labels = metadata.flat("labels")
    if KFP_POD_LABEL not in labels or SCHEDULER_LABEL in labels:
        return False
    if labels.get(UNPLANNED_LABEL) == "true":
        return False
    return _is_owned_by_workflow(metadata) and _has_launcher(pod.flat("spec"))


def _is_owned_by_workflow(metadata: Fields) -> bool:
    owners = [each for each in metadata.entries("ownerReferences") if isinstance(each, dict)]
    return any(
        each.get("kind") == WORKFLOW_NAMES.kind
        and str(each.get("apiVersion")).startswith(f"{GROUP}/")
        for each in owners
    )


def _has_launcher(spec: Fields) -> bool:
    containers = [each for each in spec.entries("initContainers") if isinstance(each, dict)]
    return any(each.get("name") == LAUNCHER_CONTAINER for each in containers)
