"""What has changed between two looks at a run, a line for each; pure."""

from collections.abc import Iterator

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
"""A planned end that moves by less is not reported: every end of a step moves it a little."""


def changes(
    before: RunView | None, run: RunView, announced: RunView | None = None
) -> Iterator[str]:
    """Lines for people, the run's own first.

    Args:
        before: what was seen last; None = nothing.
        run: what is seen now.
        announced: of which plan people know; None = of the one seen last.
    """
    if before is None or not before.has_plan:
        yield summary(run)
        return
    if not run.has_plan:
        yield f"cannot be read any more: {sentence(run.problems[0])}" if run.problems else "gone"
        return
    known = before if announced is None else announced
    if is_replanned(known, run):
        told = facts(makespans_text(run), run_ends_sentence(run))
        yield f"replanned (revision {run.revision}): {told}"
    elif is_promised_anew(known, run):
        yield f"now {run_ends_sentence(run)}"
    alarms = list(map(alarm_text, before.alarms))
    yield from (text for text in map(alarm_text, run.alarms) if text not in alarms)
    old_steps = {step.name: step for step in before.steps}
    for step in run.steps:
        old = old_steps.get(step.name)
        if old is None or _key(old) != _key(step):
            yield f"{name_text(step.name)}: {_step(run, step)}"
    if run.phase != before.phase:
        yield state_text(run) if run.ended else facts(word(run.phase), progress_text(run))


def is_news(announced: RunView, run: RunView) -> bool:
    """Whether the plan or what is promised is worth a line, for people who know another."""
    return is_replanned(announced, run) or is_promised_anew(announced, run)


def is_replanned(announced: RunView, run: RunView) -> bool:
    """Whether a later plan is worth a line: other nodes, or an end that moves otherwise.

    While a step waits, every plan ends later by the time that has passed: that is not reported.

    Args:
        announced: the run with the plan that people know.
        run: the run now.
    """
    if announced.planned_at is None or run.planned_at is None:
        return False
    if announced.revision == run.revision:
        return False
    known = {step.name: step.planned_node for step in announced.steps}
    if any(
        step.name not in known or step.planned_node != known[step.name]
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
    """Whether the end that is promised now lies outside of what people know, or is first known.

    Args:
        announced: the run with the promise that people know.
        run: the run now.
    """
    ends, known = run.ends, announced.ends
    if ends is None or known is None:
        return ends is not None
    return not known.low_seconds <= ends.typical_seconds <= known.high_seconds


def _key(step: StepView) -> tuple[str, str | None, str]:
    return step.state, step.node, "" if step.waiting is None else step.waiting.what


def _step(run: RunView, step: StepView) -> str:
    if step.waiting is not None:
        return sentence(run.waits(step))
    is_running = step.state == StepState.RUNNING
    on = "" if step.node is None else f" on {name_text(step.node)}"
    until = f"until about {duration(step.planned_finish_seconds)}"
    ends = step_ends(run, step)
    return facts(
        word(step.state) + on,
        f"planned on {name_text(step.planned_node)}" if step.is_deviating else "",
        drift_text(step) if is_running or step.state in ENDED_STATES else "",
        (f"ends {ends}" if ends else until) if is_running else "",
    )
