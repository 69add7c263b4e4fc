"""Runs as documents that programs read: `kfp_placement/schemas/runs.schema.json`.

Fields are only ever added.

All seconds count from the submission. What is not known is null.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import yaml

from kfp_placement.live.formatting import moment_text
from kfp_placement.live.past_times import PipelineDetails, PipelineTimes
from kfp_placement.live.promises import first_promise_of, promise_after_start_of, promise_of
from kfp_placement.live.queues import QueueView
from kfp_placement.live.runs import RunView, StepView
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.memory_texts import advised_bytes, memory_advice
from kfp_placement_engine.contract.resources import Condition
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.render.plan_json import basis_document

Document = dict[str, Any]


def runs_document(
    runs: Iterable[RunView],
    now: datetime,
    off: str = "",
    unplanned: Iterable[RunKey] = (),
) -> Document:
    """What `list` prints.

    Args:
        runs: in the order shown.
        now: the time.
        off: why new pods are not placed by us; "" = they are.
        unplanned: namespace and name of runs that should have a plan and have none.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "RunList",
        "placementOff": off or None,
        "items": [_run(run, now) for run in runs],
        "unplanned": [{"namespace": namespace, "name": name} for namespace, name in unplanned],
    }


def queue_document(views: Iterable[QueueView]) -> Document:
    """What `queue` prints.

    Args:
        views: runs in queues, in the order shown.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "QueueList",
        "items": [_queued(view) for view in views],
    }


def _queued(view: QueueView) -> Document:
    return {
        "namespace": view.key.namespace,
        "name": view.key.name,
        "runName": view.run_name or None,
        "queue": view.queue or None,
        "phase": view.phase or None,
        "priority": view.priority,
        "position": view.position,
        "waiting": view.waiting,
        "message": view.message or None,
        "missing": [{"resource": name, "amount": amount} for name, amount in view.missing],
        "notes": list(view.notes),
        "earliestStart": _moment(view.earliest),
        "latestStart": _moment(view.latest),
        "submittedAt": _moment(view.submitted_at),
        "waitingSince": _moment(view.waiting_since),
        "admittedAt": _moment(view.admitted_at),
    }


def history_document(pipelines: Iterable[PipelineTimes]) -> Document:
    """What `history` prints.

    Args:
        pipelines: in the order shown.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "HistoryList",
        "items": [_pipeline(each) for each in pipelines],
    }


def pipeline_document(details: PipelineDetails) -> Document:
    """What `history PIPELINE` prints."""
    return {
        "apiVersion": API_VERSION,
        "kind": "HistoryExplanation",
        "pipeline": _pipeline(details.times),
        "overrun": None
        if details.overrun is None
        else {
            "low": details.overrun.low_seconds,
            "typical": details.overrun.typical_seconds,
            "high": details.overrun.high_seconds,
            "runs": details.overrun_runs,
        },
        "loops": [
            {"loop": loop, "width": each.width, "runs": each.runs}
            for loop, each in details.loops.items()
        ],
        "steps": [
            {
                "step": each.step,
                "runs": each.runs,
                "iterations": each.iterations,
                "takes": _range(each.takes),
                "basis": basis_document(each.basis),
                "inputBytes": each.input_bytes,
                "forgetBefore": _moment(each.forget_before),
                "memory": _memory(each.memory),
                "cachedShare": each.cached_share,
                "skippedShare": each.skipped_share,
                "failedShare": each.failed_share,
            }
            for each in details.steps
        ],
    }


def _memory(memory: MemoryForecast | None) -> Document | None:
    if memory is None:
        return None
    asked = memory.asked_bytes
    return {
        "asked": asked,
        "largest": memory.largest_bytes,
        "runs": memory.runs,
        "killedWith": memory.killed_bytes,
        "advised": advised_bytes(memory, asked),
        "advice": memory_advice(memory, asked) or None,
    }


def _pipeline(times: PipelineTimes) -> Document:
    namespace, name = times.key
    return {
        "namespace": namespace or None,
        "name": name,
        "runs": times.runs,
        "runsSeen": times.runs_seen,
        "takes": _range(times.takes),
        "lastRunAt": _moment(times.last_run_at),
        "forgetBefore": _moment(times.forget_before),
    }


def _range(times: TimeRange | None) -> Document | None:
    if times is None:
        return None
    return {
        "lowSeconds": times.low_seconds,
        "typicalSeconds": times.typical_seconds,
        "highSeconds": times.high_seconds,
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else moment_text(at)


def explanation_document(
    run: RunView, steps: Sequence[StepView], now: datetime, missing: Sequence[str], off: str = ""
) -> Document:
    """What `explain` prints.

    Args:
        run: the run.
        steps: those that were asked for.
        now: the time.
        missing: what could not be read of the cluster.
        off: why new pods are not placed by us; "" = they are.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "RunExplanation",
        "placementOff": off or None,
        "run": _run(run, now),
        "workflowMessage": run.workflow_message or None,
        "steps": [_step(run, step, now) for step in steps],
        "missing": list(missing),
    }


def document_text(document: Document, output_format: str) -> str:
    """A document as JSON or YAML, ASCII only."""
    if output_format == "yaml":
        text: str = yaml.safe_dump(document, sort_keys=False, width=100)
        return text
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _run(run: RunView, now: datetime) -> Document:
    placement = run.placement
    spec = None if placement is None else placement.spec
    status = None if placement is None else placement.status
    counts = None if status is None or status.counts is None else status.counts.model_dump()
    promise, first = promise_of(run), first_promise_of(run)
    after_start = promise_after_start_of(run)
    now_promised = promise if after_start is None else after_start
    stated = first if now_promised is None or now_promised.ends is None else now_promised
    return {
        "name": run.name,
        "namespace": run.namespace,
        "runId": run.run_id or None,
        "runName": run.run_name or None,
        "phase": run.phase,
        "progress": run.progress or None,
        "counts": counts,
        "foldedSteps": run.folded_steps,
        "submittedAt": None if spec is None else moment_text(spec.submitted_at),
        "plannedAt": None if spec is None else moment_text(spec.planned_at),
        "ageSeconds": run.age_seconds(now),
        "makespanSeconds": run.makespan_seconds,
        "firstMakespanSeconds": run.first_makespan_seconds,
        "actualMakespanSeconds": run.actual_makespan_seconds,
        "ends": None if promise is None else _range(promise.ends),
        "endsAfterStart": None if after_start is None else _range(after_start.ends),
        "endsUnknown": None if promise is None else promise.unknown or None,
        "firstEnds": None if first is None else _range(first.ends),
        "confidence": None if stated is None else stated.confidence,
        "dispatch": None if spec is None else spec.dispatch,
        "revision": None if spec is None else spec.revision,
        "waiting": [_waiting(run, step, now) for step in run.waiting],
        "conditions": [_condition(each) for each in run.conditions],
        "problems": list(run.problems),
    }


def _step(run: RunView, step: StepView, now: datetime) -> Document:
    pod = step.pod
    return {
        "name": step.name,
        "state": step.state,
        "node": step.node,
        "plannedNode": step.planned_node,
        "plannedStartSeconds": step.planned_start_seconds,
        "plannedFinishSeconds": step.planned_finish_seconds,
        "startSeconds": step.start_seconds,
        "endSeconds": step.end_seconds,
        "starts": None if step.promise is None else _range(step.promise.starts),
        "ends": None if step.promise is None else _range(step.promise.ends),
        "durationSource": step.source or None,
        "durationBasis": basis_document(step.basis),
        "memoryAdvice": step.memory_advice or None,
        "location": step.latency.location or None,
        "latencyMs": step.latency.latency_ms,
        "maxLatencyMs": step.latency.max_latency_ms,
        "reason": step.reason or None,
        "alternatives": [
            {"node": each.node, "lossSeconds": each.loss_seconds, "latencyMs": each.latency_ms}
            for each in step.alternatives
        ],
        "elsewhere": "; ".join(step.why_deviating) or None,
        "waiting": None if step.waiting is None else _waiting(run, step, now),
        "pod": None
        if pod is None
        else {
            "name": pod.name,
            "phase": pod.phase,
            "node": pod.node or None,
            "gates": list(pod.gates),
            "message": pod.message or None,
        },
    }


def _waiting(run: RunView, step: StepView, now: datetime) -> Document:
    waiting = step.waiting
    assert waiting is not None
    return {
        "step": step.name,
        "for": waiting.what,
        "sinceSeconds": waiting.since_seconds,
        "untilSeconds": waiting.until_seconds,
        "detail": waiting.detail or None,
        "message": run.waiting_sentence(step, now),
    }


def _condition(condition: Condition) -> Document:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": moment_text(condition.last_transition_time),
    }
