"""What has changed between two looks at a run, a line for each; pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from kfp_placement.live.formatting import (
    alarm_text,
    drift_text,
    makespans_text,
    name_text,
    progress_text,
    run_title,
    sentence,
    waiting_summary,
)
from kfp_placement.live.promises import (
    first_promise_sentence,
    promise_of,
    run_ends_sentence,
    step_ends,
)
from kfp_placement.live.runs import UNKNOWN_STATE, RunView, StepView
from kfp_placement.report import values
from kfp_placement.report.visible import shown
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState

_NEWS_SECONDS = 5.0
"""A planned end that moves by less is not reported: every end of a step moves it a little."""


def changes(
    before: RunView | None, run: RunView, now: datetime, announced: RunView | None = None
) -> Iterator[str]:
    """Lines for people, the run's own first.

    Args:
        before: what was seen last; None = nothing.
        run: what is seen now.
        now: the time.
        announced: of which plan people know; None = of the one seen last.
    """
    if before is None or before.placement is None:
        yield _first(run, now)
        return
    if run.placement is None:
        yield f"cannot be read any more: {sentence(run.problems[0])}" if run.problems else "gone"
        return
    if is_replanned(before if announced is None else announced, run):
        parts = [makespans_text(run), run_ends_sentence(run, now)]
        facts = ", ".join(filter(None, parts))
        yield f"replanned (revision {run.placement.spec.revision}): {facts}"
    elif is_promised_anew(before if announced is None else announced, run):
        yield f"now {run_ends_sentence(run, now)}"
    known = {(each.type, each.reason, each.message) for each in before.alarms}
    for each in run.alarms:
        if (each.type, each.reason, each.message) not in known:
            yield alarm_text(each)
    yield from _step_changes(before, run, now)
    if run.phase != before.phase:
        yield ending(run) if run.ended else f"{shown(run.phase, 20)}, {progress_text(run)}"


def is_replanned(announced: RunView, run: RunView) -> bool:
    """Whether a later plan is worth a line: other nodes, or an end that moves otherwise.

    While a step waits, every plan ends later by the time that has passed: that is not reported.

    Args:
        announced: the run with the plan that people know.
        run: the run now.
    """
    if announced.placement is None or run.placement is None:
        return False
    old, new = announced.placement.spec, run.placement.spec
    if old.revision == new.revision:
        return False
    if _moved(announced, run):
        return True
    if old.makespan_seconds is None or new.makespan_seconds is None:
        return old.makespan_seconds != new.makespan_seconds
    moved_seconds = new.makespan_seconds - old.makespan_seconds
    passed_seconds = (new.planned_at - old.planned_at).total_seconds()
    slid = bool(run.waiting) and abs(moved_seconds - passed_seconds) <= _NEWS_SECONDS
    return abs(moved_seconds) > _NEWS_SECONDS and not slid


def is_promised_anew(announced: RunView, run: RunView) -> bool:
    """Whether the end that is promised now lies outside of what people know, or is first known.

    Args:
        announced: the run with the promise that people know.
        run: the run now.
    """
    promise, known = promise_of(run), promise_of(announced)
    if promise is None or promise.ends is None:
        return False
    if known is None or known.ends is None:
        return True
    low, high = known.ends.low_seconds, known.ends.high_seconds
    return not low <= promise.ends.typical_seconds <= high


def _moved(announced: RunView, run: RunView) -> bool:
    """Whether a step still to end is to go elsewhere, or has come new."""
    known = {step.name: step.planned_node for step in announced.steps}
    return any(
        step.name not in known or step.planned_node != known[step.name]
        for step in run.steps
        if step.state not in ENDED_STATES
    )


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
        promise=old.promise,
        waiting=old.waiting,
    )


def ending(run: RunView) -> str:
    """How it ended: `Succeeded, 3/3 steps ended, took 22m, 1m5s less than first planned`."""
    parts = [shown(run.phase, 20), progress_text(run), makespans_text(run)]
    parts += filter(None, [first_promise_sentence(run)])
    if run.workflow_message:
        parts.append(f"Argo says: {run.workflow_message}")
    return sentence(", ".join(parts))


def _first(run: RunView, now: datetime) -> str:
    if run.placement is None:
        return f"{run_title(run)}: no plan yet"
    if run.ended:
        return f"{run_title(run)}: {ending(run)}"
    waits = waiting_summary(run, now)
    parts = [shown(run.phase, 20), progress_text(run), makespans_text(run)]
    parts += filter(None, [run_ends_sentence(run, now)])
    parts += [f"waiting: {waits}"] if waits else []
    return f"{run_title(run)}: {', '.join(parts)}"


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
    parts = [shown(step.state, 20)]
    if step.node is not None:
        parts[0] += f" on {name_text(step.node)}"
    if step.is_deviating:
        parts.append(f"planned on {name_text(step.planned_node)}")
    if step.state == StepState.RUNNING or step.state in ENDED_STATES:
        parts.append(drift_text(step))
    if step.state == StepState.RUNNING:
        ends = step_ends(run, step)
        until = f"until about {values.duration(step.planned_finish_seconds)}"
        parts.append(f"ends {ends}" if ends else until)
    return ", ".join(filter(None, parts))
