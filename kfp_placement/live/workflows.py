"""What the Workflows of runs say beside their plans: runs that have none, and why one failed."""

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.finding import NAMES_PAGE
from kfp_placement.live.kinds import (
    WORKFLOW_METADATA,
    WORKFLOWS,
    Api,
    JsonObject,
    object_if_allowed,
    objects,
)
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
from kfp_placement_kube.kinds import NAMESPACES

PLANNED_AFTER_SECONDS = 30.0
"""A planner that works has planned a new run by then."""

MAX_LOOKED_AT = 20
"""Workflows that are read in full, the latest first: each may have 1 MB."""

_NOT_ENDED = f"{COMPLETED_LABEL}!=true"
_WORKFLOW = Place("workflow")
_NAMESPACE = Place("namespace")
_WRONG = ("Failed", "Error")
_GROUPS = ("DAG", "Retry", "StepGroup", "Steps", "TaskGroup")
"""Types of nodes that only repeat that something within them failed."""

_UNMARKED = (
    "none of its steps is marked and its namespace lacks the label"
    f" {PIPELINES_LABEL}={ALL_PIPELINES}"
)
_NOT_PLANNED = (
    f"its namespace takes no part (label {ENABLED_LABEL}), or the planner is not running (kubectl"
    " -n kfp-placement get pods)"
)


def unplanned_runs(
    api: Api, namespace: str, planned: Collection[RunKey], now: datetime
) -> tuple[RunKey, ...]:
    """Runs that go on and should have a plan by now; none where Workflows may not be read.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.
        planned: runs that have a plan.
        now: the time.

    Raises:
        ClusterError: no answer.
    """
    try:
        unplanned = [each for each in _going_on(api, namespace, now) if each[1] not in planned]
    except (ClusterForbiddenError, ClusterMissingError):
        return ()
    latest = [name for _, name in sorted(unplanned, reverse=True)[:MAX_LOOKED_AT]]
    return tuple(each for each in latest if is_to_be_planned(api, *each))


def unplanned_text(runs: Collection[RunKey], named: str) -> str:
    """A sentence about runs that should have a plan; "" = there are none.

    Args:
        runs: these.
        named: the same, for people.
    """
    if not runs:
        return ""
    which, has = ("1 run", "has") if len(runs) == 1 else (f"{len(runs)} runs", "have")
    after = f"{whole_seconds_text(PLANNED_AFTER_SECONDS)} after the submission"
    return f"{which} should have a plan and {has} none {after} ({named}): {_NOT_PLANNED}"


def why_no_plan(api: Api, namespace: str, name: str) -> str:
    """What may keep a run from having a plan.

    Raises:
        ClusterError: no answer.
    """
    planned = is_to_be_planned(api, namespace, name)
    if planned is None:
        return f"{_UNMARKED}, {_NOT_PLANNED}"
    return _NOT_PLANNED if planned else _UNMARKED


def is_to_be_planned(api: Api, namespace: str, name: str) -> bool | None:
    """Whether a run is one that the planner plans, as it decides that; None = nobody may know.

    Raises:
        ClusterError: no answer.
    """
    raw = object_if_allowed(api, WORKFLOWS, name, namespace)
    if raw is None:
        return None
    return SCHEDULER_LABEL in json.dumps(raw) or _is_of_all_pipelines(api, namespace, raw)


def _is_of_all_pipelines(api: Api, namespace: str, workflow: JsonObject) -> bool:
    """Whether it is a KFP run where all of them are planned; False where we may not know."""
    try:
        is_kfp = is_kfp_workflow(Fields(workflow, _WORKFLOW).fields("spec").raw)
        raw = object_if_allowed(api, NAMESPACES, namespace) if is_kfp else None
        labels = Fields(raw or {}, _NAMESPACE).fields("metadata").text_mapping("labels")
    except InputError:
        return False
    return labels.get(PIPELINES_LABEL) == ALL_PIPELINES


def failure_of(api: Api, run: RunView) -> str:
    """What Argo says of a run that failed; "" = it did not, or its Workflow cannot be read.

    That is the message of the first node that failed on its own, else the Workflow's own.

    Raises:
        ClusterError: no answer.
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
    """`fetch-driver(0): pods ... is forbidden`; "" = no node says anything that can be read."""
    try:
        failed = [
            node
            for node in read_nodes(nodes)
            if node.phase in _WRONG and node.type not in _GROUPS and node.message.strip()
        ]
    except InputError:
        return ""
    if not failed:
        return ""
    never = datetime.max.replace(tzinfo=UTC)
    first = min(failed, key=lambda node: (node.finished_at or never, node.name))
    path = first.name.removeprefix(f"{run}.").removeprefix("root.")
    return f"{path}: {first.message.strip()}"


def _going_on(api: Api, namespace: str, now: datetime) -> Iterator[tuple[str, RunKey]]:
    """When each was made, and its name; those made a moment ago are left out."""
    found = objects(
        api, WORKFLOW_METADATA, namespace=namespace, label_selector=_NOT_ENDED, limit=NAMES_PAGE
    )
    for raw in found:
        try:
            metadata = Fields(raw, _WORKFLOW).fields("metadata")
            made = metadata.text("creationTimestamp")
            age_seconds = (now - parse_time(made)).total_seconds()
            key = RunKey(metadata.text("namespace"), metadata.text("name"))
        except InputError:
            continue
        if age_seconds >= PLANNED_AFTER_SECONDS:
            yield made, key
