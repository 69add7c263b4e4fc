"""Runs that should have a plan and have none, and the reasons why a run may have none."""

import json
from collections.abc import Collection, Iterator
from datetime import datetime

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.finding import NAMES_PAGE
from kfp_placement.live.kinds import (
    CORE_EVENTS,
    WORKFLOW_METADATA,
    WORKFLOWS,
    object_if_allowed,
    objects,
)
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    ENABLED_LABEL,
    OVER_BUDGET,
    PIPELINES_LABEL,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL
from kfp_placement_engine.readers.argo.kfp_dialect import dialect_of
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, mapping_or_empty
from kfp_placement_engine.units.durations import whole_seconds_text
from kfp_placement_engine.units.times import parse_time
from kfp_placement_engine.views.formatting import shown
from kfp_placement_kube.events import MAX_NOTE_BYTES
from kfp_placement_kube.kinds import NAMESPACES, JsonObject

PLANNED_AFTER_SECONDS = 30.0
"""Age of a run by which a working planner has planned it."""

MAX_LOOKED_AT = 20
"""Largest number of Workflows that are read in full: each may have 1 MB."""

_NOT_ENDED = f"{COMPLETED_LABEL}!=true"
_WORKFLOW = Place("workflow")
_NAMESPACE = Place("namespace")
_UNMARKED = (
    "none of its steps is marked and its namespace lacks the label"
    f" {PIPELINES_LABEL}={ALL_PIPELINES}"
)
_NOT_PLANNED = (
    f"its namespace takes no part (label {ENABLED_LABEL}), its older runs have as many steps as are"
    " planned for a namespace (plannedSteps of the PlacementPolicy), or the planner is not running"
    " (kubectl -n kfp-placement get pods)"
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
    over_budget = _over_budget(api, namespace, name)
    if over_budget:
        return over_budget
    planned = is_to_be_planned(api, namespace, name)
    if planned is None:
        return f"{_UNMARKED}, {_NOT_PLANNED}"
    return _NOT_PLANNED if planned else _UNMARKED


def _over_budget(api: ClusterApi, namespace: str, name: str) -> str:
    """Return what an event says of a run that is over the budget of its namespace, or ""."""
    about = f"reason={OVER_BUDGET},involvedObject.kind={WORKFLOWS.kind},involvedObject.name={name}"
    try:
        events = objects(api, CORE_EVENTS, namespace=namespace, field_selector=about)
        event = next(events, None)
    except (ClusterForbiddenError, ClusterMissingError):
        return ""
    return "" if event is None else shown(event.get("message", ""), MAX_NOTE_BYTES)


def is_to_be_planned(api: ClusterApi, namespace: str, name: str) -> bool | None:
    """Return whether the planner plans a run; that namespaces must take part is not known here.

    The result is None if the Workflow does not exist, or we have no right to read it.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    raw = object_if_allowed(api, WORKFLOWS, name, namespace)
    if raw is None:
        return None
    # What Argo writes into the status does not count, except for the template of the run.
    template = mapping_or_empty(raw.get("status")).get("storedWorkflowTemplateSpec")
    try:
        is_marked = SCHEDULER_LABEL in json.dumps({**raw, "status": template})
    except RecursionError:
        return False  # nested too deeply for the planner, too
    return is_marked or _is_of_all_pipelines(api, namespace, raw)


def _is_of_all_pipelines(api: ClusterApi, namespace: str, workflow: JsonObject) -> bool:
    """Return whether a Workflow is a KFP run in a namespace whose KFP runs are all planned.

    The result is False if we have no right to read the namespace.
    """
    try:
        fields = Fields(workflow, _WORKFLOW)
        is_kfp = dialect_of(fields.fields("spec").raw, fields.fields("metadata").raw).is_kfp
        raw = object_if_allowed(api, NAMESPACES, namespace) if is_kfp else None
        labels = Fields(raw or {}, _NAMESPACE).fields("metadata").text_mapping("labels")
    except InputError:
        return False
    return labels.get(PIPELINES_LABEL) == ALL_PIPELINES and labels.get(ENABLED_LABEL) != "false"


def _open_runs(api: ClusterApi, namespace: str, now: datetime) -> Iterator[tuple[str, RunKey]]:
    """Yield creation time and key of each open run that is old enough to have a plan."""
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
