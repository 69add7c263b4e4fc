"""Promises of made-up runs while they run: the end, by samples of what is left.

Ten runs are seen, then one is forecast before it starts and after a quarter, a half and three
quarters of its time. A run time is the planned one times a factor that all steps of the run share,
times one of its own, and three times as long now and then; all lognormal.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.learning_runs.experiments import CONFIDENCE
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import LoweringOptions, PlacementProblem, lower
from kfp_placement_engine.history import Past
from kfp_placement_engine.history.common_factor import score_of
from kfp_placement_engine.model.history import (
    CommonFactor,
    Distribution,
    Observation,
    StepIdentity,
)
from kfp_placement_engine.planning.promises import stretched_ends
from kfp_placement_engine.planning.sampled_times import sampled_durations
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import Schedule, simulate, simulate_durations

RUNS, RUNS_SEEN, SAMPLES = 100, 10, 200
PASSED = (0.0, 0.25, 0.5, 0.75)
TAIL = 3.0
PIPELINE = "made-up"


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
class _Begun:
    """A run that is under way.

    Attributes:
        problem: of the run, with the times that it really takes.
        true: what really happens.
        forecasts: of all steps, by activity, before the run.
        common: of the run, before it.
    """

    problem: PlacementProblem
    true: Schedule
    forecasts: Mapping[int, Distribution]
    common: CommonFactor

    def known(self, now: float) -> tuple[dict[int, float], dict[int, Distribution]]:
        """Run times of the steps that have ended, and what is forecast of the others."""
        arrays, true = self.problem.arrays, self.true
        ended: dict[int, float] = {}
        others: dict[int, Distribution] = {}
        for activity, forecast in self.forecasts.items():
            seconds = float(arrays.duration_seconds[activity])
            if true.end[activity] <= now:
                ended[activity] = seconds
                continue
            speed = float(arrays.speed[true.node[activity]]) if arrays.scales[activity] else 1.0
            ran = seconds - (float(true.end[activity]) - now) * speed
            is_running = true.start[activity] < now and ran > 0
            others[activity] = forecast.after(ran) if is_running else forecast
        return ended, others


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
    options = LoweringOptions(dispatch="ordered" if seed % 2 else "ready")
    problem = lower(made_up_run(shape), made_up_cluster(shape), options).problem
    is_step = (problem.arrays.gene >= 0) & (problem.arrays.duration_seconds > 0)
    steps = np.flatnonzero(is_step).astype(np.int64)
    past = Past()
    for number in range(RUNS_SEEN):
        before = _forecasts(past, steps)
        really = _with(problem, dict(enumerate(_drawn(problem, steps, mixture, random))))
        played, placement = _played(problem, before, past, random)
        past.steps.observe(
            [
                Observation(_identity(step), float(really.arrays.duration_seconds[step]))
                for step in map(int, steps)
            ]
        )
        if number:
            past.ends.observe(PIPELINE, played, _end(simulate(really, placement).end))
    forecasts = _forecasts(past, steps)
    placement = _planned(problem, forecasts)
    really = _with(problem, dict(enumerate(_drawn(problem, steps, mixture, random))))
    true = simulate(really, placement)
    begun = _Begun(really, true, forecasts, past.steps.common_factor(PIPELINE))
    overrun, end = past.overrun(PIPELINE), _end(true.end)
    assert overrun is not None
    for passed in PASSED:
        now = passed * end
        ended, others = begun.known(now)
        scores = [score_of(forecasts[step].probability(seconds)) for step, seconds in ended.items()]
        left = _with(problem, ended)
        drawn = sampled_durations(left, others, SAMPLES, random, begun.common.given(scores))
        _, ends = simulate_durations(left, placement, drawn)
        sampled = np.array([_end(each) - now for each in ends])
        found = now + stretched_ends(sampled, overrun, has_begun=bool(ended))
        outside = (1 - CONFIDENCE) / 2
        low, middle, high = np.quantile(found, (outside, 0.5, 1 - outside))
        yield Promise(mixture.name, passed, end, float(low), float(middle), float(high))


def _forecasts(past: Past, steps: Integers) -> dict[int, Distribution]:
    """Of all steps of which anything is known, by activity."""
    found = {step: past.steps.predict(_identity(step)) for step in map(int, steps)}
    return {step: each.distribution for step, each in found.items() if each is not None}


def _planned(problem: PlacementProblem, forecasts: Mapping[int, Distribution]) -> Placement:
    """The plan on typical times."""
    typical = {step: each.median_seconds for step, each in forecasts.items()}
    return list_schedule(_with(problem, typical)).placement


def _played(
    problem: PlacementProblem,
    forecasts: Mapping[int, Distribution],
    past: Past,
    random: np.random.Generator,
) -> tuple[float, Placement]:
    """Median end of samples before a run, and the plan that was played."""
    placement = _planned(problem, forecasts)
    common = past.steps.common_factor(PIPELINE)
    drawn = sampled_durations(problem, forecasts, SAMPLES, random, common)
    _, ends = simulate_durations(problem, placement, drawn)
    return float(np.median([_end(each) for each in ends])), placement


def _identity(step: int) -> StepIdentity:
    return StepIdentity(PIPELINE, f"step-{step}")


def _drawn(
    problem: PlacementProblem, steps: Integers, mixture: Mixture, random: np.random.Generator
) -> Floats:
    """[A] run times."""
    seconds = problem.arrays.duration_seconds.copy()
    factors = np.exp(random.normal(0, mixture.common) + random.normal(0, mixture.own, steps.size))
    tails = np.where(random.random(steps.size) < mixture.tail, TAIL, 1.0)
    seconds[steps] *= factors * tails
    return seconds


def _with(problem: PlacementProblem, seconds: Mapping[int, float]) -> PlacementProblem:
    """The problem with other run times of some activities."""
    durations = problem.arrays.duration_seconds.copy()
    for activity, each in seconds.items():
        durations[activity] = each
    return replace(problem, arrays=problem.arrays._replace(duration_seconds=durations))


def _end(ends: Floats) -> float:
    return max(each for each in map(float, ends) if math.isfinite(each))
