"""Promises of made-up runs while they run: the end, by samples of what is left.

Ten runs are seen, then one is forecast before it starts and after a quarter, a half and three
quarters of its time. A run time is the planned one times a factor that all steps of the run share,
times one of its own, and three times as long now and then; all lognormal.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import numpy as np

from benchmarks.learning_runs.experiments import CONFIDENCE
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import Cluster, PlanOptions, RunGraph, plan_runs
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering import Lowered, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.history import Observation, PastRun
from kfp_placement_engine.model.promise import FirstSamples, RunForecast
from kfp_placement_engine.model.promise import Promise as Planned
from kfp_placement_engine.planning.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.plan_options import lowering_options_of
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import Schedule, simulate

RUNS, RUNS_SEEN = 100, 10
PASSED = (0.0, 0.25, 0.5, 0.75)
TAIL = 3.0
KEY = "made-up"


@dataclass(frozen=True)
class Mixture:
    """How run times vary.

    Attributes:
        name: for people.
        common, own: standard deviations of the logarithms of a run's factor and of a step's.
        tail: share of steps that take `TAIL` times as long.
    """

    name: str
    common: float
    own: float
    tail: float


MIXTURES = (
    Mixture("own", 0.0, 0.2, 0.0),
    Mixture("own and common", 0.1, 0.2, 0.0),
    Mixture("own, common and tail", 0.1, 0.2, 0.02),
)


@dataclass(frozen=True)
class Promise:
    """One forecast of the end of one run.

    Attributes:
        mixture: how its run times vary.
        passed: share of the run that is over.
        seconds: when it ended.
        low, typical, high: what was forecast; between `low` and `high` with `CONFIDENCE`.
    """

    mixture: str
    passed: float
    seconds: float
    low: float
    typical: float
    high: float


@dataclass(frozen=True)
class Begun:
    """A run that is under way.

    Attributes:
        lowered: the run as it was planned.
        problem: the same with the times that steps really take.
        true: what really happens.
        learned: its run times as they were learned before it.
        cluster, options: it was planned with.
    """

    lowered: Lowered
    problem: PlacementProblem
    true: Schedule
    learned: LearnedRun
    cluster: Cluster
    options: PlanOptions

    @property
    def end(self) -> float:
        """When the run ends."""
        return _end(self.true.end)

    @cached_property
    def first(self) -> Planned | None:
        """What is promised of the run before it starts."""
        return self.promise(0.0)

    def past_run(self, number: int) -> PastRun:
        """What it teaches once it has ended."""
        graph, before = self.learned.graph, self.first
        seconds = self.problem.arrays.duration_seconds.tolist()
        steps = [
            (activity.step, seconds[index])
            for index, activity in enumerate(self.lowered.activities)
            if activity.step is not None
        ]
        return PastRun(
            uid=str(number),
            pipeline=graph.name,
            ended_at=datetime.fromtimestamp(number, UTC),
            steps=tuple(Observation(step_identity(graph.name, step), each) for step, each in steps),
            seconds=self.end,
            played_seconds=None if before is None else before.played_seconds,
            # Steps wait for room alone here, and plans know of that.
            replayed_seconds=self.end,
        )

    def promise(self, now: float) -> Planned | None:
        """What is promised of the run then."""
        run = self._active_run(now)
        return plan_runs([run], self.cluster, self.options).plans[KEY].promise

    def _active_run(self, now: float) -> ActiveRun:
        """The run as a controller sees it then."""
        progress: dict[str, StepProgress] = {}
        of_groups: dict[str, StepProgress] = {}
        drivers: dict[str, StepProgress] = {}
        held: dict[str, str] = {}
        graph = self.learned.graph
        for index, activity in enumerate(self.lowered.activities):
            seen = self._progress(index, now)
            if activity.step is not None:
                progress[activity.name] = replace(seen, driver=drivers.get(activity.name))
                if seen.state is ProgressState.WAITING:
                    held[activity.name] = self.problem.node_names[int(self.true.node[index])]
            elif activity.entered_group >= 0:
                of_groups[graph.groups[activity.entered_group].name] = seen
            elif not activity.is_join:
                drivers[activity.name] = seen
        return ActiveRun(KEY, graph, -now, 1.0, progress, of_groups, held, self._forecast(now))

    def _forecast(self, now: float) -> RunForecast:
        """What past runs tell of it, and once it has begun, what its samples said then."""
        forecast = self.learned.forecast
        if now == 0 or self.first is None or self.first.played_seconds is None:
            return forecast
        return replace(forecast, first_samples=FirstSamples(self.first.played_seconds))

    def _progress(self, index: int, now: float) -> StepProgress:
        start, end = float(self.true.start[index]), float(self.true.end[index])
        node = self.problem.node_names[int(self.true.node[index])]
        arrays = self.problem.arrays
        speed = float(arrays.speed[self.true.node[index]]) if arrays.scales[index] else 1.0
        moved = float(arrays.download_bytes[index] + arrays.upload_bytes[index])
        rate = float(arrays.store_rate[self.true.node[index]])
        ran = float(arrays.duration_seconds[index]) / speed + moved / rate
        if end <= now:
            return StepProgress(ProgressState.DONE, node, ran_seconds=ran)
        if start < now:
            ran = max(0.0, ran - (end - now))
            return StepProgress(ProgressState.RUNNING, node, now - start, ran_seconds=ran)
        return StepProgress()


def promises(progress: Callable[[str], None], runs: int = RUNS) -> Iterator[Promise]:
    """Of this many runs of each mixture, half of them `ready`, half `ordered`."""
    for mixture in MIXTURES:
        progress(f"promises: {mixture.name}")
        for seed in range(runs):
            yield from promises_of_run(mixture, seed)


def promises_of_run(mixture: Mixture, seed: int) -> Iterator[Promise]:
    """Of one run, one for each share that has passed."""
    random = np.random.default_rng(seed)
    shape = Shape("kfp", 60, 6, seed)
    graph, cluster = with_iteration_keys(made_up_run(shape)), made_up_cluster(shape)
    options, past = options_of(seed), Past()
    for number in range(RUNS_SEEN):
        begun = begin(graph, cluster, options, past, mixture, random)
        past.observe(begun.past_run(number))
    begun = begin(graph, cluster, options, past, mixture, random)
    for passed in PASSED:
        found = begun.promise(passed * begun.end)
        assert found is not None
        assert found.ends is not None
        end, now = begun.end, passed * begun.end
        low, typical, high = (now + each for each in astuple(found.ends))
        yield Promise(mixture.name, passed, end, low, typical, high)


def options_of(seed: int) -> PlanOptions:
    """How a made-up run is planned: every second one `ordered`."""
    dispatch = "ordered" if seed % 2 else "ready"
    return PlanOptions(dispatch=dispatch, seed=seed, compare=(), quick=True)


def with_iteration_keys(graph: RunGraph) -> RunGraph:
    """The run, with items of its loops that are the same in each run."""
    steps = (replace(each, iteration_key=str(each.iteration or "")) for each in graph.steps)
    return replace(graph, steps=tuple(steps))


def begin(
    graph: RunGraph,
    cluster: Cluster,
    options: PlanOptions,
    past: Past,
    mixture: Mixture,
    random: np.random.Generator,
) -> Begun:
    """A run with its plan on learned times, and what really happens."""
    learned = with_history(graph, past, CONFIDENCE)
    alone = (ActiveRun(KEY, learned.graph),)
    lowered = lower_runs(alone, cluster, lowering_options_of(alone, cluster, options))
    placement = list_schedule(lowered.problem).placement
    true_seconds = lowered.problem.arrays.duration_seconds.copy()
    steps = {
        index: activity.step
        for index, activity in enumerate(lowered.activities)
        if activity.step is not None
    }
    usual = {step.name: step.duration_seconds for step in graph.steps}
    columns = list(steps)
    true_seconds[columns] = _drawn([usual[each.name] for each in steps.values()], mixture, random)
    arrays = lowered.problem.arrays._replace(duration_seconds=true_seconds)
    problem = replace(lowered.problem, arrays=arrays)
    return Begun(lowered, problem, simulate(problem, placement), learned, cluster, options)


def _drawn(
    seconds: Sequence[float | None], mixture: Mixture, random: np.random.Generator
) -> Floats:
    """Run times of steps in one run."""
    count = len(seconds)
    factors = np.exp(random.normal(0, mixture.common) + random.normal(0, mixture.own, count))
    tails = np.where(random.random(count) < mixture.tail, TAIL, 1.0)
    return np.array(seconds, np.float64) * factors * tails


def _end(ends: Floats) -> float:
    return max(each for each in map(float, ends) if math.isfinite(each))
