"""What past runs tell of pipelines and their steps, and what `history` shows of it.

Times are the forecasts that plans are made on.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import Past, RunEnds
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import PastStep, StepIdentity
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.planning.past_runs.memory_advice import memory_advice, memory_text
from kfp_placement_engine.planning.past_runs.stored_past import past_of
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.document import (
    Column,
    Document,
    Line,
    NumberColumn,
    Shown,
    Table,
    table_of,
)
from kfp_placement_engine.views.forecast_texts import basis_text, range_text
from kfp_placement_engine.views.formatting import NONE, ago_text, counted, name_text, sentence

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class PipelineTimes:
    """What is known of the runs of one pipeline.

    Attributes:
        namespace: where; "" = not said.
        name: of the pipeline.
        runs: those that count.
        runs_seen: all that there ever were.
        takes: how long a run takes, by what earlier ones took; None = no run tells.
        last_run_at: when the last one ended; None = none counts.
        forget_before: what ended before does not count; None = all counts.
    """

    namespace: str
    name: str
    runs: int = 0
    runs_seen: int = 0
    takes: TimeRange | None = None
    last_run_at: datetime | None = None
    forget_before: datetime | None = None

    @property
    def text(self) -> str:
        """Namespace and name, for people."""
        return name_text("/".join(filter(None, (self.namespace, self.name))))


@dataclass(frozen=True)
class StepMemory:
    """What a step used, in bytes; None = not known.

    Attributes:
        asked: what it asked for in its last run.
        largest: the most that it used.
        runs: in how many runs that was measured.
        killed_with: with how much it was killed in its last run; None = it was not.
        advised: what it should ask for instead; None = nothing is advised.
        advice: the same in words.
    """

    asked: float | None
    largest: float | None
    runs: int
    killed_with: float | None
    advised: int | None = None
    advice: str = ""


@dataclass(frozen=True)
class PastStepView:
    """What is known of a step.

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
    """

    step: str
    runs: int = 0
    iterations: int = 0
    takes: TimeRange | None = None
    basis: Basis | None = None
    input_bytes: float | None = None
    forget_before: datetime | None = None
    memory: StepMemory | None = None


@dataclass(frozen=True)
class PastLoopView:
    """How wide a loop is likely to be, by how many runs."""

    loop: str
    width: int
    runs: int


@dataclass(frozen=True)
class PipelineDetails:
    """A pipeline with its loops and steps.

    Attributes:
        pipeline: its runs.
        loops: by their paths.
        steps: in the order in which runs have them, then those that are forgotten and have not
            run since.
    """

    pipeline: PipelineTimes
    loops: Sequence[PastLoopView] = ()
    steps: Sequence[PastStepView] = ()


def pipeline_times(history: PipelineHistory) -> PipelineTimes:
    """What the past runs of a pipeline tell of its next one."""
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


def pipeline_details(
    chosen: PipelineHistory, histories: Iterable[PipelineHistory]
) -> PipelineDetails:
    """What the past runs of a pipeline tell of its next one, and of its loops and steps.

    Args:
        chosen: that of the pipeline.
        histories: those of its namespace decide how wide ranges of steps are.
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
    for path, known in seen.items():
        yield _step(known, past, forgotten.pop(path, None))
    for path, before in forgotten.items():
        yield PastStepView(path, forget_before=before)


def _step(
    known: Sequence[tuple[str, PastStep]], past: Past, forget_before: datetime | None
) -> PastStepView:
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
    return PastStepView(
        identity.step,
        runs=len({uid for uid, _ in known}),
        iterations=len(iterations),
        takes=None if found is None else found.times,
        basis=None if found is None else found.basis,
        input_bytes=last.input_bytes,
        forget_before=forget_before,
        memory=_memory(identity, past),
    )


def _memory(step: StepIdentity, past: Past) -> StepMemory | None:
    found = None if past.memory is None else past.memory.predict(step)
    if found is None:
        return None
    used = StepMemory(found.asked_bytes, found.largest_bytes, found.runs, found.killed_bytes)
    advice = memory_advice(found, found.asked_bytes)
    if advice is None:
        return used
    return replace(used, advised=advice.amount_bytes, advice=advice.text)


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
        (Column("NOTES", wrap_from=24), lambda each: _forgotten(each.forget_before)),
    ]
    hidden = () if namespaces else ("NAMESPACE",)
    return table_of("Pipelines", columns, pipelines, hidden=hidden)


def pipeline_view(details: PipelineDetails, now: datetime) -> Document:
    """A pipeline, its loops, and the table of its steps.

    Args:
        details: what is known.
        now: the time.
    """
    columns: list[Shown[PastStepView]] = [
        (Column("STEP", shrink_to=24, is_path=True), lambda step: name_text(step.step)),
        (NumberColumn("RUNS"), lambda step: f"{step.runs:,}"),
        (Column("TAKES"), lambda step: _known(step.takes, range_text)),
        (Column("RESTS ON", spare=1), lambda step: _known(step.basis, partial(basis_text, ""))),
        (Column("MEMORY", spare=2), _used),
        (Column("NOTES", wrap_from=24), _notes),
    ]
    times = details.pipeline
    steps = table_of("Steps", columns, details.steps, optional=("MEMORY",))
    lines = [
        f"loop {name_text(loop.loop)}: {counted(loop.width, 'iteration')}, the median of the last"
        f" {counted(loop.runs, 'run')}"
        for loop in details.loops
    ]
    return Document(
        title=times.text,
        lines=[Line(line) for line in lines],
        parts=[pipelines_table([times], now, namespaces=False), *([steps] if steps.rows else ())],
    )


def _notes(step: PastStepView) -> str:
    advice = "" if step.memory is None else step.memory.advice
    return sentence(advice, _forgotten(step.forget_before))


def _used(step: PastStepView) -> str:
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
    """How long ago that was; what a wrong clock has put into the future is not long ago."""
    return NONE if at is None else ago_text(max(0.0, (now - at).total_seconds()))
