"""Which Workflows wait for their queue: one matrix for the webhook and for the admission policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.keys import QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL, INSTANCE_LABEL, WORKFLOW_NAMES

COMPLETED = {COMPLETED_LABEL: "true"}
BEGAN = {"startedAt": "2026-01-05T08:00:00Z"}
PARTLY = {**BEGAN, "phase": "Running", "nodes": {"run": {"id": "run", "phase": "Succeeded"}}}
PHASE_LABEL = "workflows.argoproj.io/phase"
OF_OTHERS = {INSTANCE_LABEL: "mine"}
OF_EXEMPT = {INSTANCE_LABEL: "exempt"}
EXEMPT = [OF_EXEMPT[INSTANCE_LABEL]]
"""Instance ids that the RunQueue of these cases exempts."""


def a_workflow(
    namespace: str, labels: Mapping[str, str] | None = None, **parts: Any
) -> dict[str, Any]:
    """A Workflow as somebody creates it.

    Args:
        namespace: where.
        labels: of it; None = it has none, which is not the same as an empty mapping.
        parts: of it, beside its metadata.
    """
    metadata: dict[str, Any] = {"name": "run", "namespace": namespace}
    if labels is not None:
        metadata["labels"] = dict(labels)
    names = {"apiVersion": WORKFLOW_NAMES.api_version, "kind": WORKFLOW_NAMES.kind}
    return {**names, "metadata": metadata, "spec": {}, **parts}


def is_held(workflow: Mapping[str, Any]) -> bool:
    """Whether a Workflow waits in a queue."""
    labels = workflow["metadata"].get("labels") or {}
    return bool(labels.get(INSTANCE_LABEL) == QUEUE_INSTANCE)


def kept(labels: Mapping[str, str] | None, *, held: bool) -> Mapping[str, str]:
    """The labels that a Workflow keeps when it is admitted, held or not."""
    given = dict(labels or {})
    if held:
        given.pop(INSTANCE_LABEL, None)
    return given


@dataclass(frozen=True)
class NewWorkflow:
    """A Workflow that is created, and whether it is held.

    Attributes:
        name: of the case.
        held: it is.
        labels: of the Workflow; None = it has none.
        parts: of the Workflow, beside its metadata.
    """

    name: str
    held: bool = False
    labels: Mapping[str, str] | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)


NEW = (
    NewWorkflow("plain", held=True),
    NewWorkflow("labels-are-empty", held=True, labels={}),
    NewWorkflow("with-labels", held=True, labels={"pipeline/runid": "1"}),
    NewWorkflow("not-completed", held=True, labels={COMPLETED_LABEL: "false"}),
    NewWorkflow("empty-status", held=True, parts={"status": {}}),
    NewWorkflow("not-started", held=True, parts={"status": {"startedAt": None}}),
    NewWorkflow("suspended", held=True, parts={"spec": {"suspend": True}}),
    NewWorkflow("large", held=True, parts={"spec": {"note": "x" * 1_000_000}}),
    NewWorkflow("of-an-exempt-controller", labels=OF_EXEMPT),
    NewWorkflow("of-another-controller", held=True, labels=OF_OTHERS),
    NewWorkflow("of-a-controller-without-a-name", held=True, labels={INSTANCE_LABEL: ""}),
    NewWorkflow("already-held", held=True, labels={INSTANCE_LABEL: QUEUE_INSTANCE}),
    NewWorkflow("has-ended", labels=COMPLETED),
    NewWorkflow("has-ended-and-began", labels=COMPLETED, parts={"status": BEGAN}),
    NewWorkflow("says-it-has-begun", held=True, parts={"status": BEGAN}),
    NewWorkflow("says-it-runs", held=True, parts={"status": {"phase": "Running"}}),
    NewWorkflow("says-it-has-ended", held=True, parts={"status": {"phase": "Succeeded"}}),
    NewWorkflow("labelled-as-running", held=True, labels={PHASE_LABEL: "Running"}),
    NewWorkflow("tried-again-when-it-was-gone", held=True, parts={"status": PARTLY}),
)


@dataclass(frozen=True)
class ChangedWorkflow:
    """A Workflow that is changed, and whether it is held from then on.

    Attributes:
        name: of the case.
        before: its labels, as they are stored.
        after: its labels afterwards, but for that by which it would be held.
        held: it is.
        parts: of the Workflow, before and after, beside its metadata.
    """

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    held: bool = False
    parts: Mapping[str, Any] = field(default_factory=dict)


CHANGED = (
    ChangedWorkflow("runs", {}, {"x": "y"}),
    ChangedWorkflow("runs-since-a-time", {}, {"x": "y"}, parts={"status": BEGAN}),
    ChangedWorkflow("ends", {}, COMPLETED),
    ChangedWorkflow("has-ended", COMPLETED, {**COMPLETED, "x": "y"}),
    ChangedWorkflow("tried-again", COMPLETED, {}, held=True),
    ChangedWorkflow("tried-again-as-kfp-does", COMPLETED, {COMPLETED_LABEL: "false"}, held=True),
    ChangedWorkflow("tried-again-after-it-ran", COMPLETED, {}, held=True, parts={"status": BEGAN}),
    ChangedWorkflow("tried-again-by-another-controller", COMPLETED, OF_OTHERS, held=True),
    ChangedWorkflow("tried-again-by-an-exempt-controller", COMPLETED, OF_EXEMPT),
    ChangedWorkflow("of-exempt", OF_EXEMPT, {**OF_EXEMPT, "x": "y"}),
    ChangedWorkflow("of-exempt-no-longer", OF_EXEMPT, {}, held=True),
    ChangedWorkflow("runs-and-is-given-to-others", {}, OF_OTHERS),
    ChangedWorkflow("of-others", OF_OTHERS, {**OF_OTHERS, "x": "y"}),
    ChangedWorkflow("of-others-no-longer", OF_OTHERS, {}, held=True),
    ChangedWorkflow("of-others-that-ran", OF_OTHERS, {}, held=True, parts={"status": BEGAN}),
    ChangedWorkflow("of-yet-others", OF_OTHERS, {INSTANCE_LABEL: ""}, held=True),
    ChangedWorkflow("of-others-and-ends", OF_OTHERS, COMPLETED),
)
