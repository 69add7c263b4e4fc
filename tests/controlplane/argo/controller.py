"""One look at a Workflow: pods are read, what may start is started, the status is written.

As in Argo, everything is kept in the Workflow's status and nothing in the controller: a look at the
same Workflow and the same pods gives the same status, and whoever restarts the controller loses
nothing. `reconcile` is one such look.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.controlplane.argo.calls import Call, Options
from tests.controlplane.argo.claims import create_claims, delete_claims
from tests.controlplane.argo.elsewhere import store_templates
from tests.controlplane.argo.exceptions import ArgoError, ParallelismReached
from tests.controlplane.argo.executor import Executor
from tests.controlplane.argo.observation import read_pods, read_results
from tests.controlplane.argo.settings import ControllerSettings
from tests.controlplane.argo.state import (
    ANNOTATION_NODE_ID,
    LABEL_COMPLETED,
    LABEL_PHASE,
    Cluster,
    Json,
    Run,
    is_finished,
)
from tests.controlplane.argo.strategic_merge import strategic_merge
from tests.controlplane.argo.substitution import substitute
from tests.controlplane.argo.templates import global_parameters
from tests.controlplane.times import write_time

HOLD_LABEL = "workflows.argoproj.io/controller-instanceid"
ENDED = ("Succeeded", "Failed", "Error")
WORKFLOW_PHASES = {"Skipped": "Succeeded", "Omitted": "Succeeded"}
"""Phases of the entry's node that have another name as the Workflow's."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one look at a Workflow.

    Attributes:
        workflow: the Workflow as it shall be written back.
        changed: whether it differs from what was read.
        requeue_seconds: time after which to look again though nothing has happened, or None.
    """

    workflow: Json
    changed: bool
    requeue_seconds: float | None


def reconcile(
    workflow: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    results: Iterable[Mapping[str, Any]],
    cluster: Cluster,
    now: datetime,
    settings: ControllerSettings | None = None,
) -> Outcome:
    """Look at a Workflow once.

    Args:
        workflow: the Workflow as read; it is not changed.
        pods: pods of the Workflow, as far as they have been seen.
        results: WorkflowTaskResults of the Workflow.
        cluster: cluster in which pods and claims are created.
        now: the time.
        settings: the controller's settings; KFP 2.17's by default.
    """
    settings = settings or ControllerSettings()
    copied = _copied(workflow)
    if is_left_alone(workflow):
        return Outcome(copied, changed=False, requeue_seconds=None)
    copied["spec"] = _with_defaults(copied["spec"], settings)
    store_templates(copied, cluster)
    by_node = {pod["metadata"]["annotations"][ANNOTATION_NODE_ID]: dict(pod) for pod in pods}
    run = Run(copied, by_node, cluster, now)
    _look(run, results)
    return Outcome(run.workflow, run.workflow != workflow, run.requeue)


_ARGUMENTS = ("parameters", "artifacts")


def is_left_alone(workflow: Mapping[str, Any]) -> bool:
    """Return whether a Workflow is another controller's, or has ended."""
    labels = workflow["metadata"].get("labels") or {}
    return HOLD_LABEL in labels or labels.get(LABEL_COMPLETED) == "true"


def _with_defaults(spec: Json, settings: ControllerSettings) -> Json:
    merged: Json = strategic_merge(dict(settings.workflow_defaults.get("spec") or {}), spec)
    return merged


def _copied(workflow: Mapping[str, Any]) -> Json:
    """A copy that shares only what is never changed in place."""
    status = dict(workflow.get("status") or {})
    if "nodes" in status:
        status["nodes"] = {key: dict(node) for key, node in (status["nodes"] or {}).items()}
    metadata = copy.deepcopy(workflow["metadata"])
    spec = dict(workflow["spec"])
    if isinstance(spec.get("arguments"), dict):
        # Argo reads into types: what these do not know is gone.
        spec["arguments"] = {
            key: value for key, value in spec["arguments"].items() if key in _ARGUMENTS
        }
    return {**workflow, "metadata": metadata, "status": status, "spec": spec}


def _look(run: Run, results: Iterable[Mapping[str, Any]]) -> None:
    run.globals = global_parameters(run.workflow)
    _substitute_spec(run)
    read_results(run, results)
    if not run.status.get("phase"):
        _mark_workflow(run, "Running", "")
        metadata, added = run.workflow["metadata"], run.spec.get("workflowMetadata") or {}
        for kind in ("labels", "annotations"):
            metadata[kind] = {**(metadata.get(kind) or {}), **(added.get(kind) or {})}
        annotations = metadata["annotations"]
        # As Argo 4.1 does, whatever form the Workflow asks for.
        annotations["workflows.argoproj.io/pod-name-format"] = "v2"
    else:
        read_pods(run)
    if run.deadline is not None and not run.is_late:
        run.look_again((run.deadline - run.now).total_seconds() + 1.0)
    if run.spec.get("suspend"):
        return
    create_claims(run)
    if run.status["phase"] == "Pending":
        _mark_workflow(run, "Running", "")
    _execute(run)


def _substitute_spec(run: Run) -> None:
    """Global names in the spec outside of templates."""
    templates = run.spec.get("templates")
    bare = {key: value for key, value in run.spec.items() if key != "templates"}
    filled = substitute(bare, run.globals)
    if filled is not bare:
        run.spec.update(filled)
        run.spec["templates"] = templates


def _execute(run: Run) -> None:
    arguments = run.spec.get("arguments") or {}
    executor, handler = Executor(run), run.spec.get("onExit")
    try:
        node = executor.execute(
            run.name, Call(run.spec.get("entrypoint", ""), arguments), Options()
        )
        if handler and is_finished(node):
            call, options = Call(handler, arguments), Options(on_exit=True, hooked=True)
            ended = executor.execute(f"{run.name}.onExit", call, options)
            node = node if is_finished(ended) else ended
    except ParallelismReached:
        return
    except ArgoError as error:
        _mark_workflow(run, "Error", f"error in entry template execution: {error}")
        return
    if node is None or not is_finished(node):
        return
    phase = str(WORKFLOW_PHASES.get(node["phase"], node["phase"]))
    _mark_workflow(run, phase, "" if phase == "Succeeded" else str(node.get("message", "")))
    if run.status["phase"] == "Succeeded":
        delete_claims(run)


def _mark_workflow(run: Run, phase: str, message: str) -> None:
    """Give the Workflow a phase."""
    status = run.status
    status["phase"] = phase
    labels = run.workflow["metadata"].setdefault("labels", {})
    labels[LABEL_PHASE] = phase
    labels.setdefault(LABEL_COMPLETED, "false")
    if not status.get("startedAt") and phase != "Pending":
        status["startedAt"] = write_time(run.now)
    if message:
        status["message"] = message
    else:
        status.pop("message", None)
    entry = run.node(run.name)
    if phase == "Error" and entry is not None and entry["phase"] == "Running":
        entry |= {"phase": "Error", "message": "Workflow operation error"}
    if phase in ENDED:
        status["finishedAt"] = write_time(run.now)
        labels[LABEL_COMPLETED] = "true"
        conditions = [
            entry for entry in status.get("conditions") or [] if entry["type"] != "Completed"
        ]
        status["conditions"] = [*conditions, {"type": "Completed", "status": "True"}]
