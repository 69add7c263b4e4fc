"""Workflows of runs, read for what plans do not say: runs without a plan, and why a run failed."""

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.finding import NAMES_PAGE
from kfp_placement.live.kinds import WORKFLOW_METADATA, WORKFLOWS, object_if_allowed, objects
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    ENABLED_LABEL,
    PIPELINES_LABEL,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL
from kfp_placement_engine.readers.argo.kfp_workflow import is_kfp_workflow
from kfp_placement_engine.readers.argo.workflow_nodes import read_nodes
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.durations import whole_seconds_text
from kfp_placement_engine.units.times import parse_time
from kfp_placement_engine.views.pods import MAX_TEXT_CHARACTERS
from kfp_placement_engine.views.runs import RunView
from kfp_placement_kube.kinds import NAMESPACES, JsonObject

PLANNED_AFTER_SECONDS = 30.0
"""Age of a run by which a working planner has planned it."""

MAX_LOOKED_AT = 20
"""Largest number of Workflows that are read in full: each may have 1 MB."""

_NOT_ENDED = f"{COMPLETED_LABEL}!=true"
_WORKFLOW = Place("workflow")
_NAMESPACE = Place("namespace")
_FAILED = ("Failed", "Error")
_GROUPS = ("DAG", "Retry", "StepGroup", "Steps", "TaskGroup")
"""Types of nodes that contain others, and fail because one of these failed."""

_UNMARKED = (
    "none of its steps is marked and its namespace lacks the label"
    f" {PIPELINES_LABEL}={ALL_PIPELINES}"
)
_NOT_PLANNED = (
    f"its namespace takes no part (label {ENABLED_LABEL}), or the planner is not running (kubectl"
    " -n kfp-placement get pods)"
)


def unplanned_runs(
    api: ClusterApi, namespace: str, planned: Collection[RunKey], now: datetime
) -> tuple[RunKey, ...]:
    """Return runs that have not ended and should have a plan by now.

    There are none if we have no right to read Workflows.

    Args:
        api: cluster to read.
        namespace: namespace of the runs; "" = all.
        planned: runs that have a plan.
        now: present time.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    try:
        unplanned = [each for each in _open_runs(api, namespace, now) if each[1] not in planned]
    except (ClusterForbiddenError, ClusterMissingError):
        return ()
    latest = [key for _, key in sorted(unplanned, reverse=True)[:MAX_LOOKED_AT]]
    return tuple(key for key in latest if is_to_be_planned(api, *key))


def unplanned_text(runs: Collection[RunKey], names: str) -> str:
    """Return a warning about runs that should have a plan; "" if there are none.

    Args:
        runs: runs without a plan.
        names: list of their names for the warning.
    """
    if not runs:
        return ""
    which, has = ("1 run", "has") if len(runs) == 1 else (f"{len(runs)} runs", "have")
    after = f"{whole_seconds_text(PLANNED_AFTER_SECONDS)} after the submission"
    return f"{which} should have a plan and {has} none {after} ({names}): {_NOT_PLANNED}"


def why_no_plan(api: ClusterApi, namespace: str, name: str) -> str:
    """Return what may keep a run from having a plan, as a part of a sentence.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    planned = is_to_be_planned(api, namespace, name)
    if planned is None:
        return f"{_UNMARKED}, {_NOT_PLANNED}"
    return _NOT_PLANNED if planned else _UNMARKED


def is_to_be_planned(api: ClusterApi, namespace: str, name: str) -> bool | None:
    """Return whether the planner plans a run, by the rules of the planner itself.

    The result is None if the Workflow does not exist, or we have no right to read it.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    raw = object_if_allowed(api, WORKFLOWS, name, namespace)
    if raw is None:
        return None
    return SCHEDULER_LABEL in json.dumps(raw) or _is_of_all_pipelines(api, namespace, raw)


def _is_of_all_pipelines(api: ClusterApi, namespace: str, workflow: JsonObject) -> bool:
    """Return whether a Workflow is a KFP run in a namespace whose KFP runs are all planned.

    The result is False if we have no right to read the namespace.
    """
    try:
        is_kfp = is_kfp_workflow(Fields(workflow, _WORKFLOW).fields("spec").raw)
        raw = object_if_allowed(api, NAMESPACES, namespace) if is_kfp else None
        labels = Fields(raw or {}, _NAMESPACE).fields("metadata").text_mapping("labels")
    except InputError:
        return False
    return labels.get(PIPELINES_LABEL) == ALL_PIPELINES


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
        status = Fields(raw, _WORKFLOW).fields("status")
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


def _open_runs(api: ClusterApi, namespace: str, now: datetime) -> Iterator[tuple[str, RunKey]]:
    """Yield creation time and key of each run that has not ended; the newest are left out."""
    workflows = objects(
        api, WORKFLOW_METADATA, namespace=namespace, label_selector=_NOT_ENDED, limit=NAMES_PAGE
    )
    for raw in workflows:
        try:
            metadata = Fields(raw, _WORKFLOW).fields("metadata")
            created = metadata.text("creationTimestamp")
            age_seconds = (now - parse_time(created)).total_seconds()
            key = RunKey(metadata.text("namespace"), metadata.text("name"))
        except InputError:
            continue
        if age_seconds >= PLANNED_AFTER_SECONDS:
            yield created, key
