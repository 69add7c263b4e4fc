"""What is kept from a Workflow that gets a plan: the text to read its graph from, and its nodes."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS, WorkflowObject
from kfp_placement_controller.sources.source import StepIndex
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import ArgoNode, read_nodes
from kfp_placement_engine.readers.argo.workflow_outcomes import OutcomeReader
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.run_outcomes import PodIdentity, RunIndex, RunOutcome

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
