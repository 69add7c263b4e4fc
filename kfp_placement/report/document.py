"""The plan as the document that programs read: `kfp_placement/schemas/plan.schema.json`.

Fields are only ever added. All seconds count from the submission of the run. A figure that does
not exist (the makespan of a run of which a step fits no node) is null, never NaN or Infinity, which
are not JSON.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import yaml

from kfp_placement.report.verdict import DEFAULT_SCHEDULER
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.limits import CriticalPiece, ResourceUse
from kfp_placement_engine.model.plan import Figures, Plan, PlannedStep
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.quantities import format_resources

SECONDS_DIGITS = 6
"""Digits kept after the point: microseconds; what lies beyond is noise of the arithmetic."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """The whole document as plain values."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "run": {"name": plan.run_name, "source": plan.run_source},
        "cluster": {"nodes": list(plan.cluster_nodes), "source": plan.cluster_source},
        "seed": plan.seed,
        "generations": plan.generations,
        "planningSeconds": number(plan.planning_seconds),
        "dispatch": plan.dispatch,
        "objective": {
            "name": plan.objective,
            "unplaced": plan.figures.unplaced,
            "latencyExcessMs": number(plan.figures.latency_excess_ms),
            "latencyMs": number(plan.figures.latency_ms),
        },
        "makespanSeconds": _makespan(plan.figures),
        "lowerBound": {
            "seconds": number(plan.lower_bound.seconds),
            "kind": plan.lower_bound.kind,
        },
        **_use_of(plan, plan.figures),
        "weights": {"cpu": number(plan.weights.cpu), "memory": number(plan.weights.memory)},
        "baselines": _baselines(plan),
        "steps": [_step(step) | _promised(plan, step) for step in plan.steps],
        "unschedulable": [{"name": name, "reason": reason} for name, reason in plan.unschedulable],
        "warnings": [
            {"code": notice.code, "step": notice.step, "message": notice.message}
            for notice in plan.notices
        ],
        "assumptions": list(plan.assumptions),
        "policy": list(plan.policy),
        "latencyTolerance": {
            "ms": number(plan.latency_tolerance.milliseconds),
            "percent": number(100 * plan.latency_tolerance.share),
        },
        "exact": plan.exact,
        "orderedMakespanSeconds": number(plan.ordered_makespan_seconds),
        "criticalPath": [_piece(piece) for piece in plan.critical_path],
        "bindingResources": [_use(use) for use in plan.binding_resources],
        **_promise(plan),
    }


def plan_json(plan: Plan, more: Mapping[str, Any] | None = None) -> str:
    """The document as JSON, ASCII only, so that no name can steer a terminal.

    Args:
        plan: the plan.
        more: fields beside the plan's own, as `what_if_document` makes them.
    """
    document = {**plan_document(plan), **(more or {})}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def plan_yaml(plan: Plan, more: Mapping[str, Any] | None = None) -> str:
    """The same as YAML, ASCII only."""
    document = {**plan_document(plan), **(more or {})}
    text: str = yaml.safe_dump(document, sort_keys=False, width=100)
    return text


def number(value: float | None) -> float | None:
    """The figure rounded to microseconds; None where there is none or it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    return round(float(value), SECONDS_DIGITS)


def _makespan(figures: Figures) -> float | None:
    """None for a run that does not end: a step of it fits no node."""
    return _end(figures, figures.makespan_seconds)


def _end(figures: Figures, seconds: float | None) -> float | None:
    return None if figures.unplaced else number(seconds)


def _baselines(plan: Plan) -> dict[str, Any]:
    """By name; of the default scheduler its steps too, as far as they are known."""
    rows = {
        name: _baseline(figures) | _use_of(plan, figures)
        for name, figures in plan.baselines.items()
    }
    if plan.default_schedule and DEFAULT_SCHEDULER in rows:
        rows[DEFAULT_SCHEDULER]["steps"] = [
            {
                "name": step.name,
                "node": step.node,
                "startSeconds": number(step.start_seconds),
                "finishSeconds": number(step.finish_seconds),
            }
            for step in plan.default_schedule
        ]
    return rows


def _baseline(figures: Figures) -> dict[str, Any]:
    return {
        "makespanSeconds": _makespan(figures),
        "unplaced": figures.unplaced,
        "latencyExcessMs": number(figures.latency_excess_ms),
        "latencyMs": number(figures.latency_ms),
        "fastestSeconds": _end(figures, figures.fastest_seconds),
        "slowestSeconds": _end(figures, figures.slowest_seconds),
        "tieBreaks": figures.tie_breaks,
        "movesVolumes": figures.moves_volumes,
    }


def _use_of(plan: Plan, figures: Figures) -> dict[str, Any]:
    """How much of each resource is in use on average, and by the weights; of a run that ends."""
    use = {} if figures.unplaced else figures.use
    return {
        "use": {name: number(share) for name, share in use.items()},
        "weightedUse": number(plan.weights.mean_of(use)),
    }


def _promise(plan: Plan) -> dict[str, Any]:
    """When the run ends by past runs, where somebody asked; and when it is submitted, likewise."""
    at = plan.submitted_at
    submitted = {} if at is None else {"submittedAt": at.isoformat(timespec="seconds")}
    if plan.promise is None:
        return submitted
    return {
        "promise": {
            "confidence": number(plan.promise.confidence),
            "ends": range_document(plan.promise.ends),
            "unknown": plan.promise.unknown,
        },
        **submitted,
    }


def _promised(plan: Plan, step: PlannedStep) -> dict[str, Any]:
    """When a step starts and ends by past runs, and what its run time rests on."""
    if plan.promise is None:
        return {}
    known = plan.promise.steps.get(step.name)
    return {
        "starts": None if known is None else range_document(known.starts),
        "ends": None if known is None else range_document(known.ends),
        "durationBasis": basis_document(step.duration_basis),
    }


def basis_document(basis: Basis | None) -> dict[str, Any] | None:
    """Which past runs a run time rests on; None = on none."""
    if basis is None:
        return None
    return {
        "level": str(basis.level),
        "runs": basis.runs,
        "bySize": basis.by_size,
        "byArgument": basis.by_argument or None,
    }


def range_document(times: TimeRange | None) -> dict[str, Any] | None:
    """A range of times in seconds; None = not known."""
    if times is None:
        return None
    return {
        "lowSeconds": number(times.low_seconds),
        "typicalSeconds": number(times.typical_seconds),
        "highSeconds": number(times.high_seconds),
    }


def _piece(piece: CriticalPiece) -> dict[str, Any]:
    return {
        "step": piece.step,
        "kind": str(piece.kind),
        "startSeconds": number(piece.start_seconds),
        "finishSeconds": number(piece.finish_seconds),
        "node": piece.node,
        "cause": piece.cause,
    }


def _use(use: ResourceUse) -> dict[str, Any]:
    return {
        "startSeconds": number(use.start_seconds),
        "finishSeconds": number(use.finish_seconds),
        "resource": use.resource,
        "share": number(use.share),
    }


def _step(step: PlannedStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "task": step.task,
        "displayName": step.display_name,
        "kind": str(step.kind),
        "iteration": list(step.iteration),
        "assumed": step.assumed,
        "conditional": step.conditional,
        "type": step.type,
        "location": step.location,
        "node": step.node,
        "startSeconds": number(step.start_seconds),
        "finishSeconds": number(step.finish_seconds),
        "imagePullSeconds": number(step.image_pull_seconds),
        "transferSeconds": number(step.transfer_seconds),
        "durationSeconds": number(step.duration_seconds),
        "durationSource": str(step.duration_source),
        "nodeSpeed": number(step.node_speed),
        "latencyMs": number(step.latency_ms),
        "requests": format_resources(step.requests),
        "image": step.image,
        "labels": dict(step.labels),
        "attemptLimit": step.attempt_limit,
        "dependsOn": list(step.depends_on),
        "reason": step.reason,
        "typeGuessed": step.type_guessed,
        "requestsNothing": step.requests_nothing,
        "cached": step.cached,
    }
