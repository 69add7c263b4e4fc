"""What past runs tell, in tables: what `history` prints."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeGuard

from kfp_placement.live.formatting import NONE, ago_text, moment_text, name_text
from kfp_placement.live.past_times import PipelineDetails, PipelineTimes, StepTimes
from kfp_placement.report import values
from kfp_placement.report.columns import Column, layout
from kfp_placement.report.table import TableStyle
from kfp_placement_engine.contract.forecast_texts import basis_text, range_text
from kfp_placement_engine.contract.memory_texts import memory_advice, memory_text
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.run_graph import DurationSource

_MIN_NAME = 24
_MIN_NOTE = 24

_CLOCKS_APART = timedelta(days=1)
"""By less clocks of machines may differ."""


def pipelines_table(
    pipelines: Sequence[PipelineTimes], now: datetime, style: TableStyle, *, namespaces: bool
) -> str:
    """The table of pipelines.

    Args:
        pipelines: in the order shown.
        now: the time.
        style: how to print.
        namespaces: with a column for the namespace.
    """
    columns = [
        *([Column("NAMESPACE")] if namespaces else []),
        Column("PIPELINE"),
        Column("RUNS", right=True),
        Column("TAKES"),
        Column("LAST RUN", right=True, spare=1),
        Column("NOTES", wrap_from=_MIN_NOTE),
    ]
    rows = [
        [
            *([name_text(each.key[0])] if namespaces else []),
            name_text(each.key[1]),
            f"{each.runs:,}",
            _takes(each.takes),
            _ago(each.last_run_at, now),
            "; ".join(filter(None, [_forgotten(each.forget_before), _of_later(each, now)])),
        ]
        for each in pipelines
    ]
    return _lines(layout(columns, rows, style.columns))


def details_text(details: PipelineDetails, now: datetime, style: TableStyle) -> str:
    """A pipeline, and the table of its steps.

    Args:
        details: what is known.
        now: the time.
        style: how to print.
    """
    head = _lines(_head(details, now))
    if not details.steps:
        return head
    has_memory = any(each.memory is not None for each in details.steps)
    columns = [
        Column("STEP", shrink_to=_MIN_NAME, is_path=True),
        Column("RUNS", right=True),
        Column("ITEMS SEEN", right=True, spare=3),
        Column("TAKES"),
        Column("RESTS ON", spare=1),
        Column("INPUTS", right=True, spare=2),
        *([Column("MEMORY", spare=4)] if has_memory else []),
        Column("NOTES", wrap_from=_MIN_NOTE),
    ]
    rows = [_step_row(each, has_memory=has_memory) for each in details.steps]
    return f"{head}\n{_lines(layout(columns, rows, style.columns))}"


def _head(details: PipelineDetails, now: datetime) -> Iterator[str]:
    times = details.times
    namespace, name = times.key
    title = f"{name_text(namespace)}/{name_text(name)}" if namespace else name_text(name)
    if times.last_run_at is None:
        yield f"{title}: no run counts"
    else:
        runs = values.counted(times.runs, "run")
        yield f"{title}: {runs}, the last {_ago(times.last_run_at, now)}"
        if words := _of_later(times, now):
            yield words
    if times.takes is not None:
        yield f"a run takes {range_text(times.takes)}"
    if details.overrun is not None:
        runs = values.counted(details.overrun_runs, "run")
        yield f"{overrun_text(details.overrun)} as its steps tell, by {runs}"
    for loop, width in details.loops.items():
        runs, iterations = (
            values.counted(width.runs, "run"),
            values.counted(width.width, "iteration"),
        )
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


def _step_row(step: StepTimes, *, has_memory: bool) -> list[str]:
    memory = step.memory
    advice = "" if memory is None else memory_advice(memory, memory.asked_bytes)
    return [
        name_text(step.step),
        f"{step.runs:,}",
        f"{step.iterations:,}" if step.iterations > 1 else NONE,
        _takes(step.takes),
        NONE if step.basis is None else basis_text(DurationSource.HISTORY, step.basis),
        values.size(step.input_bytes),
        *([_memory(memory)] if has_memory else []),
        "; ".join(filter(None, [advice, *_step_notes(step)])),
    ]


def _memory(memory: MemoryForecast | None) -> str:
    """The most that was used, of what was asked for: `1.2Gi of 8Gi`."""
    if memory is None or memory.largest_bytes is None:
        return NONE
    used = memory_text(memory.largest_bytes)
    asked = memory.asked_bytes
    return used if asked is None else f"{used} of {memory_text(asked)}"


def _step_notes(step: StepTimes) -> Iterator[str]:
    yield _share(step.cached_share, "from the cache")
    yield _share(step.skipped_share, "skipped")
    yield _share(step.failed_share, "of attempts failed")
    yield _forgotten(step.forget_before)


def _share(share: float, what: str) -> str:
    return f"{share:.0%} {what}" if share else ""


def _takes(times: TimeRange | None) -> str:
    return NONE if times is None else range_text(times)


def _forgotten(before: datetime | None) -> str:
    return "" if before is None else f"ended before {moment_text(before)} is forgotten"


def _ago(at: datetime | None, now: datetime) -> str:
    if _is_later(at, now):
        return moment_text(at)
    return ago_text(None if at is None else max(0.0, (now - at).total_seconds()))


def _of_later(times: PipelineTimes, now: datetime) -> str:
    """That the last run cannot have ended at its time; earlier ones may not count because of it."""
    wrong = "the last run has a date in the future: a clock was wrong, or the file was changed"
    return wrong if _is_later(times.last_run_at, now) else ""


def _is_later(at: datetime | None, now: datetime) -> TypeGuard[datetime]:
    return at is not None and at - now > _CLOCKS_APART


def _lines(lines: Sequence[str] | Iterator[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)
