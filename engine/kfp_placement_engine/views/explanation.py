"""Documents on one run, step by step, for `explain`, `watch` and a cell of a notebook."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.reasons import FAR_FROM_USERS, NEAR_USERS
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.units.durations import format_duration, round_trip_text
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.document import (
    Column,
    ColumnOf,
    Document,
    Line,
    Note,
    Notes,
    Table,
    table_of,
)
from kfp_placement_engine.views.formatting import (
    age_text,
    clock_text,
    counted,
    facts,
    name_text,
    sentence,
    shown,
    word,
)
from kfp_placement_engine.views.queues import waiting_lines
from kfp_placement_engine.views.run_texts import (
    actual_text,
    alarm_text,
    drift_text,
    first_promise_sentence,
    makespans_text,
    planned_text,
    progress_text,
    rests_on,
    run_ends_sentence,
    run_title,
    step_ends,
    step_starts,
    story,
)
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import OtherNode, StepView

_MIN_STEP = 24
_MIN_WHY = 30

_NOT_COMPARED = (
    "a run's first plan, made at once, compares none, and a step that has begun keeps what it began"
    " with"
)
_ACTIVE = frozenset({StepState.RUNNING, StepState.WAITING})
"""States of steps that run or wait."""


def explanation(run: RunView, steps: Sequence[StepView], *, in_full: bool) -> Document:
    """Return the document of `explain`: facts on the run, then its steps.

    Args:
        run: run to explain.
        steps: steps of the run to explain.
        in_full: whether all details of each step are shown, in place of one line.
    """
    parts = [_in_full(run, step) for step in steps] if in_full else [step_table(run, steps)]
    return Document(
        title=run_title(run),
        lead=facts(word(run.phase) or "no plan yet", progress_text(run) if run.has_plan else ""),
        lines=[Line(text) for text in _head(run) if text],
        parts=parts if steps else (),
    )


def snapshot(run: RunView, remarks: Sequence[str], most_steps: int) -> Document:
    """Return the document for a cell of a notebook: a small table of the steps, with remarks.

    Args:
        run: run to show.
        remarks: latest news of the run.
        most_steps: limit on the number of steps; those that run or wait come first.
    """
    steps = run.steps
    if len(steps) > most_steps:
        by_interest = sorted(steps, key=lambda step: step.state not in _ACTIVE)
        steps = tuple(by_interest[:most_steps])
    hidden = len(run.steps) - len(steps)
    notes = [f"{hidden:,} more steps are not shown."] if hidden else []
    as_of = f"as of {clock_text(run.seen_at)} UTC"
    table = replace(step_table(run, steps), notes=[*notes, *remarks, as_of])
    return Document(title=run_title(run), lead=story(run), parts=[table])


def progress(run: RunView, most_steps: int) -> Document:
    """Return the document for a terminal that is redrawn: the steps that run or wait."""
    steps = [step for step in run.steps if step.state in _ACTIVE][:most_steps]
    age = f"{age_text(run.age_seconds)} since submission"
    title = facts(word(run.phase), progress_text(run), age, run_ends_sentence(run))
    return Document(title=title, parts=[step_table(run, steps)])


def _head(run: RunView) -> Iterator[str]:
    if run.queue is not None and run.queue.is_waiting:
        yield from waiting_lines(run.queue, promised=run.is_after_start).splitlines()
    if run.submitted_at is not None and run.planned_at is not None:
        yield f"submitted {time_text(run.submitted_at)}, {age_text(run.age_seconds)} ago"
        yield (
            f"{makespans_text(run)}; revision {run.revision}, planned"
            f" {time_text(run.planned_at)}, dispatch {word(run.dispatch)}"
        )
        if run.basis:
            yield (
                f"planned by the {word(run.basis)} of the run: requests and images are those of"
                " past runs, or assumed"
            )
        yield sentence(run_ends_sentence(run), first_promise_sentence(run))
    if run.workflow_message:
        yield f"Argo says: {sentence(run.workflow_message)}"
    yield from map(alarm_text, run.alarms)
    missing = run.missing_package
    if missing is not None:
        yield sentence(f"planned without its package ({missing.reason}): {missing.message}")
    if run.folded_steps:
        yield f"{counted(run.folded_steps, 'ended step')} only counted, not shown"
    label = "not readable" if run.phase else "no plan"
    for problem in run.problems:
        yield f"{label}: {sentence(problem)}"


def step_table(run: RunView, steps: Sequence[StepView]) -> Table:
    """Return a table with a row for each step; a column that is empty in all rows is left out."""
    columns: list[ColumnOf[StepView]] = [
        (Column("STEP", shrink_to=_MIN_STEP, is_path=True), lambda step: name_text(step.name)),
        (Column("STATE"), lambda step: word(step.state)),
        (Column("NODE"), _where),
        (Column("PLANNED", spare=2), planned_text),
        (Column("ACTUAL", spare=1), actual_text),
        (Column("STARTS", optional=True, spare=5), lambda step: step_starts(run, step)),
        (Column("ENDS", optional=True, spare=3), lambda step: step_ends(run, step)),
        (Column("RESTS ON", optional=True, spare=4), rests_on),
        (Column("WHY", wrap_from=_MIN_WHY), lambda step: _why(run, step)),
    ]
    return table_of("Steps", columns, steps)


def _why(run: RunView, step: StepView) -> str:
    waits = _waits(run, step)
    parts = (f"waits {waits}" if waits else "", _elsewhere(step), step.reason)
    return "; ".join(sentence(text) for text in parts if text)


def _where(step: StepView) -> str:
    """Return the node of a step, else the planned one; `planned -> actual` if these differ."""
    if step.is_deviating:
        return f"{name_text(step.planned_node)} -> {name_text(step.node)}"
    return name_text(step.node or step.planned_node)


def _in_full(run: RunView, step: StepView) -> Notes:
    details = [
        ("planned", facts(name_text(step.planned_node), planned_text(step))),
        ("actual", facts(name_text(step.node), actual_text(step), drift_text(step))),
        ("starts", step_starts(run, step)),
        ("ends", step_ends(run, step)),
        ("rests on", rests_on(step)),
        ("memory", step.memory_advice),
        ("latency", _latency(step)),
        ("why there" if step.planned_node else "why", step.reason),
        *(("else", text) for text in _others(step)),
        ("elsewhere", _elsewhere(step)),
        ("waits", _waits(run, step)),
        *(("pod", text) for text in _pod_facts(step)),
    ]
    items = [Note(sentence(text), label) for label, text in details if text]
    return Notes(f"{name_text(step.name)} ({word(step.state)})", items)


def _latency(step: StepView) -> str:
    """Return round trip and limit: `9.8 ms to HOME-EDGE, limit 20 ms (2 nodes beyond)`, or ""."""
    limit_ms = step.max_latency_ms
    if step.latency_ms is None and limit_ms is None:
        return ""
    trip = "not said" if step.latency_ms is None else round_trip_text(step.latency_ms)
    to = f" to {step.location}" if step.location else ""
    beyond = f" ({counted(step.nodes_beyond, 'node')} beyond)" if step.nodes_beyond else ""
    return trip + to + (f", limit {round_trip_text(limit_ms)}{beyond}" if limit_ms else "")


def _others(step: StepView) -> list[str]:
    """Return texts on the next best nodes, or on why the plan names none."""
    code = "" if step.why is None else step.why.code
    may_have = step.planned_node is not None and code not in ("cached", "only-node")
    if may_have and not step.alternatives:
        limit_ms = step.max_latency_ms
        beyond = "" if limit_ms is None else f"beyond {round_trip_text(limit_ms)} none may be"
        return [f"the plan names no other node: {beyond or _NOT_COMPARED}"]
    # The time lost does not show that the latency rule has decided.
    is_ruled = code in NEAR_USERS | FAR_FROM_USERS
    rule = "; by time alone, the latency rule comes first" if is_ruled else ""
    return [_other(each) + rule for each in step.alternatives]


def _other(other: OtherNode) -> str:
    lost, trip_ms = other.loss_seconds, other.latency_ms
    later = "no later" if lost <= 0 else f"{format_duration(lost)} later"
    trip = "" if trip_ms is None else f"round trip {round_trip_text(trip_ms)}; "
    return f"{name_text(other.node)}: {trip}the run would end {later}"


def _waits(run: RunView, step: StepView) -> str:
    """Return what a step waits for by the planner, else by Kubernetes; "" = nothing."""
    if step.waiting is not None:
        return run.waits(step).removeprefix("waits ")
    pod = step.pod
    if pod is not None and pod.phase == "Pending" and (pod.gates or pod.message):
        return f"as Kubernetes says: {pod.message}" if pod.message else "for its scheduling gates"
    return ""


def _elsewhere(step: StepView) -> str:
    """Return why a step is off its planned node, or where its limit may be broken; or ""."""
    if step.elsewhere or not step.is_deviating:
        return step.elsewhere
    return f"planned on {step.planned_node}, runs on {step.node}; no event says why"


def _pod_facts(step: StepView) -> Iterator[str]:
    pod = step.pod
    if pod is None:
        return
    yield facts(name_text(pod.name), word(pod.phase))
    for gate in pod.gates[:8]:
        whose = "ours" if gate == PLAN_GATE else "not ours; whoever set it takes it off"
        yield f"scheduling gate {shown(gate, 120)} ({whose})"
    if pod.message:
        yield f"Kubernetes says: {pod.message}"
