"""Pipelines and their steps by past runs, and the documents on them.

Times are the forecasts on which plans are made.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.run_queue import ResourceAmount, amounts_of
from kfp_placement_engine.history import Past, RunEnds
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import PastStep, StepIdentity
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.planning.past_runs.memory_advice import memory_advice, memory_text
from kfp_placement_engine.planning.past_runs.stored_past import past_of
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.document import (
    NAMESPACE,
    Column,
    ColumnOf,
    Document,
    Line,
    NumberColumn,
    Table,
    table_of,
)
from kfp_placement_engine.views.forecast_texts import basis_text, range_text
from kfp_placement_engine.views.formatting import NONE, ago_text, counted, name_text, sentence

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class PipelineTimes:
    """One pipeline by its past runs.

    Attributes:
        namespace: namespace of the runs; "" = not known.
        name: name of the pipeline.
        runs: number of past runs that count.
        runs_seen: number of past runs that were ever seen.
        takes: forecast of the duration of a run; None if no run counts.
        last_run_at: end of the last run that counts; None if none counts.
        forget_before: time before which ended runs do not count; None = all count.
    """

    namespace: str
    name: str
    runs: int
    runs_seen: int
    takes: TimeRange | None
    last_run_at: datetime | None
    forget_before: datetime | None

    @property
    def text(self) -> str:
        """Namespace and name for people."""
        return name_text("/".join(filter(None, (self.namespace, self.name))))


@dataclass(frozen=True)
class StepMemory:
    """Memory of a step by past runs, in bytes; None = not known.

    Documents for programs have all of these fields.

    Attributes:
        asked: request of the last run.
        largest: largest use.
        runs: number of runs in which the use was measured.
        killed_with: limit at which the step was killed in its last run; None = it was not killed.
        advised: request that it should have; None = the present one.
        advice: advice in words.
    """

    asked: float | None
    largest: float | None
    runs: int
    killed_with: float | None
    advised: int | None = None
    advice: str = ""


@dataclass(frozen=True)
class PastStepView:
    """One step of a pipeline by its past runs.

    Attributes:
        step: path of the step, the same for all iterations of a loop.
        runs: number of runs in which the step was seen.
        iterations: number of different iterations that were seen; 1 outside of loops.
        takes: forecast of the run time without transfers, as if all nodes stated the same speed;
            None if no run counts.
        basis: basis of the forecast, which may be other steps; None if there is no forecast.
        input_bytes: size of the inputs of the last run, for which the forecast is; None = not
            known.
        forget_before: time before which ended steps do not count; None = all count.
        memory: memory of the step; None = not known.
        requests: requests of the last run that says them, by resource; None = not known.
        image: image of that run; "" = not known.
    """

    step: str
    runs: int = 0
    iterations: int = 0
    takes: TimeRange | None = None
    basis: Basis | None = None
    input_bytes: float | None = None
    forget_before: datetime | None = None
    memory: StepMemory | None = None
    requests: tuple[ResourceAmount, ...] | None = None
    image: str = ""


@dataclass(frozen=True)
class PastLoopView:
    """One loop of a pipeline: its likely number of iterations, and the number of runs behind it."""

    loop: str
    width: int
    runs: int


@dataclass(frozen=True)
class PipelineDetails:
    """One pipeline by its past runs, with its loops and steps.

    Attributes:
        pipeline: runs of the pipeline.
        loops: loops of the pipeline.
        steps: steps in the order of the runs, then forgotten steps that have not run since.
    """

    pipeline: PipelineTimes
    loops: Sequence[PastLoopView]
    steps: Sequence[PastStepView]


def pipeline_times(history: PipelineHistory) -> PipelineTimes:
    """Return the view of a pipeline by its history."""
    name, runs, ends = history.spec.pipeline, history.runs_that_count(), RunEnds()
    for run in runs:
        if run.seconds is not None:
            ends.observe(name, run.seconds, None)
    past_ends = ends.of(name)
    return PipelineTimes(
        history.metadata.namespace or "",
        name,
        runs=len(runs),
        runs_seen=history.status.runs_seen or len(history.status.runs),
        takes=past_ends.predict() if past_ends.runs else None,
        last_run_at=runs[-1].ended_at if runs else None,
        forget_before=history.spec.forget_before,
    )


def pipeline_details(
    chosen: PipelineHistory, histories: Iterable[PipelineHistory]
) -> PipelineDetails:
    """Return the view of a pipeline with its loops and steps.

    Args:
        chosen: history of the pipeline.
        histories: all histories; those of its namespace decide how wide ranges of steps are.
    """
    name, space = chosen.spec.pipeline, chosen.metadata.namespace
    past = past_of([each for each in histories if each.metadata.namespace == space], name)
    loops = [PastLoopView(loop, each.width, each.runs) for loop, each in past.widths(name).items()]
    return PipelineDetails(pipeline_times(chosen), loops, [*_steps(chosen, past)])


def _steps(history: PipelineHistory, past: Past) -> Iterator[PastStepView]:
    seen = defaultdict[str, list[tuple[str, PastStep]]](list)
    for run in history.past_runs():
        for each in run.steps:
            seen[each.identity.step].append((run.uid, each))
    forgotten = {each.step: each.before for each in history.spec.forget_steps}
    for path, occurrences in seen.items():
        yield _step(occurrences, past, forgotten.pop(path, None))
    for path, before in forgotten.items():
        yield PastStepView(path, forget_before=before)


def _step(
    occurrences: Sequence[tuple[str, PastStep]], past: Past, forget_before: datetime | None
) -> PastStepView:
    """Return the view of a step, with the forecast for a step like that of the last run.

    Args:
        occurrences: the step in past runs, each with the uid of the run.
        past: forecasts by past runs.
        forget_before: time before which the step does not count; None = it always counts.
    """
    _, last = occurrences[-1]
    iterations = {each.identity.iteration for _, each in occurrences}
    identity = last.identity if len(iterations) == 1 else replace(last.identity, iteration=None)
    # Histories do not hold the names of arguments.
    arguments = {f"argument {at}": value for at, value in enumerate(last.arguments, start=1)}
    forecast = past.steps.predict(identity, last.input_bytes, arguments)
    container = past.steps.container(*identity.key)
    return PastStepView(
        identity.step,
        runs=len({uid for uid, _ in occurrences}),
        iterations=len(iterations),
        takes=None if forecast is None else forecast.times,
        basis=None if forecast is None else forecast.basis,
        input_bytes=last.input_bytes,
        forget_before=forget_before,
        memory=_memory(identity, past),
        requests=None if container is None else amounts_of(container.requests),
        image="" if container is None else container.image,
    )


def _memory(step: StepIdentity, past: Past) -> StepMemory | None:
    forecast = None if past.memory is None else past.memory.predict(step)
    if forecast is None:
        return None
    used = StepMemory(
        forecast.asked_bytes, forecast.largest_bytes, forecast.runs, forecast.killed_bytes
    )
    advice = memory_advice(forecast, forecast.asked_bytes)
    if advice is None:
        return used
    return replace(used, advised=advice.amount_bytes, advice=advice.text)


def pipelines_table(
    pipelines: Sequence[PipelineTimes], now: datetime, *, namespaces: bool
) -> Table:
    """Return the table of pipelines.

    Args:
        pipelines: pipelines in the order of the table.
        now: present time.
        namespaces: whether there is a column for the namespace.
    """
    # An end in the future, by a wrong clock, has age 0.
    columns: list[ColumnOf[PipelineTimes]] = [
        (NAMESPACE, lambda each: name_text(each.namespace)),
        (Column("PIPELINE"), lambda each: name_text(each.name)),
        (NumberColumn("RUNS"), lambda each: f"{each.runs:,}"),
        (Column("TAKES"), lambda each: _cell(each.takes, range_text)),
        (
            NumberColumn("LAST RUN", spare=1),
            lambda each: _cell(
                each.last_run_at, lambda at: ago_text(max(0.0, (now - at).total_seconds()))
            ),
        ),
        (Column("NOTES", wrap_from=24), lambda each: _forgotten(each.forget_before)),
    ]
    return table_of("Pipelines", columns, pipelines, namespaces=namespaces)


def pipeline_view(details: PipelineDetails, now: datetime) -> Document:
    """Return the document on one pipeline: its loops, and the table of its steps.

    Args:
        details: pipeline to show.
        now: present time.
    """
    columns: list[ColumnOf[PastStepView]] = [
        (Column("STEP", shrink_to=24, is_path=True), lambda step: name_text(step.step)),
        (NumberColumn("RUNS"), lambda step: f"{step.runs:,}"),
        (Column("TAKES"), lambda step: _cell(step.takes, range_text)),
        (Column("RESTS ON", spare=1), lambda step: _cell(step.basis, partial(basis_text, ""))),
        (Column("MEMORY", optional=True, spare=2), _used),
        (Column("NOTES", wrap_from=24), _notes),
    ]
    times = details.pipeline
    steps = table_of("Steps", columns, details.steps)
    lines = [
        Line(
            f"loop {name_text(loop.loop)}: {counted(loop.width, 'iteration')}, the median of the"
            f" last {counted(loop.runs, 'run')}"
        )
        for loop in details.loops
    ]
    return Document(
        title=times.text,
        lines=lines,
        parts=[pipelines_table([times], now, namespaces=False), *([steps] if steps.rows else ())],
    )


def _notes(step: PastStepView) -> str:
    advice = "" if step.memory is None else step.memory.advice
    return sentence(advice, _forgotten(step.forget_before))


def _used(step: PastStepView) -> str:
    """Return the largest use of memory, and the request: `1.2Gi of 8Gi`; "" = not known."""
    memory = step.memory
    if memory is None or memory.largest is None:
        return ""
    asked = "" if memory.asked is None else f" of {memory_text(memory.asked)}"
    return memory_text(memory.largest) + asked


def _cell(value: ValueT | None, text: Callable[[ValueT], str]) -> str:
    return NONE if value is None else text(value)


def _forgotten(before: datetime | None) -> str:
    return "" if before is None else f"ended before {time_text(before)} is forgotten"
