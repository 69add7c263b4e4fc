"""What past runs tell of pipelines and their steps, and what `history` shows of it.

Times are the forecasts that plans are made on.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from kfp_placement_engine.contract.forecast_texts import basis_text, range_text
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import Past, RunEnds
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import LearnedWidth, PastStep
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.planning.memory_advice import MemoryAdvice, memory_advice, memory_text
from kfp_placement_engine.planning.stored_past import past_of
from kfp_placement_engine.views.document import Column, Document, Line, NumberColumn, Row, Table
from kfp_placement_engine.views.formatting import NONE, counted, name_text, sentence


@dataclass(frozen=True)
class StepTimes:
    """What is known of a step of a pipeline.

    Attributes:
        step: its path, the same for all iterations of a loop.
        runs: in which it was seen.
        iterations: different ones of its loop that were seen; 1 = it is in none.
        takes: its run time, without transfers, as if all nodes stated the same speed; None = no
            run tells.
        basis: what that rests on, which may be other steps; None likewise.
        input_bytes: size of the inputs that the time is for, those of the last run; None = not
            known.
        forget_before: what ended before does not count; None = all counts.
        memory: what it used, and was killed with; None = that is not known.
        advice: how much memory it should ask for instead; None = nothing is advised.
    """

    step: str
    runs: int = 0
    iterations: int = 0
    takes: TimeRange | None = None
    basis: Basis | None = None
    input_bytes: float | None = None
    forget_before: datetime | None = None
    memory: MemoryForecast | None = None
    advice: MemoryAdvice | None = None


@dataclass(frozen=True)
class PipelineTimes:
    """What is known of a pipeline.

    Attributes:
        namespace: where; "" = not said.
        name: of the pipeline.
        runs: those that count.
        runs_seen: all that there ever were.
        takes: how long a run takes, by what earlier ones took; None = no run tells.
        last_run_at: when the last one ended; None = none counts.
        forget_before: what ended before does not count; None = all counts.
        loops: how wide they are likely to be, by their paths; empty where nobody asks.
        steps: in the order in which runs have them, then those that are forgotten and have not
            run since; likewise.
    """

    namespace: str
    name: str
    runs: int = 0
    runs_seen: int = 0
    takes: TimeRange | None = None
    last_run_at: datetime | None = None
    forget_before: datetime | None = None
    loops: Mapping[str, LearnedWidth] = field(default_factory=dict)
    steps: Sequence[StepTimes] = ()

    @property
    def text(self) -> str:
        """Its namespace and name, for people."""
        return name_text("/".join(filter(None, (self.namespace, self.name))))


def pipeline_times(history: PipelineHistory) -> PipelineTimes:
    """What the past runs of a pipeline tell, without its loops and steps."""
    name, runs, ends = history.spec.pipeline, history.runs_that_count(), RunEnds()
    for run in runs:
        if run.seconds is not None:
            ends.observe(name, run.seconds, None)
    known = ends.of(name)
    return PipelineTimes(
        history.metadata.namespace or "",
        name,
        runs=len(runs),
        runs_seen=history.status.runs_seen or len(history.status.runs),
        takes=known.predict() if known.runs else None,
        last_run_at=runs[-1].ended_at if runs else None,
        forget_before=history.spec.forget_before,
    )


def pipeline_with_steps(
    chosen: PipelineHistory, histories: Iterable[PipelineHistory]
) -> PipelineTimes:
    """What the past runs of a pipeline tell, with its loops and steps.

    Args:
        chosen: that of the pipeline.
        histories: those of its namespace decide how wide ranges of steps are.
    """
    times, space = pipeline_times(chosen), chosen.metadata.namespace
    past = past_of([each for each in histories if each.metadata.namespace == space], times.name)
    return replace(times, loops=past.widths(times.name), steps=tuple(_steps(chosen, past)))


def _steps(history: PipelineHistory, past: Past) -> Iterator[StepTimes]:
    seen = defaultdict[str, list[tuple[str, PastStep]]](list)
    for run in history.past_runs():
        for each in run.steps:
            seen[each.identity.step].append((run.uid, each))
    forgotten = {each.step: each.before for each in history.spec.forget_steps}
    for path, known in seen.items():
        yield _step(known, past, forgotten.pop(path, None))
    for path, before in forgotten.items():
        yield StepTimes(path, forget_before=before)


def _step(
    known: Sequence[tuple[str, PastStep]], past: Past, forget_before: datetime | None
) -> StepTimes:
    """What is known of a step, with the forecasts of one like that of the last run.

    Args:
        known: it in past runs, each with the uid of the run.
        past: what they tell.
        forget_before: of the step.
    """
    _, last = known[-1]
    iterations = {each.identity.iteration for _, each in known}
    identity = last.identity if len(iterations) == 1 else replace(last.identity, iteration=None)
    # Names of arguments are not kept.
    arguments = {f"argument {at}": value for at, value in enumerate(last.arguments, start=1)}
    found = past.steps.predict(identity, last.input_bytes, arguments)
    memory = None if past.memory is None else past.memory.predict(identity)
    return StepTimes(
        identity.step,
        runs=len({uid for uid, _ in known}),
        iterations=len(iterations),
        takes=None if found is None else found.times,
        basis=None if found is None else found.basis,
        input_bytes=last.input_bytes,
        forget_before=forget_before,
        memory=memory,
        advice=None if memory is None else memory_advice(memory, memory.asked_bytes),
    )


def _used_text(memory: MemoryForecast) -> str:
    """The most memory that was used, of what was asked for: `1.2Gi of 8Gi`."""
    if memory.largest_bytes is None:
        return NONE
    asked = "" if memory.asked_bytes is None else f" of {memory_text(memory.asked_bytes)}"
    return memory_text(memory.largest_bytes) + asked


_count_text = "{:,}".format

_Columns = Sequence[tuple[Column, str, Callable[[Any], str]]]
"""Columns, each with the name of the field that it shows, and how."""

_PIPELINE_COLUMNS: _Columns = (
    (Column("NAMESPACE"), "namespace", name_text),
    (Column("PIPELINE"), "name", name_text),
    (NumberColumn("RUNS"), "runs", _count_text),
    (Column("TAKES"), "takes", range_text),
    (Column("LAST RUN", spare=1), "last_run_at", time_text),
    (Column("FORGOTTEN UNTIL"), "forget_before", time_text),
)

_STEP_COLUMNS: _Columns = (
    (Column("STEP", shrink_to=24, is_path=True), "step", name_text),
    (NumberColumn("RUNS"), "runs", _count_text),
    (NumberColumn("ITEMS SEEN", spare=3), "iterations", _count_text),
    (Column("TAKES"), "takes", range_text),
    (Column("RESTS ON", spare=1), "basis", partial(basis_text, "")),
    (NumberColumn("INPUTS", spare=2), "input_bytes", memory_text),
    (Column("MEMORY", spare=4), "memory", _used_text),
    (Column("FORGOTTEN UNTIL", spare=2), "forget_before", time_text),
    (Column("NOTES", wrap_from=24), "advice", lambda advice: sentence(advice.text)),
)


def pipelines_table(pipelines: Sequence[PipelineTimes], *, namespaces: bool) -> Table:
    """The table of pipelines.

    Args:
        pipelines: in the order shown.
        namespaces: with a column for the namespace.
    """
    columns = _PIPELINE_COLUMNS if namespaces else _PIPELINE_COLUMNS[1:]
    return _table("Pipelines", columns, pipelines)


def pipeline_view(times: PipelineTimes) -> Document:
    """A pipeline, and the table of its steps."""
    steps = _table("Steps", _STEP_COLUMNS, times.steps)
    return Document(
        title=times.text,
        lead=counted(times.runs, "run"),
        lines=[Line(line) for line in _lines(times)],
        parts=[steps] if steps.rows else (),
    )


def _lines(times: PipelineTimes) -> Iterator[str]:
    if times.last_run_at is not None:
        yield f"the last run ended at {time_text(times.last_run_at)}"
    if times.takes is not None:
        yield f"a run takes {range_text(times.takes)}"
    for loop, known in times.loops.items():
        width, runs = counted(known.width, "iteration"), counted(known.runs, "run")
        yield f"loop {name_text(loop)}: {width}, the median of the last {runs}"
    if times.forget_before is not None:
        yield f"what ended before {time_text(times.forget_before)} is forgotten"


def _table(title: str, columns: _Columns, records: Sequence[object]) -> Table:
    """A row for each record, with the columns of which something is known of any of them."""
    known = [
        (column, name, text)
        for column, name, text in columns
        if any(getattr(each, name) is not None for each in records)
    ]

    def row(record: object) -> Row:
        values = [(getattr(record, name), text) for _, name, text in known]
        return Row([NONE if value is None else text(value) for value, text in values])

    return Table(title, [column for column, _, _ in known], [*map(row, records)])
