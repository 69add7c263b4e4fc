"""What has changed between two looks at a run, a line for each; pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from kfp_placement.live.runs import UNKNOWN_STATE, RunView, StepView
from kfp_placement.live.words import (
    alarm_text,
    drift_text,
    makespans_text,
    name_text,
    progress_text,
    run_title,
    sentence,
    waiting_summary,
)
from kfp_placement.report import values
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.resources_rows import ENDED_STATES, StepState


def changes(before: RunView | None, run: RunView, now: datetime) -> Iterator[str]:
    """Lines for people, the run's own first.

    Args:
        before: what was seen last; None = nothing.
        run: what is seen now.
        now: the time.
    """
    if before is None or before.placement is None:
        yield _first(run, now)
        return
    if run.placement is None:
        yield f"cannot be read any more: {sentence(run.problems[0])}" if run.problems else "gone"
        return
    if run.placement.spec.revision != before.placement.spec.revision:
        yield f"replanned (revision {run.placement.spec.revision}): {makespans_text(run)}"
    known = {(each.type, each.reason, each.message) for each in before.alarms}
    for each in run.alarms:
        if (each.type, each.reason, each.message) not in known:
            yield alarm_text(each)
    yield from _step_changes(before, run, now)
    if run.phase != before.phase:
        yield ending(run) if run.ended else f"{shown(run.phase, 20)}, {progress_text(run)}"


def with_states_seen(before: RunView | None, run: RunView) -> RunView:
    """The run, with the states seen before for steps of which its status does not speak yet.

    A replan is written before the status that follows it.
    """
    known = {step.name: step for step in before.steps} if before is not None else {}
    return replace(run, steps=tuple(_with_state(known.get(step.name), step) for step in run.steps))


def _with_state(old: StepView | None, step: StepView) -> StepView:
    if old is None or step.state != UNKNOWN_STATE:
        return step
    return replace(
        step,
        state=old.state,
        node=old.node,
        start_seconds=old.start_seconds,
        end_seconds=old.end_seconds,
        waiting=old.waiting,
    )


def ending(run: RunView) -> str:
    """How it ended: `Succeeded, 3/3 steps ended, took 22m, 1m5s less than first planned`."""
    told = [shown(run.phase, 20), progress_text(run), makespans_text(run)]
    if run.workflow_message:
        told.append(f"Argo says: {run.workflow_message}")
    return sentence(", ".join(told))


def _first(run: RunView, now: datetime) -> str:
    if run.placement is None:
        return f"{run_title(run)}: no plan yet"
    if run.ended:
        return f"{run_title(run)}: {ending(run)}"
    waits = waiting_summary(run, now)
    told = [shown(run.phase, 20), progress_text(run), makespans_text(run)]
    told += [f"waiting: {waits}"] if waits else []
    return f"{run_title(run)}: {', '.join(told)}"


def _step_changes(before: RunView, run: RunView, now: datetime) -> Iterator[str]:
    known = {step.name: step for step in before.steps}
    for step in run.steps:
        old = known.get(step.name)
        if old is None or _key(old) != _key(step):
            yield f"{name_text(step.name)}: {_step(run, step, now)}"


def _key(step: StepView) -> tuple[str, str | None, str]:
    what = step.waiting.what if step.waiting is not None else ""
    return step.state, step.node, what


def _step(run: RunView, step: StepView, now: datetime) -> str:
    if step.waiting is not None:
        return sentence(run.waiting_sentence(step, now))
    told = [shown(step.state, 20)]
    if step.node is not None:
        told[0] += f" on {name_text(step.node)}"
    if step.is_elsewhere:
        told.append(f"planned on {name_text(step.planned_node)}")
    if step.state == StepState.RUNNING or step.state in ENDED_STATES:
        told.append(drift_text(step))
    if step.state == StepState.RUNNING:
        told.append(f"until about {values.duration(step.planned_finish_seconds)}")
    return ", ".join(filter(None, told))
