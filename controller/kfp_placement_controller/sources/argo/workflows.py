"""Workflows slimmed to runs: whether a run gets a plan, its state, and its content.

The content is kept as JSON, and read as a graph only when the run is planned.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from kfp_placement_controller.observed.packed import packed
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.argo.compressed_nodes import unpack_nodes
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS, WorkflowObject
from kfp_placement_controller.sources.source import (
    ObservedRun,
    ObservedTemplates,
    RunContent,
    RunState,
    StepIndex,
    TemplateKey,
)
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.argo.holds import PENDING, is_held
from kfp_placement_engine.readers.argo.keys import CLUSTER_TEMPLATE_NAMES, NODE_NAME_ANNOTATION
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.references.template_library import referred
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import ArgoNode, read_nodes
from kfp_placement_engine.readers.argo.workflow_outcomes import OutcomeReader
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.options import ArgoObjects, ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, RunIndex, RunOutcome
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import JsonObject, key_of

MAX_DOCUMENT_BYTES = 8 * 2**20
"""Largest Workflow that is read, without its nodes; etcd takes 1.5 MB, so none is larger."""

PACKED_FROM_BYTES = 64 * 2**10
"""Size from which the JSON of a Workflow is kept compressed, to a tenth: in 1 ms, and seldom."""

_STORED = ("storedWorkflowTemplateSpec", "storedTemplates")
"""Fields of a status in which Argo stores what a Workflow takes from other objects."""

_FORGOTTEN = "others of its namespace take the memory; it is read again when its object changes"

_REFERENCE = b'emplateRef"'
_ELSEWHERE = Place("the cluster")

_ELSEWHERE_NODES = "Argo keeps this Workflow's nodes in its database; only its pods are seen"

_COMPRESSED_NODES = b"compressed "
"""Beginning of nodes that Argo has compressed itself, as no JSON begins."""

_ADVICE = "the planner reads it if it exists and features/workflow-templates is installed"

_METADATA = ("name", "generateName", "namespace", "uid", "labels", "annotations")


@dataclass(slots=True)
class WorkflowTexts:
    """The texts of a Workflow, each compressed if it is large.

    Attributes:
        document: JSON that the run graph is read from; it stays the same until the run ends.
        nodes: JSON of Argo's records of the steps, or what Argo has compressed itself; b"" = none.
        is_forgotten: whether the texts are no longer kept.
    """

    document: bytes
    nodes: bytes = b""
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowContent:
    """The part of a Workflow that is kept.

    Attributes:
        name: name of the Workflow.
        texts: texts that graph and outcome are read from, shared by all copies of this content.
        document_bytes: size of the document before it is compressed.
        problem: reason why the Workflow cannot be read; "" = there is none so far.
        package: JSON of the specification of the run's pipeline, of which the Workflow is only an
            outline; b"" = the Workflow is read alone.
        templates: JSON of WorkflowTemplates that the Workflow refers to.
    """

    name: str
    texts: WorkflowTexts
    document_bytes: int = 0
    problem: str = ""
    package: bytes = b""
    templates: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that are read for the graph."""
        return self.document_bytes + len(self.package) + sum(map(len, self.templates))

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept in memory for this run alone."""
        return len(self.texts.document) + len(self.texts.nodes)

    @property
    def is_forgotten(self) -> bool:
        """True if the content is no longer kept."""
        return self.texts.is_forgotten

    def forget(self) -> None:
        """Give the memory back; nothing can be read from the content any more."""
        self.texts.document, self.texts.nodes, self.texts.is_forgotten = b"", b"", True

    def with_package(self, package: bytes) -> "WorkflowContent":
        """Return the content of a run that is read together with its package."""
        return self if package is self.package else replace(self, package=package)

    def with_templates(self, templates: tuple[bytes, ...]) -> "WorkflowContent":
        """Return the content of a run that is read together with templates of other objects."""
        return self if templates == self.templates else replace(self, templates=templates)

    def is_rewritten(self, since: RunContent) -> bool:
        """Return whether what the run is to do is described otherwise than in `since`.

        Argo's own marks do not count, nor do labels and annotations: they decide nothing.
        """
        if not isinstance(since, WorkflowContent):
            return True
        before, now = since.texts.document, self.texts.document
        return before != now and _description(_text(before)) != _description(_text(now))

    def graph(self, options: ReadOptions) -> RunGraph:
        """Read the graph of the run's steps.

        Raises:
            UnknownLoopError: the options give the width of a loop that the run does not have.
            InputError: the Workflow is malformed, or beyond a limit.
        """
        if self.problem or self.is_forgotten:
            raise InputError(self.problem or _FORGOTTEN)
        if self.package:
            options = replace(options, package=orjson.loads(self.package))
        objects = tuple(Fields(orjson.loads(each), _ELSEWHERE) for each in self.templates)
        options = replace(options, templates=ArgoObjects(objects, advice=_ADVICE))
        return read_workflow(orjson.loads(_text(self.texts.document)), self.name, options)

    def index(self, graph: RunGraph) -> StepIndex:
        """Return the index that tells the step of each pod, by Argo's node names."""
        return WorkflowIndex(graph, self.name)

    def outcome(self, graph: RunGraph, index: RunIndex) -> RunOutcome:
        """Read the outcome of each step from Argo's nodes."""
        nodes, problem = self.nodes()
        return replace(OutcomeReader(graph, index).read(nodes), problem=problem)

    def nodes(self) -> tuple[Sequence[ArgoNode], str]:
        """Read Argo's records of the steps, and why they cannot be read; "" = they can.

        That takes a tenth of a second for 10 MB: so they are read when the run is evaluated, and
        not at each change of the object.
        """
        text = self.texts.nodes
        if not text:
            return (), ""
        is_compressed = text.startswith(_COMPRESSED_NODES)
        try:
            compressed = text.removeprefix(_COMPRESSED_NODES).decode() if is_compressed else ""
            plain = unpack_nodes(compressed) if is_compressed else _text(text)
            return read_nodes(orjson.loads(plain), self.name), ""
        except (InputError, ValueError) as error:
            return (), f"this Workflow's nodes cannot be read: {error!s:.200}"


class WorkflowIndex(PodIndex):
    """Finder of the step or group that a pod of a Workflow is for, by Argo's node names."""

    def of_pod(self, pod: ObservedPod) -> PodIdentity | None:
        """Return the step or group of a pod and its role, or None if the Workflow has none."""
        return self.identify(node_name(pod))


def node_name(pod: ObservedPod) -> str:
    """Return the name of the Workflow's node that a pod is made for; "" = there is none."""
    return pod.annotations.get(NODE_NAME_ANNOTATION, "")


def document_of(workflow: WorkflowObject) -> bytes:
    """Write the parts of a Workflow that its graph is read from as JSON, metadata last.

    The text takes a tenth of the memory of the Python objects.

    Raises:
        InputError: the Workflow is nested too deeply.
    """
    metadata = workflow.metadata
    stored = {key: workflow.status[key] for key in _STORED if workflow.status.get(key)}
    document: JsonObject = {
        "apiVersion": workflow.raw.get("apiVersion", WORKFLOWS.api_version),
        "kind": "Workflow",
        "spec": workflow.spec,
    }
    if stored:
        document["status"] = stored
    document["metadata"] = {key: metadata[key] for key in _METADATA if key in metadata}
    return _dumped(document)


def _description(document: bytes) -> bytes:
    """Return the part of a document that says what the run is to do."""
    return document[: document.rfind(b',"metadata":{')]


def _dumped(document: object) -> bytes:
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        return _dumped_deep(document)


def observe_templates(kind: str, raw: JsonObject) -> ObservedTemplates:
    """Slim a WorkflowTemplate or ClusterWorkflowTemplate to what a run takes from it.

    Args:
        kind: kind of the object, by its name.
        raw: the object.

    Raises:
        InputError: it is nested too deeply, or too large.
    """
    namespace, name = key_of(raw)
    # Runs look only in their own namespace, so that of the object need not be compared again.
    kept = {"kind": kind, "metadata": {"name": name}, "spec": raw.get("spec")}
    document = _dumped(kept)
    if len(document) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{kind} {name!r:.80} has {len(document)} bytes")
    return ObservedTemplates(document, _refers_to(document, raw.get("spec"), namespace))


def _refers_to(document: bytes, spec: object, namespace: str) -> frozenset[TemplateKey]:
    """Return the objects that a spec refers to; `document` is searched first, which is fast."""
    if _REFERENCE not in document:
        return frozenset()
    return frozenset(
        TemplateKey(kind, "" if kind == CLUSTER_TEMPLATE_NAMES.kind else namespace, name)
        for kind, name in referred(spec)
    )


def _dumped_deep(document: object) -> bytes:
    """Write JSON that is nested more than 254 deep: orjson reads such text but cannot write it."""
    try:
        return json.dumps(document, separators=(",", ":")).encode()
    except RecursionError as error:
        raise InputError("a Workflow is nested too deeply") from error


def _nodes_text(status: Mapping[str, Any]) -> bytes:
    """Return the text of Argo's records of the steps as it is kept."""
    if status.get("offloadNodeStatusVersion"):
        return b""
    compressed = status.get("compressedNodes")
    if isinstance(compressed, str) and compressed:
        return _COMPRESSED_NODES + compressed.encode(errors="replace")
    nodes = status.get("nodes")
    return _kept(_dumped(nodes)) if nodes else b""


def observe_workflow(
    raw: JsonObject, *, all_pipelines: bool = False, unplanned: bool = False
) -> ObservedRun | None:
    """Slim a Workflow to a run; None = the run gets no plan.

    Args:
        raw: the Workflow.
        all_pipelines: whether all steps count as marked, if KFP has made the Workflow.
            Otherwise only a Workflow with our mark gets a plan.
        unplanned: whether to slim Workflows that get no plan as well; of those that have ended, no
            step is kept. Of one that cannot be read, `content.graph` raises the reason.

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
        return _observed(unread, b"", is_marked=False, all_marked=False, problem=str(error))


def _observed(
    workflow: WorkflowObject,
    document: bytes,
    *,
    is_marked: bool,
    all_marked: bool,
    problem: str = "",
) -> ObservedRun:
    key, owner, created_at = workflow.identity()
    if len(document) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"Workflow {key.name!r:.80} has {len(document)} bytes; it cannot be planned"
        )
    texts = WorkflowTexts(_kept(document), _nodes_text(workflow.status))
    state = _state(workflow, has_nodes=bool(texts.nodes))
    if state.end is not None and not is_marked and not all_marked:
        document, texts = b"", WorkflowTexts(b"")
    return ObservedRun(
        key=key,
        owner=owner,
        submitted_at=created_at,
        state=state,
        content=WorkflowContent(key.name, texts, len(document), problem),
        display_name=workflow.display_name,
        is_marked=is_marked,
        all_marked=all_marked,
        package_id=workflow.package_id,
        refers_to=frozenset()
        if state.end is not None or any(workflow.status.get(each) for each in _STORED)
        else _refers_to(document, workflow.spec, key.namespace),
    )


def _is_packed(document: bytes) -> bool:
    return document.startswith(b"x")  # As JSON never does.


def _text(document: bytes) -> bytes:
    """Return the JSON of a document as it is kept."""
    return zlib.decompress(document) if _is_packed(document) else document


def _kept(document: bytes) -> bytes:
    """Return JSON as it is kept."""
    return packed(document) if len(document) >= PACKED_FROM_BYTES else document


def _state(workflow: WorkflowObject, *, has_nodes: bool) -> RunState:
    status, end = workflow.status, workflow.end
    is_elsewhere = bool(status.get("offloadNodeStatusVersion"))
    return RunState(
        blocked="" if end else _why_blocked(workflow),
        idle="" if workflow.phase or has_nodes else "Argo has not begun it",
        started_at=read_moment(status.get("startedAt")),
        finished_at=read_moment(status.get("finishedAt")),
        end=end,
        unreadable=_ELSEWHERE_NODES if is_elsewhere else "",
    )


def _why_blocked(workflow: WorkflowObject) -> str:
    """Return why a Workflow that has not ended gets no pods from Argo; "" = it gets them."""
    if is_held(workflow.raw):
        return "it waits in its queue"
    if workflow.spec.get("suspend") is True:
        return "spec.suspend is set"
    if workflow.phase == PENDING:
        # A limit of parallel runs, a lock, or a claim that cannot be made holds it back: Argo
        # gives every run that may begin the phase Running at once.
        return "Argo lets it wait (phase Pending)"
    return ""
