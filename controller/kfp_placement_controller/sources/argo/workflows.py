"""Workflows as runs: which of them get a plan, and how they are doing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kfp_placement_controller.sources.argo.workflow_content import (
    WorkflowContent,
    document_of,
    nodes_of,
)
from kfp_placement_controller.sources.argo.workflow_object import WorkflowObject
from kfp_placement_controller.sources.source import ObservedRun, RunState
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.times import read_moment
from kfp_placement_engine.readers.argo.holds import PENDING

MAX_DOCUMENT_BYTES = 8 * 2**20
"""Of a Workflow's spec; etcd takes 1.5 MB, so a larger one was never stored."""


def observe_workflow(raw: Mapping[str, Any], *, all_pipelines: bool = False) -> ObservedRun | None:
    """Slim a Workflow; None = it gets no plan.

    Args:
        raw: the Workflow.
        all_pipelines: if KFP has made it, all its steps count as marked; else our mark is needed.

    Raises:
        InputError: it has no name, no uid, no time of creation, or is too large.
    """
    workflow = WorkflowObject.of(raw)
    document = document_of(workflow)
    is_marked, all_marked = _is_marked(document), all_pipelines and workflow.is_pipeline
    if not is_marked and not all_marked:
        return None
    return _observed(workflow, document, is_marked=is_marked, all_marked=all_marked)


def observe_any_workflow(raw: Mapping[str, Any], *, all_pipelines: bool = False) -> ObservedRun:
    """Slim a Workflow, planned or not; of one that gets no plan and has ended no step is kept.

    One that cannot be read says so when it is planned: it waits in a queue until somebody says
    what it needs, or that nobody can.

    Args:
        raw: the Workflow.
        all_pipelines: as for `observe_workflow`.

    Raises:
        InputError: it has no name, no uid or no time of creation.
    """
    workflow = WorkflowObject.of(raw)
    try:
        document = document_of(workflow)
        all_marked = all_pipelines and workflow.is_pipeline
        return _observed(workflow, document, is_marked=_is_marked(document), all_marked=all_marked)
    except InputError as error:
        unread = replace(workflow, spec={}, status={"phase": workflow.phase})
        observed = _observed(unread, b"", is_marked=False, all_marked=False)
        content = WorkflowContent(observed.key.name, b"", problem=str(error))
        return replace(observed, content=content)


def _is_marked(document: bytes) -> bool:
    return SCHEDULER_LABEL.encode() in document


def _observed(
    workflow: WorkflowObject, document: bytes, *, is_marked: bool, all_marked: bool
) -> ObservedRun:
    key, owner, created_at = workflow.identity()
    if len(document) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"Workflow {key.name!r:.80} has {len(document)} bytes; it cannot be planned"
        )
    nodes, problem = nodes_of(workflow)
    state = _state(workflow, problem, has_nodes=bool(nodes))
    if state.end is not None and not is_marked and not all_marked:
        document, nodes = b"", ()
    return ObservedRun(
        key=key,
        owner=owner,
        submitted_at=created_at,
        state=state,
        content=WorkflowContent(key.name, document, nodes),
        display_name=workflow.display_name,
        is_marked=is_marked,
        all_marked=all_marked,
    )


def _state(workflow: WorkflowObject, problem: str, *, has_nodes: bool) -> RunState:
    status, end = workflow.status, workflow.end
    return RunState(
        held="" if end else _why_held(workflow),
        idle="" if workflow.phase or has_nodes else "Argo has not begun it",
        started_at=read_moment(status.get("startedAt")),
        finished_at=read_moment(status.get("finishedAt")),
        end=end,
        unreadable=problem,
    )


def _why_held(workflow: WorkflowObject) -> str:
    """Why Argo makes no pods for a Workflow that has not ended, or ""."""
    if workflow.spec.get("suspend") is True:
        return "spec.suspend is set"
    if workflow.phase == PENDING:
        # By a limit of parallel runs, a lock, or a claim that cannot be made. Every run that it
        # may begin gets the phase Running at once.
        return "Argo lets it wait (phase Pending)"
    return ""
