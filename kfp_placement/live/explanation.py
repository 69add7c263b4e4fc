"""A run, step by step, in words: what `explain` prints."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from kfp_placement.live.formatting import (
    NONE,
    actual_text,
    age_text,
    alarm_text,
    drift_text,
    makespans_text,
    moment_text,
    name_text,
    planned_text,
    progress_text,
    run_title,
    sentence,
)
from kfp_placement.live.latencies import latency_text
from kfp_placement.live.promises import (
    first_promise_sentence,
    rests_on,
    run_ends_sentence,
    step_ends,
    step_starts,
    without_promise,
)
from kfp_placement.live.queues import QueueView, waiting_text
from kfp_placement.live.runs import UNKNOWN_STATE, AlternativeView, RunView, StepView
from kfp_placement.report import values
from kfp_placement.report.columns import Column, layout
from kfp_placement.report.table import TableStyle
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.durations import format_duration, round_trip_text
from kfp_placement_engine.model.step_state import StepState

_MIN_STEP = 24
_MIN_WHY = 30
_LABEL = 14
"""Columns of the words at the left of a block."""

_NOT_COMPARED = (
    "a run's first plan, made at once, compares none, and a step that has begun keeps what it began"
    " with"
)
ACTIVE = frozenset({StepState.RUNNING, StepState.WAITING})
"""States of steps that something happens to."""
_NOT_BEGUN = frozenset({StepState.PENDING, StepState.WAITING, UNKNOWN_STATE})
_MAX_ACTIVE = 100
"""Steps that are laid out for a terminal; what does not fit on it is cut off."""


def explanation(
    run: RunView,
    steps: Sequence[StepView],
    now: datetime,
    style: TableStyle,
    *,
    in_full: bool,
) -> str:
    """The run's head, and its steps.

    Args:
        run: the run.
        steps: those that were asked for.
        now: the time.
        style: how to print.
        in_full: a block for every step instead of a line.
    """
    blocks = [_head(run, now)]
    if steps and in_full:
        blocks += [_block(run, step, now, style) for step in steps]
    elif steps:
        blocks.append(_table(run, steps, now, style))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def unplanned_explanation(queue: QueueView, why: str) -> str:
    """What there is to say of a run that is in a queue and has no plan.

    Args:
        queue: how it waits.
        why: it has no plan.
    """
    return f"{waiting_text(queue)}\nno plan: {why}\n"


def without_past_plan(run: RunView, queue: QueueView | None) -> RunView:
    """The run; while it waits in a queue, without times planned for steps that have not begun.

    They count from a moment at which it was not let run.
    """
    if queue is None or not queue.is_waiting:
        return run
    bare = without_promise(run)
    return replace(bare, steps=tuple(map(_without_planned_times, bare.steps)))


def _without_planned_times(step: StepView) -> StepView:
    if step.state not in _NOT_BEGUN:
        return step
    return replace(step, planned_start_seconds=None, planned_finish_seconds=None)


def active_lines(run: RunView, now: datetime, style: TableStyle) -> list[str]:
    """The steps that run or wait, for a terminal that is drawn repeatedly."""
    steps = [step for step in run.steps if step.state in ACTIVE]
    counted = f"{shown(run.phase, 20)}, {progress_text(run)}"
    age = age_text(run.age_seconds(now))
    facts = [counted, f"{age} since submission", run_ends_sentence(run, now)]
    head = ", ".join(filter(None, facts))
    return ["", head, *_table(run, steps[:_MAX_ACTIVE], now, style)]


def _head(run: RunView, now: datetime) -> list[str]:
    lines = [f"{run_title(run)}: {shown(run.phase, 20)}"]
    placement = run.placement
    if placement is not None:
        spec = placement.spec
        lines[0] += f", {progress_text(run)}"
        lines += [
            f"submitted {moment_text(spec.submitted_at)}, {age_text(run.age_seconds(now))} ago",
            f"{makespans_text(run)}; revision {spec.revision}, planned"
            f" {moment_text(spec.planned_at)}, dispatch {shown(spec.dispatch, 20)}",
        ]
        promises = (run_ends_sentence(run, now), first_promise_sentence(run))
        lines += ["; ".join(filter(None, promises))] if any(promises) else []
    if run.workflow_message:
        lines.append(f"Argo says: {sentence(run.workflow_message)}")
    lines += [alarm_text(each) for each in run.alarms]
    if run.folded_steps:
        lines.append(f"{values.counted(run.folded_steps, 'ended step')} only counted, not shown")
    return [*lines, *(f"not readable: {sentence(problem)}" for problem in run.problems)]


def step_table(
    run: RunView, steps: Sequence[StepView], now: datetime
) -> tuple[list[Column], list[list[str]]]:
    """Columns, and a row for each step; what is said of no step has no column."""
    columns = {
        Column("STEP", shrink_to=_MIN_STEP, is_path=True): lambda step: name_text(step.name),
        Column("STATE"): lambda step: shown(step.state, 20),
        Column("NODE"): where,
        Column("PLANNED", spare=2): planned_text,
        Column("ACTUAL", spare=1): actual_text,
    }
    told = {
        Column("STARTS", spare=5): lambda step: step_starts(run, step),
        Column("ENDS", spare=3): lambda step: step_ends(run, step),
        Column("RESTS ON", spare=4): rests_on,
    }
    columns |= {column: text for column, text in told.items() if any(map(text, steps))}
    columns[Column("WHY", wrap_from=_MIN_WHY)] = lambda step: _why(run, step, now)
    return list(columns), [[text(step) for text in columns.values()] for step in steps]


def _table(run: RunView, steps: Sequence[StepView], now: datetime, style: TableStyle) -> list[str]:
    columns, rows = step_table(run, steps, now)
    return layout(columns, rows, style.columns)


def _why(run: RunView, step: StepView, now: datetime) -> str:
    waits = _waits(run, step, now)
    parts = [f"waits {waits}" if waits else "", *_off(step), step.reason]
    return "; ".join(sentence(text) for text in parts if text)


def where(step: StepView) -> str:
    """Where a step is, or is to go; `planned -> actual` where these differ."""
    if step.is_deviating:
        return f"{name_text(step.planned_node)} -> {name_text(step.node)}"
    return name_text(step.node or step.planned_node)


def _block(run: RunView, step: StepView, now: datetime, style: TableStyle) -> list[str]:
    facts = [
        ("planned", _joined(name_text(step.planned_node), planned_text(step))),
        ("actual", _joined(name_text(step.node), actual_text(step), drift_text(step))),
        ("starts", step_starts(run, step)),
        ("ends", step_ends(run, step)),
        ("rests on", rests_on(step)),
        ("memory", sentence(step.memory_advice)),
        ("latency", sentence(latency_text(step.latency))),
        ("why there" if step.planned_node else "why", sentence(step.reason)),
        *(("else", text) for text in _others(step)),
        *(("elsewhere", sentence(text)) for text in _off(step)),
        ("waits", sentence(_waits(run, step, now))),
        *(("pod", text) for text in _pod_facts(step)),
    ]
    lines = [f"{name_text(step.name)}: {shown(step.state, 20)}"]
    for label, text in facts:
        if text:
            lines += _labelled(label, text, style.columns)
    return lines


def _joined(*texts: str) -> str:
    parts = [text for text in texts if text and text != NONE]
    return ", ".join(parts)


def _others(step: StepView) -> list[str]:
    """The next best nodes, or that the plan names none though there may be some."""
    if step.is_compared and not step.alternatives:
        limit_ms = step.latency.max_latency_ms
        beyond = "" if limit_ms is None else f"beyond {round_trip_text(limit_ms)} none may be"
        return [f"the plan names no other node: {beyond or _NOT_COMPARED}"]
    return [_alternative(each, is_ruled=step.is_ruled) for each in step.alternatives]


def _alternative(alternative: AlternativeView, *, is_ruled: bool) -> str:
    loss_seconds, latency_ms = alternative.loss_seconds, alternative.latency_ms
    later = "no later" if loss_seconds <= 0 else f"{format_duration(loss_seconds)} later"
    trip = "" if latency_ms is None else f"round trip {round_trip_text(latency_ms)}; "
    # The time lost says nothing of the rule, which has decided.
    rule = "; by time alone, the latency rule comes first" if is_ruled else ""
    return f"{name_text(alternative.node)}: {trip}the run would end {later}{rule}"


def _waits(run: RunView, step: StepView, now: datetime) -> str:
    """What the planner says it waits for, else what Kubernetes says of the pod; "" = nothing."""
    sentence_of_plan = run.waiting_sentence(step, now)
    if sentence_of_plan:
        return sentence_of_plan.removeprefix("waits ")
    pod = step.pod
    if pod is not None and pod.phase == "Pending" and (pod.gates or pod.message):
        return f"as Kubernetes says: {pod.message}" if pod.message else "for its scheduling gates"
    return ""


def _off(step: StepView) -> list[str]:
    """Why it is not where it should be, or is where a limit may not be kept."""
    if step.why_deviating or not step.is_deviating:
        return [*step.why_deviating]
    return [f"planned on {step.planned_node}, runs on {step.node}; no event says why"]


def _pod_facts(step: StepView) -> list[str]:
    pod = step.pod
    if pod is None:
        return []
    facts = [_joined(name_text(pod.name), shown(pod.phase, 20))]
    for gate in pod.gates[:8]:
        whose = "ours" if gate == PLAN_GATE else "not ours; whoever set it takes it off"
        facts.append(f"scheduling gate {shown(gate, 120)} ({whose})")
    if pod.message:
        facts.append(f"Kubernetes says: {sentence(pod.message)}")
    return facts


def _labelled(label: str, text: str, columns: int | None) -> list[str]:
    start = f"  {label:<{_LABEL - 2}}"
    if columns is None or len(start) + len(text) <= columns:
        return [start + text]
    room = max(columns - len(start), _MIN_WHY)
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    return [start + first, *(" " * len(start) + line for line in rest)]
