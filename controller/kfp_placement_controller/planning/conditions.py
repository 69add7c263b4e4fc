"""Phase and conditions of a PipelinePlacement, in Kueue's words where the meaning is the same."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from itertools import islice
from typing import TypeVar

from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import OTHER_PACKAGE, PackageState, RunEnd
from kfp_placement_engine.contract.custom_resources import Condition
from kfp_placement_engine.contract.placement import ConditionReason, ConditionType, Phase
from kfp_placement_engine.contract.shared_parts import ConditionFinding
from kfp_placement_engine.model.step_state import StepState

EntryT = TypeVar("EntryT")

MAX_NAMED_STEPS = 5
"""Number of steps that a message names."""

MAX_MESSAGE_CHARACTERS = 2000
"""Longest message of a condition."""

_NO_ROOM = "steps without a pod keep no room until it goes on"


def conditions(
    findings: Iterable[ConditionFinding], before: Iterable[Condition], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with their times; only a change of the status is a transition."""
    by_type = {condition.type: condition for condition in before}
    return tuple(_condition(finding, by_type.get(finding.condition), now) for finding in findings)


def findings(
    run: TrackedRun, plan: CurrentPlan | None, rows_problem: str
) -> list[ConditionFinding]:
    """Return the findings about a run.

    Args:
        run: run as of its last evaluation.
        plan: plan of the run; None = there is none.
        rows_problem: reason why rows are missing; "" = none are.
    """
    all_findings = [_planned(run, plan)]
    if plan is not None and not run.refusal:
        all_findings += [_schedulable(run, plan), _latency(plan), _rows(run, rows_problem)]
    if run.observed.package is not None and not run.refusal:
        all_findings.append(_spec_read(run, run.observed.package))
    if run.observed.ended:
        well = run.observed.state.end is RunEnd.SUCCEEDED
        reason = ConditionReason.SUCCEEDED if well else ConditionReason.FAILED
        all_findings.append(ConditionFinding(ConditionType.FINISHED, True, reason, _failures(run)))
    return all_findings


def phase(run: TrackedRun) -> Phase:
    """Return the phase of a run."""
    if run.refusal:
        return Phase.REFUSED
    if run.observed.ended:
        return Phase.SUCCEEDED if run.observed.state.end is RunEnd.SUCCEEDED else Phase.FAILED
    if run.plan is None:
        return Phase.PLANNING
    begun = run.pods.has_begun() or any(status.ended for status in run.statuses.values())
    return Phase.RUNNING if begun else Phase.PLANNED


def _planned(run: TrackedRun, plan: CurrentPlan | None) -> ConditionFinding:
    kind = ConditionType.PLANNED
    if run.refusal:
        return ConditionFinding(kind, False, ConditionReason.MISCONFIGURED, run.refusal)
    if plan is None:
        return ConditionFinding(kind, False, ConditionReason.PENDING_EVALUATION, run.problem)
    if run.held:
        message = f"the run is held back, {_NO_ROOM}: {run.hold.why}"
        return ConditionFinding(kind, True, ConditionReason.SUSPENDED, message)
    if run.problem:
        return ConditionFinding(kind, True, ConditionReason.SEARCH_FAILED, run.problem)
    reason = ConditionReason.PLANNED if plan.revision == 1 else ConditionReason.REPLANNED
    return ConditionFinding(kind, True, reason)


def _schedulable(run: TrackedRun, plan: CurrentPlan) -> ConditionFinding:
    kind = ConditionType.SCHEDULABLE
    missing = {
        name: why
        for name, why in plan.unschedulable.items()
        if name in run.statuses and not run.statuses[name].ended
    }
    if not missing:
        return ConditionFinding(kind, True, ConditionReason.PLANNED)
    message = _listed("; ", missing.items(), lambda step: f"{step[0]}: {step[1]}")
    return ConditionFinding(kind, False, ConditionReason.NO_MATCHING_NODE, message)


def _latency(plan: CurrentPlan) -> ConditionFinding:
    kind, missed = ConditionType.LATENCY_SATISFIED, plan.latency_missed
    if not missed:
        return ConditionFinding(kind, True, ConditionReason.PLANNED)
    reason = ConditionReason.LATENCY_RULE_UNSATISFIED
    return ConditionFinding(kind, False, reason, _listed(", ", missed, str))


def _rows(run: TrackedRun, problem: str) -> ConditionFinding:
    kind = ConditionType.ROWS_COMPLETE
    if problem:
        return ConditionFinding(kind, False, ConditionReason.TOO_LARGE, problem)
    unreadable = run.observed.state.unreadable or run.outcome.problem
    if unreadable:
        return ConditionFinding(kind, False, ConditionReason.STATUS_UNREADABLE, unreadable)
    return ConditionFinding(kind, True, ConditionReason.COMPLETE)


def _spec_read(run: TrackedRun, package: PackageState) -> ConditionFinding:
    kind = ConditionType.SPEC_READ
    for notice in () if run.reading is None else run.reading.graph.notices:
        if package.is_read and notice.code == OTHER_PACKAGE:
            reason = ConditionReason.OTHER_PACKAGE
            return ConditionFinding(kind, False, reason, notice.message)
    return ConditionFinding(kind, package.is_read, package.reason, package.message)


def _failures(run: TrackedRun) -> str:
    failed = {
        name: status.message
        for name, status in run.statuses.items()
        if status.state is StepState.FAILED
    }
    return _listed("; ", failed.items(), _failure)


def _failure(named: tuple[str, str]) -> str:
    name, why = named
    return f"{name} failed: {why}" if why else f"{name} failed"


def _listed(separator: str, entries: Collection[EntryT], text: Callable[[EntryT], str]) -> str:
    """Join the texts of the first few, and say how many more there are."""
    more = len(entries) - MAX_NAMED_STEPS
    texts = map(text, islice(entries, MAX_NAMED_STEPS))
    return separator.join([*texts, *([f"and {more} more"] if more > 0 else [])])


def _condition(finding: ConditionFinding, before: Condition | None, now: datetime) -> Condition:
    status = "True" if finding.holds else "False"
    since = now if before is None or before.status != status else before.last_transition_time
    message = "".join(letter if letter.isprintable() else " " for letter in finding.message)[
        :MAX_MESSAGE_CHARACTERS
    ]
    return Condition(
        type=finding.condition,
        status=status,
        reason=finding.reason,
        message=message,
        last_transition_time=since.replace(microsecond=0),
    )
