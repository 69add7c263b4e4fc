"""What past runs tell, as views: what `history` shows."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeGuard

from kfp_placement_engine.contract.forecast_texts import basis_text, range_text
from kfp_placement_engine.contract.memory_texts import memory_text
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.views.document import (
    Column,
    Document,
    Line,
    NumberColumn,
    Shown,
    Table,
    table_of,
)
from kfp_placement_engine.views.formatting import NONE, ago_text, counted, name_text, sentence
from kfp_placement_engine.views.past_runs import PipelineDetails, PipelineTimes, StepTimes

_MIN_NAME = 24
_MIN_NOTE = 24

_CLOCKS_APART = timedelta(days=1)
"""By less clocks of machines may differ."""


def pipelines_table(
    pipelines: Sequence[PipelineTimes], now: datetime, *, namespaces: bool
) -> Table:
    """The table of pipelines.

    Args:
        pipelines: in the order shown.
        now: the time.
        namespaces: with a column for the namespace.
    """
    columns: list[Shown[PipelineTimes]] = [
        (Column("NAMESPACE"), lambda each: name_text(each.namespace)),
        (Column("PIPELINE"), lambda each: name_text(each.name)),
        (NumberColumn("RUNS"), lambda each: f"{each.runs:,}"),
        (Column("TAKES"), lambda each: _takes(each.takes)),
        (NumberColumn("LAST RUN", spare=1), lambda each: _ago(each.last_run_at, now)),
        (
            Column("NOTES", wrap_from=_MIN_NOTE),
            lambda each: sentence(_forgotten(each.forget_before), _of_later(each, now)),
        ),
    ]
    hidden = () if namespaces else ("NAMESPACE",)
    return table_of("Pipelines", columns, pipelines, hidden=hidden)


def details_view(details: PipelineDetails, now: datetime) -> Document:
    """A pipeline, and the table of its steps.

    Args:
        details: what is known.
        now: the time.
    """
    columns: list[Shown[StepTimes]] = [
        (Column("STEP", shrink_to=_MIN_NAME, is_path=True), lambda step: name_text(step.step)),
        (NumberColumn("RUNS"), lambda step: f"{step.runs:,}"),
        (
            NumberColumn("ITEMS SEEN", spare=3),
            lambda step: f"{step.iterations:,}" if step.iterations > 1 else NONE,
        ),
        (Column("TAKES"), lambda step: _takes(step.takes)),
        (Column("RESTS ON", spare=1), _rests_on),
        (NumberColumn("INPUTS", spare=2), _inputs),
        (Column("MEMORY", spare=4), _used),
        (
            Column("NOTES", wrap_from=_MIN_NOTE),
            lambda step: sentence(
                step.memory.advice if step.memory is not None else "",
                _forgotten(step.forget_before),
            ),
        ),
    ]
    times = details.pipeline
    head, *lines = _head(details, now)
    space = f"{name_text(times.namespace)}/" if times.namespace else ""
    has_memory = any(each.memory is not None for each in details.steps)
    hidden = () if has_memory else ("MEMORY",)
    return Document(
        title=space + name_text(times.name),
        lead=head,
        lines=[Line(line) for line in lines],
        parts=[table_of("Steps", columns, details.steps, hidden=hidden)] if details.steps else (),
    )


def _head(details: PipelineDetails, now: datetime) -> Iterator[str]:
    times = details.pipeline
    if times.last_run_at is None:
        yield "no run counts"
    else:
        yield f"{counted(times.runs, 'run')}, the last {_ago(times.last_run_at, now)}"
        if words := _of_later(times, now):
            yield words
    if times.takes is not None:
        yield f"a run takes {range_text(times.takes)}"
    for loop in details.loops:
        runs = counted(loop.runs, "run")
        last = "in the last run" if loop.runs == 1 else f"the median of the last {runs}"
        yield f"loop {name_text(loop.loop)}: {counted(loop.width, 'iteration')}, {last}"
    if times.forget_before is not None:
        yield f"what {_forgotten(times.forget_before)}"
    for step, before in details.forgotten.items():
        yield f"step {name_text(step)}: what {_forgotten(before)}, and it has not run since"


def _rests_on(step: StepTimes) -> str:
    return NONE if step.basis is None else basis_text(DurationSource.HISTORY, step.basis)


def _inputs(step: StepTimes) -> str:
    return NONE if step.input_bytes is None else memory_text(step.input_bytes)


def _used(step: StepTimes) -> str:
    """The most memory that was used, of what was asked for: `1.2Gi of 8Gi`."""
    memory = step.memory
    if memory is None or memory.largest is None:
        return NONE
    asked = "" if memory.asked is None else f" of {memory_text(memory.asked)}"
    return memory_text(memory.largest) + asked


def _takes(times: TimeRange | None) -> str:
    return NONE if times is None else range_text(times)


def _forgotten(before: datetime | None) -> str:
    return "" if before is None else f"ended before {time_text(before)} is forgotten"


def _ago(at: datetime | None, now: datetime) -> str:
    if _is_later(at, now):
        return time_text(at)
    return ago_text(None if at is None else max(0.0, (now - at).total_seconds()))


def _of_later(times: PipelineTimes, now: datetime) -> str:
    """That the last run cannot have ended at its time; earlier ones may not count because of it."""
    wrong = "the last run has a date in the future: a clock was wrong, or the file was changed"
    return wrong if _is_later(times.last_run_at, now) else ""


def _is_later(at: datetime | None, now: datetime) -> TypeGuard[datetime]:
    return at is not None and at - now > _CLOCKS_APART
