"""Argo's message on why a run failed, read from its Workflow."""

from datetime import UTC, datetime

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.kinds import WORKFLOWS, object_if_allowed
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.step_pods import MAX_TEXT_CHARACTERS
from kfp_placement_engine.readers.argo.workflow_nodes import read_nodes
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.views.runs import RunView

_FAILED = ("Failed", "Error")
_GROUPS = ("DAG", "Retry", "StepGroup", "Steps", "TaskGroup")
"""Types of nodes that contain others, and fail because one of these failed."""


def failure_of(api: ClusterApi, run: RunView) -> str:
    """Return Argo's message on why a run failed, or "".

    It is the message of the first node that failed on its own, else the Workflow's. It is empty if
    the run did not fail, or its Workflow cannot be read.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    if not run.failed:
        return ""
    raw = object_if_allowed(api, WORKFLOWS, run.name, run.namespace) or {}
    try:
        status = Fields(raw, Place("workflow")).fields("status")
        message = status.text("message")
    except InputError:
        return ""
    cause = _first_failure(status.get("nodes"), run.name) or message
    return cause[:MAX_TEXT_CHARACTERS].strip()


def _first_failure(nodes: object, run: str) -> str:
    """Return name and message of the first failed node: `fetch-driver(0): pods ... is forbidden`.

    The text is empty if no failed node has a message, or nodes cannot be read.
    """
    try:
        failed = [
            node
            for node in read_nodes(nodes)
            if node.phase in _FAILED and node.type not in _GROUPS and node.message.strip()
        ]
    except InputError:
        return ""
    if not failed:
        return ""
    never = datetime.max.replace(tzinfo=UTC)
    first = min(failed, key=lambda node: (node.finished_at or never, node.name))
    path = first.name.removeprefix(f"{run}.").removeprefix("root.")
    return f"{path}: {first.message.strip()}"
