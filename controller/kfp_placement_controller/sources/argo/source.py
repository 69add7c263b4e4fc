"""The source of runs that Workflows of Argo are: for planners, for queues, and for pods alone."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from kfp_placement_controller.observed.pods import ObservedPod, PodMarks
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS, WorkflowObject
from kfp_placement_controller.sources.argo.workflows import (
    node_name,
    observe_workflow,
)
from kfp_placement_controller.sources.queue_source import JsonPatch, Operations, QueuedRun
from kfp_placement_controller.sources.source import ObservedRun, PodRun, RunEnd
from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.executors import is_unmarked_executor, step_of_executor
from kfp_placement_engine.readers.argo.holds import (
    HELD_SELECTOR,
    PREEMPTED_SELECTOR,
    has_ended,
    held_message,
    hold_operations,
    holding_patch,
    is_for_others,
    is_held,
    releasing_patch,
    resuming_patch,
    suspending_patch,
)
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION, WORKFLOW_LABEL
from kfp_placement_engine.units.times import read_moment

MAX_PREEMPTED_CHARACTERS = 63
"""Kept from what a Workflow says of its preemption; a uid has 36."""

MAIN_CONTAINER = "main"
"""Where Argo runs the step; the others prepare and clean up."""

_OF_A_BEGINNING = ("startedAt", "nodes", "compressedNodes", "offloadNodeStatusVersion")
"""What Argo writes into the status of a Workflow that it has worked on, and nobody else."""


class ArgoSource:
    """Workflows of Argo, whoever submitted them.

    Attributes:
        kind: of their objects.
        pod_marks: what is read in their pods.
        waiting_selectors: select those that a queue holds, and those that it has suspended.
    """

    kind = WORKFLOWS
    pod_marks = PodMarks(
        labels=(WORKFLOW_LABEL,),
        annotations=(NODE_NAME_ANNOTATION,),
        containers=(MAIN_CONTAINER,),
        is_unmarked_step=is_unmarked_executor,
    )
    waiting_selectors = (HELD_SELECTOR, PREEMPTED_SELECTOR)

    def observe(
        self, raw: Mapping[str, Any], *, all_pipelines: bool = False, unplanned: bool = False
    ) -> ObservedRun | None:
        """Slim a Workflow, as `observe_workflow` says."""
        return observe_workflow(raw, all_pipelines=all_pipelines, unplanned=unplanned)

    def pipeline_end(self, raw: Mapping[str, Any]) -> datetime | None:
        """When a Workflow of KFP has ended; None = it goes on, or others have made it."""
        workflow = WorkflowObject.of(raw)
        if workflow.end is None or not workflow.is_pipeline:
            return None
        return read_moment(workflow.status.get("finishedAt"))

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """The Workflow that a pod is of; None = of none."""
        name = pod.labels.get(WORKFLOW_LABEL, "")
        if not name:
            return None
        uids = (owner.uid for owner in pod.owners if owner.kind == WORKFLOWS.kind)
        return PodRun(RunKey(pod.namespace, name), next(uids, ""))

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """The step that a pod executes, by its node name; None = none of these.

        Args:
            pod: of a Workflow.
            steps: names of the plan's steps.
        """
        return step_of_executor(node_name(pod), pod.labels.get(WORKFLOW_LABEL, ""), steps)

    def observe_queued(self, raw: Mapping[str, Any]) -> QueuedRun:
        """How far a Workflow is, with or without our mark.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        workflow = WorkflowObject.of(raw)
        key, owner, created_at = workflow.identity()
        spec, status = workflow.spec, workflow.status
        preempted_for = workflow.annotation(PREEMPTED_ANNOTATION)
        return QueuedRun(
            key=key,
            owner=owner,
            version=workflow.version,
            submitted_at=created_at,
            is_held=is_held(raw),
            held_message=held_message(raw),
            is_suspended=spec.get("suspend") is True,
            preempted_for=preempted_for[:MAX_PREEMPTED_CHARACTERS],
            is_terminated=spec.get("activeDeadlineSeconds") == 0 or bool(spec.get("shutdown")),
            has_begun=not is_for_others(raw) and any(status.get(each) for each in _OF_A_BEGINNING),
            end=_end(workflow),
            display_name=workflow.display_name,
        )

    def hold_operations(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Operations:
        """What lets a Workflow wait while it is admitted: new, or tried again after its end.

        Args:
            new: the Workflow as it would be stored.
            old: as it is stored; None = it is being created.

        Raises:
            InputError: one of them is malformed.
        """
        return hold_operations(new, old)

    def held_patch(self, run: QueuedRun, message: str) -> JsonPatch:
        """Say that a held Workflow waits: without a phase, KFP shows its status as unknown."""
        return holding_patch(run.version, message)

    def release_patch(self, run: QueuedRun) -> JsonPatch:
        """Give a held Workflow to Argo, as if it had been created now."""
        return releasing_patch(run.version, has_message=bool(run.held_message))

    def suspend_patch(self, run: QueuedRun, preempted_for: str) -> JsonPatch:
        """Let Argo make no new pods for a Workflow; it still reads the existing ones."""
        return suspending_patch(run.version, preempted_for)

    def resume_patch(self, run: QueuedRun) -> JsonPatch:
        """Let Argo go on with it."""
        return resuming_patch(run.version)


def _end(workflow: WorkflowObject) -> RunEnd | None:
    """How a Workflow has ended; Argo does not look at one that says so by its label alone."""
    return workflow.end or (RunEnd.FAILED if has_ended(workflow.raw) else None)
