"""What past runs tell of pipelines and their steps, by the forecasts that plans are made on."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement_engine.contract.memory_texts import advised_bytes, memory_advice
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import Past, RunEnds
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import PastRun, PastStep
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.planning.learned_times import rests_on_own_runs
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
        iterations: different ones of its loop; 1 = it is in none.
        takes: its run time, without transfers, as if all nodes stated the same speed; None = it
            never ended well.
        basis: what that rests on; None likewise.
        input_bytes: size of the inputs that the time is for, those of the last run; None = not
            known.
        forget_before: what ended before does not count; None = all counts.
        memory: what it used, and was killed with; None = that is not known.
    """

    step: str
    runs: int
    iterations: int
    takes: TimeRange | None
    basis: Basis | None
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
        steps: in the order in which runs have them.
        forgotten: steps that were not seen since they are forgotten, and since when that is.
    """

    pipeline: PipelineTimes
    loops: tuple[LoopTimes, ...] = ()
    steps: tuple[StepTimes, ...] = ()
    forgotten: Mapping[str, datetime] = field(default_factory=dict)


def pipelines_of(histories: Iterable[PipelineHistory]) -> tuple[PipelineTimes, ...]:
    """The pipelines of which there are histories, by namespace and name."""
    found: dict[tuple[str, str], PipelineTimes] = {}
    runs: list[tuple[str, PastRun]] = []
    for history in histories:
        key = key_of(history)
        own = history.past_runs()
        # Without steps: hundreds of objects must fit in memory.
        runs += [(key[0], replace(run, steps=())) for run in own]
        before = found.get(key, PipelineTimes(*key))
        found[key] = replace(
            before,
            runs=before.runs + len(own),
            runs_seen=before.runs_seen + max(len(own), history.status.runs_seen or 0),
            last_run_at=_latest([before.last_run_at, *(run.ended_at for run in own)]),
            forget_before=_latest([before.forget_before, history.spec.forget_before]),
        )
    ends: dict[str, RunEnds] = defaultdict(RunEnds)
    for namespace, run in sorted(runs, key=lambda each: each[1].order):
        if run.seconds is not None:
            ends[namespace].observe(run.pipeline, run.seconds, None)
    return tuple(
        replace(each, takes=known.predict() if known.runs else None)
        for _, each in sorted(found.items())
        for known in [ends[each.namespace].of(each.name)]
    )


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((each for each in moments if each is not None), default=None)


def details_of(
    histories: Sequence[PipelineHistory], chosen: Sequence[PipelineHistory]
) -> PipelineDetails:
    """A pipeline with its steps.

    Args:
        histories: all of its namespace: they decide how wide ranges are.
        chosen: those of the pipeline.
    """
    namespace, name = key_of(chosen[0])
    own = [each for each in histories if key_of(each)[0] == namespace]
    (pipeline,) = (each for each in pipelines_of(own) if each.name == name)
    past = past_of(own, name, namespace)
    steps, forgotten = tuple(_steps(chosen, past)), forgotten_of(chosen)
    seen = {each.step for each in steps}
    return PipelineDetails(
        pipeline=pipeline,
        loops=tuple(
            LoopTimes(loop, each.width, each.runs) for loop, each in past.widths(name).items()
        ),
        steps=steps,
        forgotten={step: at for step, at in forgotten.items() if step not in seen},
    )


def forgotten_of(histories: Iterable[PipelineHistory]) -> dict[str, datetime]:
    """Steps of one pipeline whose times before a moment do not count."""
    return {each.step: each.before for one in histories for each in one.spec.forget_steps}


def runs_of(histories: Iterable[PipelineHistory]) -> list[PastRun]:
    """The runs that count, the oldest first."""
    runs = [run for each in histories for run in each.past_runs()]
    return sorted(runs, key=lambda run: run.order)


def key_of(history: PipelineHistory) -> tuple[str, str]:
    """Namespace, and name of the pipeline."""
    return history.metadata.namespace or "", history.spec.pipeline


def _steps(chosen: Sequence[PipelineHistory], past: Past) -> Iterator[StepTimes]:
    last: dict[str, PastStep] = {}
    uids: dict[str, set[str]] = defaultdict(set)
    iterations: dict[str, set[str | None]] = defaultdict(set)
    for run in runs_of(chosen):
        for each in run.steps:
            path = each.identity.step
            last[path] = each
            uids[path].add(run.uid)
            iterations[path].add(each.identity.iteration)
    forgotten = forgotten_of(chosen)
    for path, each in last.items():
        identity = each.identity
        if len(iterations[path]) > 1:
            identity = replace(identity, iteration=None)
        # Names of arguments are not kept.
        arguments = {f"argument {at}": value for at, value in enumerate(each.arguments, start=1)}
        forecast = past.steps.predict(identity, each.input_bytes, arguments)
        is_own = forecast is not None and rests_on_own_runs(forecast.basis)
        yield StepTimes(
            step=path,
            runs=len(uids[path]),
            iterations=len(iterations[path]),
            takes=forecast.times if forecast is not None and is_own else None,
            basis=forecast.basis if forecast is not None and is_own else None,
            input_bytes=each.input_bytes,
            forget_before=forgotten.get(path),
            memory=_memory(past, each),
        )


def _memory(past: Past, step: PastStep) -> StepMemory | None:
    found = None if past.memory is None else past.memory.predict(step.identity)
    if found is None:
        return None
    asked = found.asked_bytes
    return StepMemory(
        asked=asked,
        largest=found.largest_bytes,
        runs=found.runs,
        killed_with=found.killed_bytes,
        advised=advised_bytes(found, asked),
        advice=memory_advice(found, asked),
    )
