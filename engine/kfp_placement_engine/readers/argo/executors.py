"""Executor pods: which pods of KFP execute steps, and which step a pod's node name stands for.

No run graph is needed, only the pod and the names of the plan's steps. A node name can be read in
more than one way: as KFP 2 or KFP 3 writes it, or as the path of a plain Workflow. The first
reading that the plan has a step for counts.
"""

from collections.abc import Collection, Iterator, Sequence

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL, UNPLANNED_LABEL
from kfp_placement_engine.readers.argo.keys import (
    GROUP,
    KFP_POD_LABEL,
    LAUNCHER_CONTAINER,
    WORKFLOW_NAMES,
)
from kfp_placement_engine.readers.argo.node_names import (
    EXECUTOR,
    EXIT,
    ROOT,
    Segment,
    kfp_path,
    plain_path,
    split_node_name,
)
from kfp_placement_engine.readers.text.fields import Fields

MAX_NODE_NAME_CHARACTERS = 16_384
"""A longer node name is not read; items of loops are free text within it."""


def step_of_executor(node_name: str, workflow: str, steps: Collection[str]) -> str | None:
    """Return the step whose pod has this node name, or None unless it is one of these steps.

    Retries are the same step. KFP's own levels are known by where they stand, so that tasks may be
    called `iteration-item`, `executor` or `x-driver`.

    Args:
        node_name: value of the annotation `workflows.argoproj.io/node-name`.
        workflow: name of the Workflow.
        steps: names of the plan's steps.
    """
    if len(node_name) > MAX_NODE_NAME_CHARACTERS:
        return None
    parts = split_node_name(node_name, workflow)
    if parts is None:
        return None
    if not parts[1]:
        # A Workflow of one pod, whose node is the Workflow itself; others are of its exit handler.
        lone = [name for name in steps if name.partition(".")[0] != EXIT]
        return lone[0] if len(lone) == 1 else None
    return next((name for name in _readings(parts[1]) if name in steps), None)


def _readings(segments: Sequence[Segment]) -> Iterator[str]:
    if len(segments) > 2 and segments[0].name == ROOT and segments[-1].name == EXECUTOR:
        yield kfp_path(segments[1:-1])
        yield kfp_path(segments[1:-1], per_iteration=False)
    yield plain_path(segments)


def is_unmarked_executor(pod: Fields) -> bool:
    """Return whether a pod executes a step of KFP whose author names no scheduler.

    Where its namespace lets all steps of KFP runs count as marked, this pod is one of them. Three
    signs tell it: a label that all pods of KFP have, an owner, and an init container that drivers
    and importers of KFP do not have.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    metadata = pod.flat("metadata")
    labels = metadata.flat("labels")
    if KFP_POD_LABEL not in labels or SCHEDULER_LABEL in labels:
        return False
    if labels.get(UNPLANNED_LABEL) == "true":
        return False
    return _is_owned_by_workflow(metadata) and _has_launcher(pod.flat("spec"))


def _is_owned_by_workflow(metadata: Fields) -> bool:
    return any(
        isinstance(each, dict)
        and each.get("kind") == WORKFLOW_NAMES.kind
        and str(each.get("apiVersion")).startswith(f"{GROUP}/")
        for each in metadata.entries("ownerReferences")
    )


def _has_launcher(spec: Fields) -> bool:
    return any(
        isinstance(each, dict) and each.get("name") == LAUNCHER_CONTAINER
        for each in spec.entries("initContainers")
    )
