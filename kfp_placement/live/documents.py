"""Runs, queues and histories as documents that programs read.

`kfp_placement/schemas/runs.schema.json` describes them. Fields are only ever added. All seconds
count from the submission of the run. What is not known is null.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.render.plan_json import number
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.history import PipelineDetails, PipelineTimes
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView

JsonDocument = dict[str, Any]

_RUN_FIELDS = (
    "name",
    "namespace",
    "run_id",
    "run_name",
    "phase",
    "progress",
    "counts",
    "folded_steps",
    "submitted_at",
    "planned_at",
    "age_seconds",
    "makespan_seconds",
    "first_makespan_seconds",
    "actual_makespan_seconds",
)
"""Attributes of `RunView` that are fields of the same names."""

_STEP_FIELDS = (
    "name",
    "state",
    "node",
    "planned_node",
    "planned_start_seconds",
    "planned_finish_seconds",
    "start_seconds",
    "end_seconds",
    "starts",
    "ends",
    "duration_source",
    "duration_basis",
    "memory_advice",
    "location",
    "latency_ms",
    "max_latency_ms",
    "reason",
    "alternatives",
    "elsewhere",
)
"""Attributes of `StepView` that are fields of the same names."""


def runs_document(
    runs: Iterable[RunView], placement_off: str = "", unplanned: Iterable[RunKey] = ()
) -> JsonDocument:
    """Return the document of `list`.

    Args:
        runs: runs in the order of the document.
        placement_off: reason why we do not place new pods; "" = we do.
        unplanned: keys of runs that should have a plan and have none.
    """
    items = [_run(run) for run in runs]
    without_plan = [{"namespace": each.namespace, "name": each.name} for each in unplanned]
    return _document("RunList", placement_off=placement_off, items=items, unplanned=without_plan)


def explanation_document(
    run: RunView, steps: Sequence[StepView], placement_off: str = ""
) -> JsonDocument:
    """Return the document of `explain`.

    Args:
        run: run that is explained.
        steps: steps of the run that are explained.
        placement_off: reason why we do not place new pods; "" = we do.
    """
    return _document(
        "RunExplanation",
        placement_off=placement_off,
        run=_run(run),
        workflow_message=run.workflow_message,
        steps=[_step(run, step) for step in steps],
        missing=run.missing,
    )


def queue_document(views: Iterable[QueueView]) -> JsonDocument:
    """Return the document of `queue`.

    Args:
        views: queued runs in the order of the document.
    """
    return _document("QueueList", items=[_queued(view) for view in views])


def history_document(pipelines: Iterable[PipelineTimes]) -> JsonDocument:
    """Return the document of `history`.

    Args:
        pipelines: pipelines in the order of the document.
    """
    return _document("HistoryList", items=list(pipelines))


def pipeline_document(details: PipelineDetails) -> JsonDocument:
    """Return the document of `history PIPELINE`."""
    return _document("HistoryExplanation", **vars(details))


def serialized(document: JsonDocument, output_format: str) -> str:
    """Return a document as JSON or YAML, in ASCII."""
    if output_format == "yaml":
        text: str = yaml.safe_dump(document, sort_keys=False, width=100)
        return text
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _run(run: RunView) -> JsonDocument:
    promise, first = run.promise, run.first_promise
    ends = None if promise is None else promise.ends
    with_ends = first if ends is None else promise
    document: JsonDocument = _plain(
        _picked(run, *_RUN_FIELDS)
        | {
            "ends": run.ends,
            "ends_after_start": ends if run.is_after_start else None,
            "ends_unknown": None if promise is None else promise.unknown,
            "first_ends": None if first is None else first.ends,
            "confidence": None if with_ends is None else with_ends.confidence,
        }
        | _picked(run, "dispatch", "revision", "basis")
        | {"waiting": [_waiting(run, step) for step in run.waiting]}
        | _picked(run, "conditions", "problems")
    )
    return document


def _step(run: RunView, step: StepView) -> JsonDocument:
    pod = step.pod
    return _picked(step, *_STEP_FIELDS) | {
        "waiting": _waiting(run, step),
        "pod": pod and _picked(pod, "name", "phase", "node", "gates", "message"),
    }


def _waiting(run: RunView, step: StepView) -> JsonDocument | None:
    waiting = step.waiting
    if waiting is None:
        return None
    return {
        "step": step.name,
        "for": waiting.what,
        **_picked(waiting, "since_seconds", "until_seconds", "detail"),
        "message": run.waits(step),
    }


def _queued(view: QueueView) -> JsonDocument:
    missing = [{"resource": name, "amount": amount} for name, amount in view.missing]
    return {
        "namespace": view.key.namespace,
        "name": view.key.name,
        **_picked(view, "run_name", "queue", "phase", "priority", "position", "waiting", "message"),
        "missing": missing,
        "notes": view.notes,
        "earliest_start": view.earliest,
        "latest_start": view.latest,
        **_picked(view, "submitted_at", "waiting_since", "admitted_at"),
    }


def _document(kind: str, **parts: Any) -> JsonDocument:
    return {"apiVersion": API_VERSION, "kind": kind, **_plain(parts)}


def _picked(view: object, *names: str) -> JsonDocument:
    return {name: getattr(view, name) for name in names}


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON: names in camel case, null for an empty text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude={"observed_generation"})
    if is_dataclass(value):
        return _plain({each.name: getattr(value, each.name) for each in fields(value)})
    if isinstance(value, dict):
        return {to_camel(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, str):
        # A member of an enumeration becomes plain text.
        return str(value) or None
    return number(value) if isinstance(value, float) else value
