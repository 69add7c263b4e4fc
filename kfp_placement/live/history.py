"""What past runs tell, as views: what `history` prints."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeGuard

from kfp_placement.live.past_times import PipelineDetails, PipelineTimes, StepTimes
from kfp_placement_engine.contract.forecast_texts import basis_text, range_text
from kfp_placement_engine.contract.memory_texts import memory_advice, memory_text
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.views.document import Column, Document, Line, Table
from kfp_placement_engine.views.formatting import NONE, counted, size
from kfp_placement_engine.views.words import Shown, ago_text, name_text, sentence, table_of

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
        (Column("NAMESPACE"), lambda each: name_text(each.key[0]) if namespaces else ""),
        (Column("PIPELINE"), lambda each: name_text(each.key[1])),
        (Column("RUNS", right=True), lambda each: f"{each.runs:,}"),
        (Column("TAKES"), lambda each: _takes(each.takes)),
        (Column("LAST RUN", right=True, spare=1), lambda each: _ago(each.last_run_at, now)),
        (
            Column("NOTES", wrap_from=_MIN_NOTE),
            lambda each: sentence(_forgotten(each.forget_before), _of_later(each, now)),
        ),
    ]
    return table_of("Pipelines", columns, pipelines, optional=["NAMESPACE"])


def details_view(details: PipelineDetails, now: datetime) -> Document:
    """A pipeline, and the table of its steps.

    Args:
        details: what is known.
        now: the time.
    """
    columns: list[Shown[StepTimes]] = [
        (Column("STEP", shrink_to=_MIN_NAME, is_path=True), lambda step: name_text(step.step)),
        (Column("RUNS", right=True), lambda step: f"{step.runs:,}"),
        (
            Column("ITEMS SEEN", right=True, spare=3),
            lambda step: f"{step.iterations:,}" if step.iterations > 1 else NONE,
        ),
        (Column("TAKES"), lambda step: _takes(step.takes)),
        (Column("RESTS ON", spare=1), _rests_on),
        (Column("INPUTS", right=True, spare=2), lambda step: size(step.input_bytes)),
        (Column("MEMORY", spare=4), lambda step: _memory(step.memory)),
        (Column("NOTES", wrap_from=_MIN_NOTE), _notes),
    ]
    namespace, name = details.times.key
    head, *lines = _head(details, now)
    has_memory = any(each.memory is not None for each in details.steps)
    shown = columns if has_memory else [each for each in columns if each[0].title != "MEMORY"]
    return Document(
        title=f"{name_text(namespace)}/{name_text(name)}" if namespace else name_text(name),
        lead=head,
        lines=[Line(line) for line in lines],
        parts=[table_of("Steps", shown, details.steps)] if details.steps else (),
    )


def _head(details: PipelineDetails, now: datetime) -> Iterator[str]:
    times = details.times
    if times.last_run_at is None:
        yield "no run counts"
    else:
        yield f"{counted(times.runs, 'run')}, the last {_ago(times.last_run_at, now)}"
        if words := _of_later(times, now):
            yield words
    if times.takes is not None:
        yield f"a run takes {range_text(times.takes)}"
    if details.overrun is not None:
        runs = counted(details.overrun_runs, "run")
        yield f"{overrun_text(details.overrun)} as its steps tell, by {runs}"
    for loop, width in details.loops.items():
        runs, iterations = counted(width.runs, "run"), counted(width.width, "iteration")
        last = "in the last run" if width.runs == 1 else f"the median of the last {runs}"
        yield f"loop {name_text(loop)}: {iterations}, {last}"
    if times.forget_before is not None:
        yield f"what {_forgotten(times.forget_before)}"
    for step, before in details.forgotten.items():
        yield f"step {name_text(step)}: what {_forgotten(before)}, and it has not run since"


def overrun_text(overrun: TimeRange) -> str:
    """How runs end beside what their steps tell: `a run takes 1.08 times (1.02-1.15) as long`."""
    low, typical, high = (
        f"{each:.2f}"
        for each in (overrun.low_seconds, overrun.typical_seconds, overrun.high_seconds)
    )
    return f"a run takes {typical} times ({low}-{high}) as long"


def _rests_on(step: StepTimes) -> str:
    return NONE if step.basis is None else basis_text(DurationSource.HISTORY, step.basis)


def _memory(memory: MemoryForecast | None) -> str:
    """The most that was used, of what was asked for: `1.2Gi of 8Gi`."""
    if memory is None or memory.largest_bytes is None:
        return NONE
    used = memory_text(memory.largest_bytes)
    asked = memory.asked_bytes
    return used if asked is None else f"{used} of {memory_text(asked)}"


def _notes(step: StepTimes) -> str:
    memory = step.memory
    return sentence(
        "" if memory is None else memory_advice(memory, memory.asked_bytes),
        _share(step.cached_share, "from the cache"),
        _share(step.skipped_share, "skipped"),
        _share(step.failed_share, "of attempts failed"),
        _forgotten(step.forget_before),
    )


def _share(share: float, what: str) -> str:
    return f"{share:.0%} {what}" if share else ""


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
