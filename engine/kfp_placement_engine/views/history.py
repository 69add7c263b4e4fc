"""What past runs tell, as views: what `history` shows."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_engine.contract.forecast_texts import basis_text, range_text
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.planning.memory_advice import memory_text
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

ValueT = TypeVar("ValueT")

_MIN_NAME = 24
_MIN_NOTE = 24


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
        (Column("TAKES"), lambda each: _known(each.takes, range_text)),
        (NumberColumn("LAST RUN", spare=1), lambda each: _ago(each.last_run_at, now)),
        (Column("NOTES", wrap_from=_MIN_NOTE), lambda each: _forgotten(each.forget_before)),
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
        (Column("TAKES"), lambda step: _known(step.takes, range_text)),
        (Column("RESTS ON", spare=1), lambda step: _known(step.basis, partial(basis_text, ""))),
        (NumberColumn("INPUTS", spare=2), lambda step: _known(step.input_bytes, memory_text)),
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
    steps = table_of("Steps", columns, details.steps, optional=("MEMORY",))
    return Document(
        title=space + name_text(times.name),
        lead=head,
        lines=[Line(line) for line in lines],
        parts=[steps] if steps.rows else (),
    )


def _head(details: PipelineDetails, now: datetime) -> Iterator[str]:
    times = details.pipeline
    if times.last_run_at is None:
        yield "no run counts"
    else:
        yield f"{counted(times.runs, 'run')}, the last {_ago(times.last_run_at, now)}"
    if times.takes is not None:
        yield f"a run takes {range_text(times.takes)}"
    for loop in details.loops:
        runs = counted(loop.runs, "run")
        last = "in the last run" if loop.runs == 1 else f"the median of the last {runs}"
        yield f"loop {name_text(loop.loop)}: {counted(loop.width, 'iteration')}, {last}"
    if times.forget_before is not None:
        yield f"what {_forgotten(times.forget_before)}"


def _used(step: StepTimes) -> str:
    """The most memory that was used, of what was asked for: `1.2Gi of 8Gi`; "" = not known."""
    memory = step.memory
    if memory is None or memory.largest is None:
        return ""
    asked = "" if memory.asked is None else f" of {memory_text(memory.asked)}"
    return memory_text(memory.largest) + asked


def _known(value: ValueT | None, text: Callable[[ValueT], str]) -> str:
    return NONE if value is None else text(value)


def _forgotten(before: datetime | None) -> str:
    return "" if before is None else f"ended before {time_text(before)} is forgotten"


def _ago(at: datetime | None, now: datetime) -> str:
    """How long ago that was; a moment of the future, by some wrong clock, as it is."""
    if at is None:
        return NONE
    return time_text(at) if at > now else ago_text((now - at).total_seconds())
