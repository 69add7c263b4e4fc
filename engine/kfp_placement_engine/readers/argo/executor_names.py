"""From an executor pod's node name to its step, where there is no run graph, only a plan.

A node name can be read in more than one way: as KFP writes it, or as the path of a plain Workflow.
Whoever has a plan takes the first reading that the plan has a row for.
"""

from collections.abc import Collection, Iterator, Sequence

from kfp_placement_engine.readers.argo.node_names import (
    EXECUTOR,
    ROOT,
    Segment,
    kfp_path,
    plain_path,
    split_node_name,
)

MAX_NODE_NAME_CHARACTERS = 16_384
"""A longer node name is not read; items of loops are free text within it."""


def step_of_executor(node_name: str, workflow: str, steps: Collection[str]) -> str | None:
    """The step whose pod has this node name; None = none of these steps.

    Retries are the same step. KFP's own levels are known by where they stand, so that tasks may be
    called `iteration-item`, `executor` or `x-driver`.

    Args:
        node_name: annotation `workflows.argoproj.io/node-name`.
        workflow: the Workflow's name.
        steps: names of the plan's steps.
    """
    if len(node_name) > MAX_NODE_NAME_CHARACTERS:
        return None
    parts = split_node_name(node_name, workflow)
    if parts is None:
        return None
    if not parts[1]:
        # A Workflow of one pod: the pod's node is the Workflow itself.
        return next(iter(steps)) if len(steps) == 1 else None
    return next((name for name in _readings(parts[1]) if name in steps), None)


def _readings(segments: Sequence[Segment]) -> Iterator[str]:
    if len(segments) > 2 and segments[0].name == ROOT and segments[-1].name == EXECUTOR:
        yield kfp_path(segments[1:-1])
    yield plain_path(segments)
