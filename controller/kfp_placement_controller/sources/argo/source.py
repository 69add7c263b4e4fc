"""Argo Workflows as the source of runs, for planners and for queues."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial

from kfp_placement_controller.observed.pods import ObservedPod, PodKeys
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS, WorkflowObject
from kfp_placement_controller.sources.argo.workflows import (
    node_name,
    observe_templates,
    observe_workflow,
)
from kfp_placement_controller.sources.queue_source import MergePatch, QueuedRun
from kfp_placement_controller.sources.source import ObservedTemplates, PodRun
from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.executors import is_unmarked_executor, step_of_executor
from kfp_placement_engine.readers.argo.holds import (
    HELD_SELECTOR,
    PREEMPTED_SELECTOR,
    ends_without_pods,
    held_message,
    hold_operations,
    holding_patch,
    is_for_others,
    is_held,
    releasing_patch,
    resuming_patch,
    suspending_patch,
)
from kfp_placement_engine.readers.argo.keys import (
    CLUSTER_TEMPLATE_NAMES,
    NODE_NAME_ANNOTATION,
    TEMPLATE_NAMES,
    WORKFLOW_LABEL,
)
from kfp_placement_engine.readers.argo.workflow_templates import pod_start_limit
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import JsonObject, Kind

MAX_PREEMPTED_CHARACTERS = 63
"""Longest reason of a preemption that is kept, in characters; a uid has 36."""

MAIN_CONTAINER = "main"
"""Container in which Argo runs the step; the others prepare and clean up."""

_OF_A_BEGINNING = ("startedAt", "nodes", "compressedNodes", "offloadNodeStatusVersion")
"""Fields of a Workflow's status that only Argo writes, once it has worked on the Workflow."""

_TEMPLATE_KINDS: Mapping[Kind, Callable[[JsonObject], ObservedTemplates]] = {
    Kind(*names): partial(observe_templates, names.kind)
    for names in (TEMPLATE_NAMES, CLUSTER_TEMPLATE_NAMES)
}


class ArgoSource:
    """Workflows of Argo, whoever submitted them.

    Attributes:
        kind: kind Workflow.
        pod_keys: labels, annotations and containers that are needed of their pods.
        waiting_selectors: label selectors of Workflows that a queue holds or has suspended.
        template_kinds: kinds of Argo's templates, each with its reader.
        observe: function that slims a Workflow to a run; None = the run gets no plan.
        hold_operations: function that returns the changes that make a new or retried Workflow wait.
    """

    kind = WORKFLOWS
    pod_keys = PodKeys(
        labels=(WORKFLOW_LABEL,),
        annotations=(NODE_NAME_ANNOTATION,),
        containers=(MAIN_CONTAINER,),
        is_unmarked_step=is_unmarked_executor,
        start_limit=pod_start_limit,
    )
    waiting_selectors = (HELD_SELECTOR, PREEMPTED_SELECTOR)
    template_kinds = _TEMPLATE_KINDS
    observe = staticmethod(observe_workflow)
    hold_operations = staticmethod(hold_operations)

    def pipeline_end(self, raw: JsonObject) -> datetime | None:
        """Return the end of a Workflow; None = it has not ended, or KFP has not made it."""
        workflow = WorkflowObject.of(raw)
        if workflow.end is None or not workflow.is_pipeline:
            return None
        return read_moment(workflow.status.get("finishedAt"))

    def run_of(self, pod: ObservedPod) -> PodRun | None:
        """Return the Workflow that a pod belongs to, or None if it belongs to none.

        Argo makes each Workflow the controller of its pods. Their label alone proves nothing, since
        anybody may write it.
        """
        owner = pod.owner
        if owner is None or owner.kind != WORKFLOWS.kind:
            return None
        if pod.labels.get(WORKFLOW_LABEL) != owner.name:
            return None
        return PodRun(RunKey(pod.namespace, owner.name), owner.uid)

    def step_of(self, pod: ObservedPod, steps: Collection[str]) -> str | None:
        """Return the step that a pod executes, by Argo's node name; None = none of `steps`.

        Args:
            pod: pod of a Workflow.
            steps: names of the plan's steps.
        """
        return step_of_executor(node_name(pod), pod.labels.get(WORKFLOW_LABEL, ""), steps)

    def observe_queued(self, raw: JsonObject) -> QueuedRun:
        """Read the progress of a Workflow, with or without our mark.

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
            is_terminated=ends_without_pods(raw),
            has_begun=not is_for_others(raw) and any(status.get(each) for each in _OF_A_BEGINNING),
            end=workflow.end,
            display_name=workflow.display_name,
        )

    def held_patch(self, run: QueuedRun, message: str) -> MergePatch:
        """Return the patch that says in a held Workflow that it waits.

        The patch sets a phase: without one, KFP shows the status as unknown.
        """
        return holding_patch(run.version, message)

    def release_patch(self, run: QueuedRun) -> MergePatch:
        """Return the patch that gives a held Workflow to Argo, as if it were created now."""
        return releasing_patch(run.version, has_message=bool(run.held_message))

    def suspend_patch(self, run: QueuedRun, preempted_for: str) -> MergePatch:
        """Return the patch that stops new pods; Argo still reads the existing ones."""
        return suspending_patch(run.version, preempted_for)

    def resume_patch(self, run: QueuedRun) -> MergePatch:
        """Return the patch that lets Argo continue with a suspended Workflow."""
        return resuming_patch(run.version)
