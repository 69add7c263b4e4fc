"""Words and figures that the live commands share; everything comes out visible and bounded."""

from datetime import UTC, datetime

from kfp_placement.live.runs import RunView, StepView
from kfp_placement.report import values
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.resources import Condition
from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.step_state import StepState, Waiting, WaitingFor
from kfp_placement_engine.model.times import time_text

NONE = values.NONE

MAX_NAME = 253
MAX_SENTENCE = 1200
"""Characters shown of a name and of a sentence."""

_ON_TIME_SECONDS = 1.0
"""A step that starts or ends so close to its plan is on time: API times are whole seconds."""


def name_text(name: str | None) -> str:
    """A name, or what stands for none."""
    return shown(name, MAX_NAME) if name else NONE


def sentence(text: str) -> str:
    """Somebody's text."""
    return shown(text, MAX_SENTENCE)


def age_text(seconds: float | None) -> str:
    """How long ago, in two units."""
    return NONE if seconds is None else format_duration(round(seconds))


def ago_text(seconds: float | None) -> str:
    """The same, as a moment: `3m ago`."""
    return NONE if seconds is None else f"{age_text(seconds)} ago"


def clock_text(moment: datetime) -> str:
    """The time of day, UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def moment_text(moment: datetime) -> str:
    """Date and time, UTC."""
    return time_text(moment)


def planned_text(step: StepView) -> str:
    """From when to when, since the submission: `47s to 20m49s`."""
    if step.planned_start_seconds is None and step.planned_finish_seconds is None:
        return NONE
    start = values.duration(step.planned_start_seconds)
    return f"{start} to {values.duration(step.planned_finish_seconds)}"


def actual_text(step: StepView) -> str:
    """The same as it was: `49s to 20m55s`, or `49s to now`."""
    if step.start_seconds is None:
        return NONE
    end = "now" if step.end_seconds is None else values.duration(step.end_seconds)
    return f"{values.duration(step.start_seconds)} to {end}"


def drift_text(step: StepView) -> str:
    """How far a step is off its plan: `started 2s late`, `ended 12s early`, or ""."""
    pairs = (
        ("ended", step.end_seconds, step.planned_finish_seconds),
        ("started", step.start_seconds, step.planned_start_seconds),
    )
    for word, actual, planned in pairs:
        if actual is None or planned is None:
            continue
        late = actual - planned
        if abs(late) < _ON_TIME_SECONDS:
            return f"{word} on time"
        return f"{word} {format_duration(round(abs(late)))} {'late' if late > 0 else 'early'}"
    return ""


def is_alike(seconds: float | None, first_seconds: float | None) -> bool:
    """Two makespans that people need not tell apart; False where one is not known."""
    if seconds is None or first_seconds is None:
        return False
    return abs(seconds - first_seconds) < _ON_TIME_SECONDS


def against_text(seconds: float | None, first_seconds: float | None) -> str:
    """A makespan against the first plan's: `equal`, `10s longer`, `1m less`."""
    if seconds is None or first_seconds is None:
        return ""
    difference = seconds - first_seconds
    if is_alike(seconds, first_seconds):
        return "as first planned"
    amount = format_duration(round(abs(difference)))
    return f"{amount} {'more' if difference > 0 else 'less'} than first planned"


def progress_text(run: RunView) -> str:
    """`3/7 steps ended`; those that were skipped have not: `0/7 steps ended, 7 skipped`."""
    skipped = run.count(StepState.SKIPPED)
    ended, slash, total = run.progress.partition("/")
    if not skipped or not slash or not (ended.isascii() and ended.isdigit()):
        return f"{shown(run.progress, 20) or 'no'} steps ended"
    return f"{max(0, int(ended) - skipped)}/{shown(total, 20)} steps ended, {skipped} skipped"


def makespans_text(run: RunView) -> str:
    """How long the run was planned to take and took; one that failed is held against no plan."""
    actual, first = run.actual_makespan_seconds, run.first_makespan_seconds
    if run.failed:
        planned = run.makespan_seconds if first is None else first
        parts = ["" if actual is None else f"took {values.duration(actual)}"]
        parts += ["" if planned is None else f"was planned to take {values.duration(planned)}"]
        return ", ".join(filter(None, parts)) or "never planned"
    if actual is not None:
        parts = [f"took {values.duration(actual)}", against_text(actual, first)]
    else:
        planned = run.makespan_seconds
        if planned is None:
            return _no_end(run)
        parts = [f"planned to take {values.duration(planned)}", against_text(planned, first)]
    return ", ".join(filter(None, parts))


def _no_end(run: RunView) -> str:
    unplaced = len(run.unplaced)
    if not unplaced:
        return "no planned end"
    verb = "has" if unplaced == 1 else "have"
    return f"no planned end: {values.counted(unplaced, 'step')} {verb} no node"


def waiting_word(waiting: Waiting) -> str:
    """What is waited for, in a word: one of `WaitingFor`, or a newer one as it is."""
    return shown(waiting.what, 40)


def waiting_summary(run: RunView, now: datetime) -> str:
    """What a run's steps wait for: `2 for quota (5m), 1 for node (10s)`; the oldest of each."""
    age = run.age_seconds(now)
    since: dict[str, list[float]] = {}
    for step in run.waiting:
        if step.waiting is not None:
            since.setdefault(waiting_word(step.waiting), []).append(step.waiting.since_seconds)
    known = [str(each) for each in WaitingFor]
    ordered = sorted(since, key=lambda word: (word not in known, word))[:8]
    return ", ".join(
        f"{len(since[word])} for {word} ({age_text(max(0.0, (age or 0.0) - min(since[word])))})"
        for word in ordered
    )


def alarm_text(condition: Condition) -> str:
    """A condition that ought to hold: `not Schedulable (NoMatchingNode): ...`."""
    message = f": {condition.message}" if condition.message else ""
    return sentence(f"not {condition.type} ({condition.reason}){message}")


def run_title(run: RunView) -> str:
    """`team-a/taxi-x7k2p (taxi, Tuesday)`."""
    title = f"{name_text(run.namespace)}/{name_text(run.name)}"
    return f"{title} ({shown(run.run_name, 80)})" if run.run_name else title
