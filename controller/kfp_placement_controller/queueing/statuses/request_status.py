"""Status of a RunRequest: whether its run waits or runs, what it waits for, and since when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.queueing.actions import ReleaseCause
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.statuses.conditions import status_changes
from kfp_placement_controller.queueing.verdicts import RULE_WORDS, Verdict, verdict_text
from kfp_placement_engine.contract.run_request import (
    MAX_MESSAGE_CHARACTERS,
    MAX_RESOURCES,
    NodeGroups,
    RequestCondition,
    RequestPhase,
    RequestReason,
    StartRange,
)
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.units.quantities import format_resource
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.kinds import JsonObject


class StartReason(NamedTuple):
    """Reason for which a run may run.

    Attributes:
        reason: reason in one word.
        message: explanation for people.
    """

    reason: RequestReason
    message: str


NOT_HELD = StartReason(RequestReason.NOT_HELD, "it runs without having been admitted by its queue")
"""Reason for a run that may run without having been admitted by its queue."""

_REASONS = {
    ReleaseCause.ADMITTED: StartReason(RequestReason.ADMITTED, "its queue has admitted it"),
    ReleaseCause.REQUESTED: StartReason(
        RequestReason.BY_REQUEST, "somebody who may has let it begin"
    ),
    ReleaseCause.NO_DEMAND: StartReason(RequestReason.UNPLANNABLE, "nobody has said what it needs"),
    ReleaseCause.NO_QUEUE: StartReason(
        RequestReason.NOT_HELD, "its namespace takes no part any more"
    ),
}
"""Reasons for which a run may run, by the cause of its start; others were not held."""


@dataclass(frozen=True)
class RunPlace:
    """Place of a run in its queue, as its RunRequest must show it.

    Attributes:
        queue: queue that decides about it.
        priority: priority of the run, as the queue allows it.
        verdict: decision about it while it waits, or None if there was none.
        undecided: reason why there was no decision.
        draining: whether pods of it still run, although it waits or has ended.
        cause: cause of its start, or None if this process has not started it: then its status may
            have the reason.
        preempted_for: run for which its queue has stopped it, or is about to, or a word; "" = none.
        stopped: text about why it was stopped, or "".
        notes: notes for its author.
        nodes: nodes that it is limited to, or None for those that its status already has.
        starts: range in which it is likely to start, or None if it does not wait or no forecast is
            possible.
    """

    queue: QueueKey
    priority: int
    verdict: Verdict | None
    undecided: str
    draining: bool
    cause: ReleaseCause | None
    preempted_for: str
    stopped: str
    notes: tuple[str, ...]
    nodes: NodeGroups | None
    starts: StartRange | None


def request_status_patch(run: RequestedRun, place: RunPlace, now: datetime) -> JsonObject | None:
    """Return what to change in the status of a run's RunRequest, or None if nothing.

    Args:
        run: the run, with its RunRequest.
        place: place of the run in its queue.
        now: the time.
    """
    fields = _fields(run, place, now)
    changed = status_changes(run.status, fields, _findings(run, place), None, now)
    if run.request is not None and run.request.is_status_malformed:
        # One of the fields is malformed, so all are written.
        changed = {**fields, **changed}
    return changed or None


def _fields(run: RequestedRun, place: RunPlace, now: datetime) -> JsonObject:
    status, verdict = run.status, None
    since, admitted_at = status.waiting_since, status.admitted_at
    if run.observed.end is not None and not place.draining:
        phase = RequestPhase.FINISHED
    elif run.is_waiting:
        phase, since = RequestPhase.WAITING, run.waiting_since(now)
        verdict = place.verdict
    else:
        phase = RequestPhase.ADMITTED
        goes_on = status.phase == RequestPhase.ADMITTED or run.observed.end is not None
        is_new = admitted_at is None or not goes_on
        admitted_at = now if is_new else min(run.admitted_at, now)
    # The first forecast of its start stays after it has started.
    first = status.first_starts
    if place.starts is not None:
        first = run.first_starts(now) or place.starts
    nodes = status.assigned_nodes if place.nodes is None else place.nodes
    return {
        "phase": str(phase),
        "queue": place.queue.name,
        "priority": place.priority,
        "position": verdict.position or None if verdict else None,
        "waiting": verdict.waiting or None if verdict else None,
        "missing": _missing(verdict) if verdict else [],
        "message": _message(run, place),
        "notes": [each[:MAX_MESSAGE_CHARACTERS] for each in place.notes],
        "starts": _starts(place.starts),
        "firstStarts": _starts(first),
        "preemptedFor": place.preempted_for or None,
        "assignedNodes": [each.model_dump(mode="json", by_alias=True) for each in nodes],
        "waitingSince": None if since is None else time_text(since),
        "admittedAt": None if admitted_at is None else time_text(admitted_at),
    }


def _starts(starts: StartRange | None) -> JsonObject | None:
    return None if starts is None else starts.model_dump(mode="json", by_alias=True)


def _missing(verdict: Verdict) -> list[Mapping[str, str]]:
    return [
        {
            "rule": str(each.rule),
            "resource": each.resource,
            "amount": format_resource(each.resource, each.amount) if each.resource else "",
        }
        for each in verdict.missing[:MAX_RESOURCES]
    ]


def _message(run: RequestedRun, place: RunPlace) -> str | None:
    """Return the message about a run that waits, or that keeps its place although it has ended."""
    if run.observed.end is not None:
        return "it has ended, but keeps its place until its pods have" if place.draining else None
    if not run.is_waiting:
        return None
    if place.draining:
        return "its running steps end, then it waits again"
    if place.verdict is None:
        return place.undecided[:MAX_MESSAGE_CHARACTERS]
    return verdict_text(place.verdict)[:MAX_MESSAGE_CHARACTERS]


def _findings(run: RequestedRun, place: RunPlace) -> list[ConditionFinding]:
    admitted = RequestCondition.ADMITTED
    before = run.status.condition(admitted)
    if run.observed.end is not None:
        # The last conditions stay.
        return []
    if run.is_admitted:
        if place.cause is None and before is not None and before.status == "True":
            finding = ConditionFinding(admitted, True, before.reason, before.message)
        else:
            start = NOT_HELD if place.cause is None else _REASONS.get(place.cause, NOT_HELD)
            finding = ConditionFinding(admitted, True, start.reason, start.message)
    elif place.verdict is None or place.verdict.is_admitted:
        text = _message(run, place) or ""
        reason = RequestReason.PENDING_EVALUATION
        if place.draining and run.is_preempted:
            reason = RequestReason.PREEMPTED
        elif run.problem and not place.draining:
            reason = RequestReason.UNPLANNABLE
        finding = ConditionFinding(admitted, False, reason, text)
    else:
        words = RULE_WORDS[place.verdict.missing[0].rule]
        finding = ConditionFinding(admitted, False, words.reason, words.sentence)
    return [finding, *_preemption(run, place)]


def _preemption(run: RequestedRun, place: RunPlace) -> list[ConditionFinding]:
    preempted = RequestCondition.PREEMPTED
    before = run.status.condition(preempted)
    if run.is_preempted:
        if before is not None and before.status == "True":
            return [ConditionFinding(preempted, True, before.reason, before.message)]
        text = f"{place.stopped}; it waits again, and its finished steps are not repeated"
        return [ConditionFinding(preempted, True, RequestReason.PREEMPTED, text)]
    if before is None:
        return []
    text = before.message if before.status == "False" else "it goes on"
    return [ConditionFinding(preempted, False, RequestReason.RESUMED, text)]
