"""The plan as the document that programs read: `kfp_placement/schemas/plan.schema.json`.

Fields are only ever added. All seconds count from the submission of the run. A figure that does
not exist (the makespan of a run of which a step fits no node) is null, never NaN or Infinity, which
are not JSON.
"""

import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import yaml

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.run_graph import OUTLINE
from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.plans.what_if import ChangedPlan, Suggestions, end_seconds
from kfp_placement_engine.units.quantities import format_resource, format_resources
from kfp_placement_engine.views.plans.verdict import DEFAULT_BASELINE
from kfp_placement_engine.views.plans.what_if import Answer

_Document = dict[str, Any]
"""The document or a part of it, as plain values."""

_SECONDS_DIGITS = 6
"""Digits kept after the point: microseconds; what lies beyond is noise of the arithmetic."""

_WORD_START = re.compile(r"_(\w)")

_SCHEDULED = "name node start_seconds finish_seconds"
_PHASES = "image_pull_seconds transfer_seconds duration_seconds"
_PIECE = "step kind start_seconds finish_seconds node cause"
_USE = "start_seconds finish_seconds resource share"
"""Attributes of the model's nouns whose names and values are those of the document."""


def plan_json(plan: Plan, answer: Answer | None = None) -> str:
    """Return the document as JSON, in ASCII, so that no name can steer a terminal.

    Args:
        plan: the plan.
        answer: answer to changes; None = there are none.
    """
    return json.dumps(plan_document(plan, answer), indent=2, allow_nan=False) + "\n"


def plan_yaml(plan: Plan, answer: Answer | None = None) -> str:
    """Return the document as YAML, in ASCII."""
    text: str = yaml.safe_dump(plan_document(plan, answer), sort_keys=False, width=100)
    return text


def plan_document(plan: Plan, answer: Answer | None = None) -> _Document:
    """Return the document as plain values."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "run": {"name": plan.run.name, "source": plan.run.source},
        "cluster": {"nodes": list(plan.cluster.nodes), "source": plan.cluster.source},
        **_fields(plan.search, "seed generations planning_seconds dispatch"),
        "objective": {
            "name": plan.search.objective,
            **_fields(plan.figures, "unplaced latency_excess_ms latency_ms"),
        },
        "makespanSeconds": _end(plan.figures, plan.figures.makespan_seconds),
        "lowerBound": {
            **_fields(plan.comparison.lower_bound, "seconds kind"),
            "holds": not plan.leaves_out,
        },
        **_use_of(plan, plan.figures),
        "weights": _fields(plan.search.weights, "cpu memory"),
        "baselines": _baselines(plan),
        "steps": [_step(plan, step) for step in plan.steps],
        "unschedulable": _unschedulable(plan),
        "warnings": [_fields(notice, "code step message") for notice in plan.notices],
        "assumptions": list(plan.grounds.assumptions),
        "policy": list(plan.grounds.policy),
        "latencyTolerance": {
            "ms": number(plan.search.latency_tolerance.milliseconds),
            "percent": number(100 * plan.search.latency_tolerance.share),
        },
        **_fields(plan.search, "exact"),
        **_fields(plan.comparison, "ordered_makespan_seconds"),
        "criticalPath": [_fields(piece, _PIECE) for piece in plan.limits.critical_path],
        "bindingResources": [_fields(use, _USE) for use in plan.limits.binding_resources],
        **_promise(plan),
        **({"basis": OUTLINE} if plan.run.is_outline else {}),
        **_answer(answer),
    }


def number(value: float | None) -> float | None:
    """Round a figure to microseconds; None if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return None
    return round(float(value), _SECONDS_DIGITS)


def _fields(noun: object, names: str) -> _Document:
    """Return some attributes of an object, with names in camel case."""
    return {
        _WORD_START.sub(lambda match: match[1].upper(), name): _plain(getattr(noun, name))
        for name in names.split()
    }


def _plain(value: object) -> object:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, TimeRange):
        return _fields(value, "low_seconds typical_seconds high_seconds")
    if isinstance(value, Basis):
        by_argument = value.by_argument or None
        return _fields(value, "level runs by_size") | {"byArgument": by_argument}
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _end(figures: Figures, seconds: float | None) -> float | None:
    """Return the makespan; None for a run that does not end, as a step fits no node."""
    return None if figures.unplaced else number(seconds)


def _baselines(plan: Plan) -> _Document:
    """Return the baselines by name; the default scheduler with its steps, if known."""
    rows = {
        name: {
            "makespanSeconds": _end(figures, figures.makespan_seconds),
            **_fields(figures, "unplaced latency_excess_ms latency_ms"),
            "fastestSeconds": _end(figures, figures.fastest_seconds),
            "slowestSeconds": _end(figures, figures.slowest_seconds),
            **_fields(figures, "tie_breaks moves_volumes"),
            **_use_of(plan, figures),
        }
        for name, figures in plan.comparison.baselines.items()
    }
    if plan.comparison.default_schedule and DEFAULT_BASELINE in rows:
        steps = [_fields(step, _SCHEDULED) for step in plan.comparison.default_schedule]
        rows[DEFAULT_BASELINE]["steps"] = steps
    return rows


def _use_of(plan: Plan, figures: Figures) -> _Document:
    """Return the average use of each resource, and by weights, of a run that ends."""
    use = {} if figures.unplaced else figures.use
    return {
        "use": {name: number(share) for name, share in use.items()},
        "weightedUse": number(plan.search.weights.mean_of(use)),
    }


def _unschedulable(plan: Plan) -> list[dict[str, str]]:
    return [{"name": name, "reason": reason} for name, reason in plan.unschedulable]


def _step(plan: Plan, step: PlannedStep) -> _Document:
    document = {
        **_fields(step.spec, "name task display_name kind iteration assumed"),
        "conditional": step.spec.is_conditional,
        "branch": list(step.spec.inside),
        "choices": dict(step.spec.branches),
        **_fields(step.spec, "after_failure"),
        **_fields(step.spec, "type location"),
        **_fields(step, "node start_seconds finish_seconds"),
        **_fields(step.phases, _PHASES),
        "durationSource": str(step.run_time.source),
        **_fields(step.run_time, "node_speed"),
        **_fields(step, "latency_ms"),
        "requests": format_resources(step.requests),
        **_fields(step.spec, "image labels attempt_limit depends_on"),
        "reason": step.explanation.sentence,
        **_fields(step.spec, "type_guessed"),
        **_fields(step, "requests_nothing"),
        "cached": step.is_cached,
    }
    if plan.promise is None:
        return document
    promise = plan.promise.steps.get(step.name)
    times = {"starts": None, "ends": None} if promise is None else _fields(promise, "starts ends")
    return document | times | {"durationBasis": _plain(step.run_time.basis)}


def _promise(plan: Plan) -> _Document:
    """Return promised end and time of submission, if the plan has them."""
    document: _Document = {}
    if plan.promise is not None:
        document["promise"] = _fields(plan.promise, "confidence ends unknown")
    if plan.run.submitted_at is not None:
        document["submittedAt"] = plan.run.submitted_at.isoformat(timespec="seconds")
    return document


def _answer(answer: Answer | None) -> _Document:
    """Return the answer to changes, if there are some."""
    if isinstance(answer, Suggestions):
        return {
            "suggestions": [
                {
                    "change": each.change.text,
                    **_fields(each, "makespan_seconds gain_seconds nodes_added"),
                    "cpuAdded": format_resource("cpu", each.cpu_added_milli),
                }
                for each in answer.best
            ]
        }
    return {"whatIf": _changed(answer)} if answer is not None else {}


def _changed(answer: ChangedPlan) -> _Document:
    plan = answer.plan
    ends = None if plan.promise is None else plan.promise.ends
    return {
        "changes": [each.text for each in answer.changes],
        "makespanSeconds": number(end_seconds(plan.figures)),
        "gainSeconds": number(answer.gain_seconds),
        **({} if ends is None else {"ends": _plain(ends)}),
        "steps": [_fields(step, _SCHEDULED) for step in plan.steps],
        "unschedulable": _unschedulable(plan),
    }
