"""What past runs tell of pipelines and their steps, by the forecasts that plans are made on."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import Past, RunEnds
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import PastRun, PastStep
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.planning.learned_times import rests_on_own_runs
from kfp_placement_engine.planning.memory_advice import memory_advice
from kfp_placement_engine.planning.stored_past import past_of


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
    advised: int | None
    advice: str


@dataclass(frozen=True)
class StepTimes:
    """What is known of a step.

    Attributes:
        step: its path, the same for all iterations of a loop.
        runs: in which it was seen.
        iterations: different ones of its loop that were seen; 1 = it is in none.
        takes: its run time, without transfers, as if all nodes stated the same speed; None = it
            never ended well.
        basis: what that rests on; None likewise.
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
class LoopTimes:
    """How wide a loop is likely to be, by how many runs."""

    loop: str
    width: int
    runs: int


@dataclass(frozen=True)
class PipelineDetails:
    """A pipeline with its steps.

    Attributes:
        pipeline: its runs.
        loops: by their paths.
        steps: in the order in which runs have them, then those that are forgotten and have not
            run since.
    """

    pipeline: PipelineTimes
    loops: tuple[LoopTimes, ...] = ()
    steps: tuple[StepTimes, ...] = ()


def pipelines_of(histories: Iterable[PipelineHistory]) -> tuple[PipelineTimes, ...]:
    """The pipelines of these histories, by namespace and name."""
    return tuple(_times_of(each) for each in sorted(histories, key=key_of))


def _times_of(history: PipelineHistory) -> PipelineTimes:
    namespace, name = key_of(history)
    runs, ends = runs_of(history), RunEnds()
    for run in runs:
        if run.seconds is not None:
            ends.observe(name, run.seconds, None)
    known = ends.of(name)
    return PipelineTimes(
        namespace,
        name,
        runs=len(runs),
        runs_seen=history.status.runs_seen or len(history.status.runs),
        takes=known.predict() if known.runs else None,
        last_run_at=runs[-1].ended_at if runs else None,
        forget_before=history.spec.forget_before,
    )


def details_of(histories: Iterable[PipelineHistory], chosen: PipelineHistory) -> PipelineDetails:
    """A pipeline with its steps.

    Args:
        histories: all of its namespace: they decide how wide ranges of steps are.
        chosen: that of the pipeline.
    """
    namespace, name = key_of(chosen)
    past = past_of([each for each in histories if key_of(each)[0] == namespace], name)
    widths = past.widths(name).items()
    return PipelineDetails(
        _times_of(chosen),
        loops=tuple(LoopTimes(loop, each.width, each.runs) for loop, each in widths),
        steps=tuple(_steps(chosen, past)),
    )


def forgotten_of(history: PipelineHistory) -> dict[str, datetime]:
    """Steps whose times before a moment do not count."""
    return {each.step: each.before for each in history.spec.forget_steps}


def runs_of(history: PipelineHistory) -> list[PastRun]:
    """The runs that count, the oldest first."""
    return sorted(history.past_runs(), key=lambda run: run.order)


def key_of(history: PipelineHistory) -> tuple[str, str]:
    """Namespace, and name of the pipeline."""
    return history.metadata.namespace or "", history.spec.pipeline


def _steps(history: PipelineHistory, past: Past) -> Iterator[StepTimes]:
    seen: dict[str, list[tuple[str, PastStep]]] = defaultdict(list)
    for run in runs_of(history):
        for each in run.steps:
            seen[each.identity.step].append((run.uid, each))
    forgotten = forgotten_of(history)
    for path, known in seen.items():
        iterations = {each.identity.iteration for _, each in known}
        times = StepTimes(
            path,
            runs=len({uid for uid, _ in known}),
            iterations=len(iterations),
            forget_before=forgotten.pop(path, None),
        )
        yield _told(times, known[-1][1], past)
    for path, before in forgotten.items():
        yield StepTimes(path, forget_before=before)


def _told(times: StepTimes, last: PastStep, past: Past) -> StepTimes:
    """The times of a step with the forecast of one like that of the last run."""
    identity = last.identity if times.iterations == 1 else replace(last.identity, iteration=None)
    # Names of arguments are not kept.
    arguments = {f"argument {at}": value for at, value in enumerate(last.arguments, start=1)}
    times = replace(times, input_bytes=last.input_bytes, memory=_memory(past, last))
    forecast = past.steps.predict(identity, last.input_bytes, arguments)
    if forecast is None or not rests_on_own_runs(forecast.basis):
        return times
    return replace(times, takes=forecast.times, basis=forecast.basis)


def _memory(past: Past, step: PastStep) -> StepMemory | None:
    found = None if past.memory is None else past.memory.predict(step.identity)
    if found is None:
        return None
    advice = memory_advice(found, found.asked_bytes)
    return StepMemory(
        asked=found.asked_bytes,
        largest=found.largest_bytes,
        runs=found.runs,
        killed_with=found.killed_bytes,
        advised=None if advice is None else advice.amount_bytes,
        advice="" if advice is None else advice.text,
    )
