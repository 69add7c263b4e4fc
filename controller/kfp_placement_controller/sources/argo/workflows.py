"""Workflows as runs: which get a plan, how they are doing, and what is kept to read them from."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS, WorkflowObject
from kfp_placement_controller.sources.source import ObservedRun, RunState, StepIndex
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.argo.holds import PENDING
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import ArgoNode, read_nodes
from kfp_placement_engine.readers.argo.workflow_outcomes import OutcomeReader
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, RunIndex, RunOutcome
from kfp_placement_engine.units.times import read_moment

MAX_DOCUMENT_BYTES = 8 * 2**20
"""Of a Workflow's spec; etcd takes 1.5 MB, so a larger one was never stored."""

MAX_NODES_BYTES = 32 * 2**20
"""Of a Workflow's nodes once decompressed; Argo writes at most 1 MB of them, of ten times that."""

MAX_NODES_VALUES = 2_000_000
"""In those nodes. Argo's take 24 bytes of text each; made of empty lists, they would be ten times
as many and need 2 GB."""

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
        return self.identify(node_name(pod))


def node_name(pod: ObservedPod) -> str:
    """The name of the Workflow's node that a pod is made for; "" = it is of none."""
    return pod.annotations.get(NODE_NAME_ANNOTATION, "")


def document_of(workflow: WorkflowObject) -> bytes:
    """What the graph is read from, as JSON: a tenth of the memory that the objects take.

    Raises:
        InputError: it is nested too deeply.
    """
    metadata = workflow.metadata
    stored = workflow.status.get("storedWorkflowTemplateSpec")
    document: dict[str, Any] = {
        "apiVersion": workflow.raw.get("apiVersion", WORKFLOWS.api_version),
        "kind": "Workflow",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": workflow.spec,
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


def nodes_of(workflow: WorkflowObject) -> tuple[tuple[ArgoNode, ...], str]:
    """What Argo knows of the steps, and why that cannot be read, or ""."""
    status = workflow.status
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


def observe_workflow(
    raw: Mapping[str, Any], *, all_pipelines: bool = False, unplanned: bool = False
) -> ObservedRun | None:
    """Slim a Workflow; None = it gets no plan.

    Args:
        raw: the Workflow.
        all_pipelines: if KFP has made it, all its steps count as marked; else our mark is needed.
        unplanned: slim it even if it gets no plan; if it has ended, no step is kept then. One that
            cannot be read says so when it is planned: it waits in a queue until somebody says what
            it needs, or that nobody can.

    Raises:
        InputError: it has no name, no uid or no time of creation; or, unless `unplanned`, it is
            too large.
    """
    workflow = WorkflowObject.of(raw)
    all_marked = all_pipelines and workflow.is_pipeline
    try:
        document = document_of(workflow)
        is_marked = SCHEDULER_LABEL.encode() in document
        if not (is_marked or all_marked or unplanned):
            return None
        return _observed(workflow, document, is_marked=is_marked, all_marked=all_marked)
    except InputError as error:
        if not unplanned:
            raise
        unread = replace(workflow, spec={}, status={"phase": workflow.phase})
        observed = _observed(unread, b"", is_marked=False, all_marked=False)
        content = WorkflowContent(observed.key.name, b"", problem=str(error))
        return replace(observed, content=content)


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
