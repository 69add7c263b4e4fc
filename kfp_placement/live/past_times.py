"""What histories say of pipelines and their steps, by the same forecasts that plans are made on."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement.live.exceptions import ClusterAmbiguousError, ClusterMissingError
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import History, Past
from kfp_placement_engine.model.forecast import OWN_LEVELS, Basis, Level
from kfp_placement_engine.model.history import (
    LearnedWidth,
    MemoryUse,
    Observation,
    PastRun,
    StepIdentity,
)
from kfp_placement_engine.model.memory import MemoryForecast
from kfp_placement_engine.model.promise import TimeRange, range_of
from kfp_placement_engine.model.step_names import StepNames, listed
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.planning.learned_times import rests_on_own_runs
from kfp_placement_engine.planning.stored_past import past_of
from kfp_placement_engine.views.formatting import shown

PipelineKey = tuple[str, str]
"""Namespace, and name of the pipeline."""


@dataclass(frozen=True)
class PipelineTimes:
    """What is known of the runs of one pipeline.

    Attributes:
        key: namespace and name.
        runs: those that count.
        runs_seen: all that there ever were.
        takes: how long a run takes, by what earlier ones took; None = no run tells.
        last_run_at: when the last one ended; None = none counts.
        forget_before: what ended before does not count; None = all counts.
    """

    key: PipelineKey
    runs: int = 0
    runs_seen: int = 0
    takes: TimeRange | None = None
    last_run_at: datetime | None = None
    forget_before: datetime | None = None


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
        cached_share: of its iterations in all runs, from 0 to 1, those that came from the cache.
        skipped_share: likewise, those of a branch that was not taken.
        failed_share: of the attempts at its iterations, those that failed before one ended well.
    """

    step: str
    runs: int
    iterations: int
    takes: TimeRange | None
    basis: Basis | None
    input_bytes: float | None = None
    forget_before: datetime | None = None
    memory: MemoryForecast | None = None
    cached_share: float = 0.0
    skipped_share: float = 0.0
    failed_share: float = 0.0


@dataclass(frozen=True)
class PipelineDetails:
    """A pipeline with its steps.

    Attributes:
        times: of its runs.
        steps: in the order in which runs have them.
        overrun: by how many times runs take longer than their steps tell; None = not known.
        overrun_runs: how many runs tell that.
        loops: how wide they are likely to be, by their paths.
        forgotten: steps that were not seen since they are forgotten, and since when that is.
    """

    times: PipelineTimes
    steps: tuple[StepTimes, ...] = ()
    overrun: TimeRange | None = None
    overrun_runs: int = 0
    loops: Mapping[str, LearnedWidth] = field(default_factory=dict)
    forgotten: Mapping[str, datetime] = field(default_factory=dict)


@dataclass
class _Seen:
    """What the objects of one pipeline say, without steps: hundreds of them must fit in memory."""

    runs: list[PastRun] = field(default_factory=list)
    runs_seen: int = 0
    forget_before: datetime | None = None

    def add(self, history: PipelineHistory) -> None:
        runs = history.past_runs()
        seen = history.status.runs_seen if history.status is not None else None
        self.runs += [replace(run, steps=(), memory=()) for run in runs]
        self.runs_seen += max(len(runs), seen or 0)
        before = history.spec.forget_before
        if before is not None:
            self.forget_before = max(before, self.forget_before or before)


def pipelines_of(histories: Iterable[PipelineHistory]) -> tuple[PipelineTimes, ...]:
    """The pipelines of which there are histories, by namespace and name."""
    seen: dict[str, dict[str, _Seen]] = defaultdict(dict)
    for history in histories:
        key = _key(history)
        seen[key[0]].setdefault(key[1], _Seen()).add(history)
    return tuple(
        _times(namespace, name, pipelines[name], whole_runs)
        for namespace, pipelines in sorted(seen.items())
        for whole_runs in [_whole_runs(pipelines)]
        for name in sorted(pipelines)
    )


def _whole_runs(pipelines: Mapping[str, _Seen]) -> History:
    """What the runs of a namespace took: each is learned from like a step, so that changes show."""
    history = History()
    runs = (run for seen in pipelines.values() for run in seen.runs)
    for run in sorted(runs, key=lambda run: run.order):
        if run.seconds is not None:
            history.observe([Observation(_whole_run(run.pipeline), run.seconds)])
    return history


def _whole_run(pipeline: str) -> StepIdentity:
    return StepIdentity(pipeline, "")


def _times(namespace: str, name: str, seen: _Seen, whole_runs: History) -> PipelineTimes:
    forecast = whole_runs.predict(_whole_run(name))
    is_own = forecast is not None and forecast.basis.level in OWN_LEVELS
    return PipelineTimes(
        key=(namespace, name),
        runs=len(seen.runs),
        runs_seen=seen.runs_seen,
        takes=range_of(forecast.distribution) if forecast is not None and is_own else None,
        last_run_at=max((run.ended_at for run in seen.runs), default=None),
        forget_before=seen.forget_before,
    )


def histories_named(
    histories: Sequence[PipelineHistory], wanted: str, where: str
) -> tuple[PipelineHistory, ...]:
    """The histories of the pipeline of that name; several objects may be of one.

    Args:
        histories: all of them, at least one.
        wanted: the pipeline.
        where: they are from, for messages.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
        ClusterAmbiguousError: several namespaces have one.
    """
    found = tuple(each for each in histories if each.spec.pipeline == wanted)
    namespaces = sorted({_key(each)[0] for each in found})
    if len(namespaces) > 1:
        raise ClusterAmbiguousError(
            f"{len(namespaces)} namespaces have a history of pipeline {shown(wanted, 120)!r}; name"
            f" one with -n: {listed(namespaces)}"
        )
    if found:
        return found
    names = StepNames(((each.spec.pipeline,) * 2 + ("",) for each in histories), "pipeline")
    raise ClusterMissingError(f"in {where} {names.problem(wanted)}")


def steps_named(histories: Sequence[PipelineHistory], wanted: Sequence[str]) -> tuple[str, ...]:
    """Paths of the steps that are meant.

    Args:
        histories: of one pipeline.
        wanted: names of steps.

    Raises:
        ClusterMissingError: there is no such step, or it is forgotten already; else the message
            names what comes close.
    """
    paths = {each.identity.step: None for run in _runs(histories) for each in _seen_in(run)}
    names, forgotten = StepNames((path, path, "") for path in paths), _forgotten(histories)
    names_forgotten = StepNames((path, path, "") for path in forgotten)
    found: dict[str, None] = {}
    for each in wanted:
        meant = names.meant(each)
        if not meant:
            problem = names.problem(each)
            for step in names_forgotten.meant(each)[:1]:
                since = time_text(forgotten[step])
                problem = f"step {step!r:.120} is forgotten already: what ended before {since}"
            raise ClusterMissingError(f"{histories[0].spec.pipeline}: {problem}")
        found |= dict.fromkeys(meant)
    return tuple(found)


def details_of(
    histories: Sequence[PipelineHistory], chosen: Sequence[PipelineHistory]
) -> PipelineDetails:
    """A pipeline with its steps.

    Args:
        histories: all of its namespace: they decide how wide ranges are.
        chosen: those of the pipeline.
    """
    key = _key(chosen[0])
    own = [each for each in histories if _key(each)[0] == key[0]]
    (times,) = (each for each in pipelines_of(own) if each.key == key)
    past = past_of(own, key[1], key[0])
    overrun = past.overrun(key[1])
    is_own = overrun.basis.level is Level.PIPELINE
    steps = tuple(_steps(chosen, past))
    seen = {each.step for each in steps}
    return PipelineDetails(
        times=times,
        steps=steps,
        overrun=range_of(overrun.distribution) if is_own else None,
        overrun_runs=overrun.basis.runs if is_own else 0,
        loops=past.courses.widths(key[1]),
        forgotten={step: at for step, at in _forgotten(chosen).items() if step not in seen},
    )


def _forgotten(histories: Iterable[PipelineHistory]) -> dict[str, datetime]:
    """Steps of one pipeline whose times before a moment do not count."""
    return {each.step: each.before for one in histories for each in one.spec.forget_steps}


def _steps(chosen: Sequence[PipelineHistory], past: Past) -> Iterable[StepTimes]:
    last: dict[str, Observation | MemoryUse] = {}
    uids: dict[str, set[str]] = defaultdict(set)
    iterations: dict[str, set[str | None]] = defaultdict(set)
    ran, failed = Counter[str](), Counter[str]()
    cached, skipped = Counter[str](), Counter[str]()
    for run in _runs(chosen):
        for task in run.left_out:
            cached[task.step] += task.cached
            skipped[task.step] += task.skipped
        in_run = Counter(each.identity.step for each in run.steps)
        for again in run.retried:
            failed[again.step] += again.failed
            # Of wide loops not all iterations are kept.
            in_run[again.step] = max(in_run[again.step], again.steps)
        ran.update(in_run)
        for each in _seen_in(run):
            path = each.identity.step
            last[path] = each
            uids[path].add(run.uid)
            iterations[path].add(each.identity.iteration)
    forgotten = _forgotten(chosen)
    for path, each in last.items():
        identity = each.identity
        if len(iterations[path]) > 1:
            identity = replace(identity, iteration=None)
        forecast = past.steps.predict(identity, "", each.input_bytes, _arguments(each))
        is_own = forecast is not None and rests_on_own_runs(forecast.basis)
        memory = past.memory
        every = max(1, ran[path] + cached[path] + skipped[path])
        yield StepTimes(
            step=path,
            runs=len(uids[path]),
            iterations=len(iterations[path]),
            takes=range_of(forecast.distribution) if forecast is not None and is_own else None,
            basis=forecast.basis if forecast is not None and is_own else None,
            input_bytes=each.input_bytes,
            forget_before=forgotten.get(path),
            memory=None if memory is None else memory.predict(identity),
            cached_share=cached[path] / every,
            skipped_share=skipped[path] / every,
            failed_share=failed[path] / max(1, ran[path] + failed[path]),
        )


def _arguments(each: Observation | MemoryUse) -> dict[str, float]:
    """Its numeric arguments, by what they are called where their names are not known."""
    values = each.arguments if isinstance(each, Observation) else ()
    return {f"argument {number}": value for number, value in enumerate(values, start=1)}


def _seen_in(run: PastRun) -> Iterator[Observation | MemoryUse]:
    """Its steps; those that were killed for memory and have no time come last."""
    yield from run.steps
    ended_well = {each.identity.step for each in run.steps}
    yield from (each for each in run.memory if each.identity.step not in ended_well)


def _runs(histories: Iterable[PipelineHistory]) -> list[PastRun]:
    """The runs that count, the oldest first."""
    runs = [run for each in histories for run in each.past_runs()]
    return sorted(runs, key=lambda run: run.order)


def _key(history: PipelineHistory) -> PipelineKey:
    return history.metadata.namespace or "", history.spec.pipeline
