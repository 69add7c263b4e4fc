"""News of a run that somebody follows: one line for each change between two looks at it."""

from collections.abc import Iterator
from dataclasses import replace

from kfp_placement_engine.model.step_state import ENDED_STATES, StepState
from kfp_placement_engine.views.formatting import duration, facts, name_text, sentence, word
from kfp_placement_engine.views.run_texts import (
    alarm_text,
    drift_text,
    makespans_text,
    progress_text,
    run_ends_sentence,
    state_text,
    step_ends,
    summary,
)
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView

_NEWS_SECONDS = 5.0
"""Largest move of a planned end that is not reported: each step that ends moves it a little."""


def news(before: RunView | None, run: RunView, announced: RunView | None = None) -> Iterator[str]:
    """Yield a line for each change since the last look: of the run first, then of its steps.

    Args:
        before: run as it was seen last; None at the first look.
        run: run as it is seen now.
        announced: run with the plan that was announced last; None = `before`.
    """
    if before is None or not before.has_plan:
        if before is None or replace(before, seen_at=run.seen_at) != run:
            yield summary(run)
        return
    if not run.has_plan:
        yield f"cannot be read any more: {sentence(run.problems[0])}" if run.problems else "gone"
        return
    announced = announced or before
    if is_replanned(announced, run):
        times = facts(makespans_text(run), run_ends_sentence(run))
        yield f"replanned (revision {run.revision}): {times}"
    elif is_promised_anew(announced, run):
        yield f"now {run_ends_sentence(run)}"
    alarms = list(map(alarm_text, before.alarms))
    yield from (text for text in map(alarm_text, run.alarms) if text not in alarms)
    old_steps = {step.name: step for step in before.steps}
    for step in run.steps:
        old = old_steps.get(step.name)
        if old is None or _state_and_node(old) != _state_and_node(step):
            yield f"{name_text(step.name)}: {_step_news(run, step)}"
    if run.phase != before.phase:
        yield state_text(run) if run.ended else facts(word(run.phase), progress_text(run))


def is_news(announced: RunView, run: RunView) -> bool:
    """Return whether the plan or the promised end has changed enough to be reported."""
    return is_replanned(announced, run) or is_promised_anew(announced, run)


def is_replanned(announced: RunView, run: RunView) -> bool:
    """Return whether a later plan is reported: it moves steps, or the end of the run.

    While a step waits, the end of each plan moves by the time that has passed. This move is not
    reported.

    Args:
        announced: run with the plan that was announced last.
        run: run as it is now.
    """
    if announced.planned_at is None or run.planned_at is None or announced.revision == run.revision:
        return False
    nodes = {step.name: step.planned_node for step in announced.steps}
    if any(
        step.name not in nodes or step.planned_node != nodes[step.name]
        for step in run.steps
        if step.state not in ENDED_STATES
    ):
        return True
    if announced.makespan_seconds is None or run.makespan_seconds is None:
        return announced.makespan_seconds != run.makespan_seconds
    moved_seconds = run.makespan_seconds - announced.makespan_seconds
    passed_seconds = (run.planned_at - announced.planned_at).total_seconds()
    slid = bool(run.waiting) and abs(moved_seconds - passed_seconds) <= _NEWS_SECONDS
    return abs(moved_seconds) > _NEWS_SECONDS and not slid


def is_promised_anew(announced: RunView, run: RunView) -> bool:
    """Return whether the run has its first promised end, or one outside the announced range.

    Args:
        announced: run with the promise that was announced last.
        run: run as it is now.
    """
    ends, old = run.ends, announced.ends
    if ends is None or old is None:
        return ends is not None
    return not old.low_seconds <= ends.typical_seconds <= old.high_seconds


def _state_and_node(step: StepView) -> tuple[str, str | None, str]:
    return step.state, step.node, "" if step.waiting is None else step.waiting.what


def _step_news(run: RunView, step: StepView) -> str:
    if step.waiting is not None:
        return sentence(run.waits(step))
    is_running = step.state == StepState.RUNNING
    on = "" if step.node is None else f" on {name_text(step.node)}"
    planned, ends = step.planned_finish_seconds, step_ends(run, step)
    until = "" if planned is None else f"until about {duration(planned)}"
    return facts(
        word(step.state) + on,
        f"planned on {name_text(step.planned_node)}" if step.is_deviating else "",
        drift_text(step) if is_running or step.state in ENDED_STATES else "",
        (f"ends {ends}" if ends else until) if is_running else "",
    )
