"""Argo's Workflows as runs, and the only place of the controller that knows them.

A Workflow that gets a plan is slimmed: kept are the text to read its graph from, and its nodes.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from kfp_placement_controller.observed.pods import ObservedPod, PodMarks
from kfp_placement_controller.sources.queue_source import JsonPatch, Operations, QueuedRun
from kfp_placement_controller.sources.source import (
    ObservedRun,
    PodRun,
    RunEnd,
    RunOwner,
    RunState,
    StepIndex,
)
from kfp_placement_engine.contract.keys import (
    MAX_RUN_NAME_CHARACTERS,
    PREEMPTED_ANNOTATION,
    RUN_NAME_ANNOTATION,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.times import read_moment
from kfp_placement_engine.readers.argo.executor_names import step_of_executor
from kfp_placement_engine.readers.argo.executors import is_unmarked_executor
from kfp_placement_engine.readers.argo.holds import (
    HELD_SELECTOR,
    PENDING,
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
from kfp_placement_engine.readers.argo.keys import (
    NODE_NAME_ANNOTATION,
    WORKFLOW_LABEL,
    WORKFLOW_NAMES,
)
from kfp_placement_engine.readers.argo.kfp_workflow import is_kfp_workflow
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import ArgoNode, read_nodes
from kfp_placement_engine.readers.argo.workflow_outcomes import OutcomeReader
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.run_outcomes import PodIdentity, RunIndex, RunOutcome
from kfp_placement_kube.kinds import Kind

WORKFLOWS = Kind(*WORKFLOW_NAMES)

MAX_NODES_BYTES = 32 * 2**20
"""Of a Workflow's nodes once decompressed; Argo writes at most 1 MB of them, of ten times that."""

MAX_NODES_VALUES = 2_000_000
"""In those nodes. Argo's take 24 bytes of text each; made of empty lists, they would be ten times
as many and need 2 GB."""

MAX_DOCUMENT_BYTES = 8 * 2**20
"""Of a Workflow's spec; etcd takes 1.5 MB, so a larger one was never stored."""

_ENDS = {"Succeeded": RunEnd.SUCCEEDED, "Failed": RunEnd.FAILED, "Error": RunEnd.FAILED}

MAX_PREEMPTED_CHARACTERS = 63
"""Kept from what a Workflow says of its preemption; a uid has 36."""

MAIN_CONTAINER = "main"
"""Where Argo runs the step; the others prepare and clean up."""

_OF_A_BEGINNING = ("startedAt", "nodes", "compressedNodes", "offloadNodeStatusVersion")
"""What Argo writes into the status of a Workflow that it has worked on, and nobody else."""

_GZIP = 16 + zlib.MAX_WBITS
_METADATA = ("name", "generateName", "namespace", "uid", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class WorkflowContent:
    """What is kept from a Workflow.

    Attributes:
        name: of the object.
        document: JSON that the run graph is read from; it does not change while the run goes on.
        nodes: what Argo knows of its steps.
        problem: why it cannot be read at all; "" = it may be read.
    """

    name: str
    document: bytes
    nodes: tuple[ArgoNode, ...] = ()
    problem: str = ""

    def graph(self, options: ReadOptions) -> RunGraph:
        """The steps of the run.

        Raises:
            UnknownLoopError: the options give the width of a loop that the run does not have.
            InputError: malformed, or beyond a limit.
        """
        if self.problem:
            raise InputError(self.problem)
        return read_workflow(orjson.loads(self.document), self.name, options)

    def index(self, graph: RunGraph) -> StepIndex:
        """Finds what the pods of the run are for, by Argo's node names."""
        return WorkflowIndex(graph, self.name)

    def outcome(self, graph: RunGraph, index: RunIndex) -> RunOutcome:
        """What Argo's nodes say of the steps."""
        return OutcomeReader(graph, index).read(self.nodes)


class WorkflowIndex(PodIndex):
    """Finds what the pods of a Workflow are for, by their node names."""

    def of_pod(self, pod: ObservedPod) -> PodIdentity | None:
        """What a pod is; None = not a pod of this Workflow."""
        return self.identify(_node_name(pod))


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

    def observe(self, raw: Mapping[str, Any], *, all_pipelines: bool = False) -> ObservedRun | None:
        """Slim a Workflow; None = it gets no plan.

        Raises:
            InputError: it has no name, no uid, no time of creation, or is too large.
        """
        return observe_workflow(raw, all_pipelines=all_pipelines)

    def observe_any(self, raw: Mapping[str, Any], *, all_pipelines: bool = False) -> ObservedRun:
        """Slim a Workflow, planned or not; one that cannot be read cannot be planned.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        return observe_any_workflow(raw, all_pipelines=all_pipelines)

    def pipeline_end(self, raw: Mapping[str, Any]) -> datetime | None:
        """When a Workflow of KFP has ended; None = it goes on, or others have made it."""
        status = _mapping(raw.get("status"))
        phase = status.get("phase")
        if not isinstance(phase, str) or phase not in _ENDS or not _is_pipeline(raw):
            return None
        return read_moment(status.get("finishedAt"))

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
        return step_of_executor(_node_name(pod), pod.labels.get(WORKFLOW_LABEL, ""), steps)

    def observe_queued(self, raw: Mapping[str, Any]) -> QueuedRun:
        """How far a Workflow is, with or without our mark.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        return observe_queued_workflow(raw)

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
        return releasing_patch(run.version, says_so=bool(run.held_message))

    def suspend_patch(self, run: QueuedRun, preempted_for: str) -> JsonPatch:
        """Let Argo make no new pods for a Workflow; it still reads the existing ones."""
        return suspending_patch(run.version, preempted_for)

    def resume_patch(self, run: QueuedRun) -> JsonPatch:
        """Let Argo go on with it."""
        return resuming_patch(run.version)


def observe_queued_workflow(raw: Mapping[str, Any]) -> QueuedRun:
    """How far a Workflow is, with or without our mark.

    Raises:
        InputError: it has no name, no uid or no time of creation.
    """
    key, uid, created_at = _identity(raw)
    metadata = _mapping(raw.get("metadata"))
    spec, status = _mapping(raw.get("spec")), _mapping(raw.get("status"))
    annotations = _mapping(metadata.get("annotations"))
    return QueuedRun(
        key=key,
        owner=RunOwner(WORKFLOWS, key.name, uid),
        version=_text(metadata.get("resourceVersion")),
        submitted_at=created_at,
        is_held=is_held(raw),
        held_message=held_message(raw),
        is_suspended=spec.get("suspend") is True,
        preempted_for=_text(annotations.get(PREEMPTED_ANNOTATION))[:MAX_PREEMPTED_CHARACTERS],
        is_terminated=spec.get("activeDeadlineSeconds") == 0 or bool(spec.get("shutdown")),
        has_begun=not is_for_others(raw) and any(status.get(each) for each in _OF_A_BEGINNING),
        end=_end(raw, _text(status.get("phase"))),
        display_name=_text(annotations.get(RUN_NAME_ANNOTATION))[:MAX_RUN_NAME_CHARACTERS],
    )


def _end(raw: Mapping[str, Any], phase: str) -> RunEnd | None:
    """How a Workflow has ended; Argo does not look at one that says so by its label alone."""
    return _ENDS.get(phase, RunEnd.FAILED if has_ended(raw) else None)


def observe_workflow(raw: Mapping[str, Any], *, all_pipelines: bool = False) -> ObservedRun | None:
    """Slim a Workflow; None = it gets no plan.

    Args:
        raw: the Workflow.
        all_pipelines: if KFP has made it, all its steps count as marked; else our mark is needed.

    Raises:
        InputError: it has no name, no uid, no time of creation, or is too large.
    """
    document = _dumped(raw)
    is_marked, all_marked = _is_marked(document), all_pipelines and _is_pipeline(raw)
    if not is_marked and not all_marked:
        return None
    return _observed(raw, document, is_marked=is_marked, all_marked=all_marked)


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
    try:
        document = _dumped(raw)
        all_marked = all_pipelines and _is_pipeline(raw)
        return _observed(raw, document, is_marked=_is_marked(document), all_marked=all_marked)
    except InputError as error:
        unread = {**raw, "spec": {}, "status": {"phase": _mapping(raw.get("status")).get("phase")}}
        observed = _observed(unread, b"", is_marked=False, all_marked=False)
        content = WorkflowContent(observed.key.name, b"", problem=str(error))
        return replace(observed, content=content)


def _is_marked(document: bytes) -> bool:
    return SCHEDULER_LABEL.encode() in document


def _is_pipeline(raw: Mapping[str, Any]) -> bool:
    return is_kfp_workflow(_mapping(raw.get("spec")))


def _observed(
    raw: Mapping[str, Any], document: bytes, *, is_marked: bool, all_marked: bool
) -> ObservedRun:
    spec, status = _mapping(raw.get("spec")), _mapping(raw.get("status"))
    key, uid, created_at = _identity(raw)
    name = key.name
    if len(document) > MAX_DOCUMENT_BYTES:
        raise InputError(f"Workflow {name!r:.80} has {len(document)} bytes; it cannot be planned")
    annotations = _mapping(_mapping(raw.get("metadata")).get("annotations"))
    nodes, problem = _nodes(status)
    state = _state(spec, status, nodes, problem)
    if state.end is not None and not is_marked and not all_marked:
        document, nodes = b"", ()
    return ObservedRun(
        key=key,
        owner=RunOwner(WORKFLOWS, name, uid),
        submitted_at=created_at,
        state=state,
        content=WorkflowContent(name, document, nodes),
        display_name=_text(annotations.get(RUN_NAME_ANNOTATION))[:MAX_RUN_NAME_CHARACTERS],
        is_marked=is_marked,
        all_marked=all_marked,
    )


def _identity(raw: Mapping[str, Any]) -> tuple[RunKey, str, datetime]:
    """The key, uid and time of creation of a Workflow.

    Raises:
        InputError: it does not have all of them.
    """
    metadata = _mapping(raw.get("metadata"))
    namespace, name, uid = (_text(metadata.get(key)) for key in ("namespace", "name", "uid"))
    created_at = read_moment(metadata.get("creationTimestamp"))
    if not name or not uid or created_at is None:
        raise InputError(f"Workflow {name!r:.80} has no name, uid or time of creation")
    return RunKey(namespace, name), uid, created_at


def _state(
    spec: Mapping[str, Any], status: Mapping[str, Any], nodes: Sequence[ArgoNode], problem: str
) -> RunState:
    phase = _text(status.get("phase"))
    end = _ENDS.get(phase)
    return RunState(
        held="" if end else _why_held(spec, phase),
        idle="" if phase or nodes else "Argo has not begun it",
        started_at=read_moment(status.get("startedAt")),
        finished_at=read_moment(status.get("finishedAt")),
        end=end,
        unreadable=problem,
    )


def _why_held(spec: Mapping[str, Any], phase: str) -> str:
    """Why Argo makes no pods for a Workflow that has not ended, or ""."""
    if spec.get("suspend") is True:
        return "spec.suspend is set"
    if phase == PENDING:
        # By a limit of parallel runs, a lock, or a claim that cannot be made. Every run that it
        # may begin gets the phase Running at once.
        return "Argo lets it wait (phase Pending)"
    return ""


def _dumped(raw: Mapping[str, Any]) -> bytes:
    """What the graph is read from, as JSON: a tenth of the memory that the objects take."""
    metadata = _mapping(raw.get("metadata"))
    stored = _mapping(raw.get("status")).get("storedWorkflowTemplateSpec")
    document: dict[str, Any] = {
        "apiVersion": raw.get("apiVersion", WORKFLOWS.api_version),
        "kind": "Workflow",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": _mapping(raw.get("spec")),
    }
    if stored is not None:
        document["status"] = {"storedWorkflowTemplateSpec": stored}
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        return _dumped_deep(document)


def _dumped_deep(document: Mapping[str, Any]) -> bytes:
    """The same where it is nested more than 254 deep, which orjson reads but does not write."""
    try:
        return json.dumps(document, separators=(",", ":")).encode()
    except RecursionError as error:
        raise InputError("a Workflow is nested too deeply") from error


def _nodes(status: Mapping[str, Any]) -> tuple[tuple[ArgoNode, ...], str]:
    try:
        if status.get("offloadNodeStatusVersion"):
            return (), "Argo keeps this Workflow's nodes in its database; only its pods are seen"
        packed = status.get("compressedNodes")
        if isinstance(packed, str) and packed:
            return read_nodes(orjson.loads(_unpacked(packed))), ""
        return read_nodes(status.get("nodes")), ""
    except (InputError, ValueError) as error:
        return (), f"this Workflow's nodes cannot be read: {error!s:.200}"


def _unpacked(packed: str) -> bytes:
    """Decompress, but never to more than `MAX_NODES_BYTES` or `MAX_NODES_VALUES`.

    Raises:
        InputError: it is not gzip data in base64, or too large.
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(base64.b64decode(packed), MAX_NODES_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InputError(f"status.compressedNodes is malformed: {error}") from error
    if unpacker.unconsumed_tail:
        raise InputError(f"status.compressedNodes is larger than {MAX_NODES_BYTES} bytes")
    # Commas within text count as well: no more than this can be in it, and counting takes no time.
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MAX_NODES_VALUES:
        raise InputError(
            f"status.compressedNodes has {values} values; at most {MAX_NODES_VALUES} are read"
        )
    return text


def _node_name(pod: ObservedPod) -> str:
    return pod.annotations.get(NODE_NAME_ANNOTATION, "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
