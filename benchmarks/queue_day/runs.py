"""The runs of a day: four kinds, drawn by seed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

DAY_SECONDS = 24 * 3600.0
_PEAK_SHIFT_SECONDS = 9 * 3600.0
_SWING = 0.8
_SIGMA = 0.5
_ACTUAL_SIGMA = 0.3


class Amounts(NamedTuple):
    """Resources of a pod or a node, in whole CPUs, GiB and GPUs."""

    cpu: int
    memory_gib: int
    gpu: int = 0


WORKER = Amounts(4, 16, 1)


@dataclass(frozen=True)
class Step:
    """A step of a run.

    Attributes:
        requests: requests of its pod.
        planned_seconds: planned duration.
        actual_seconds: actual duration.
        workers: number of pods (`WORKER`) that it makes; it works only when all of them run.
    """

    requests: Amounts
    planned_seconds: float
    actual_seconds: float
    workers: int = 0


@dataclass(frozen=True)
class Run:
    """A run: stages one after another, the steps of a stage side by side.

    Attributes:
        submitted_seconds: time of its submission, from the beginning of the day.
        stages: the steps.
    """

    submitted_seconds: float
    stages: tuple[tuple[Step, ...], ...]

    @property
    def most_gpus(self) -> int:
        """Largest number of GPUs that it can use at once."""
        return max(
            sum(step.requests.gpu + step.workers * WORKER.gpu for step in stage)
            for stage in self.stages
        )

    def as_planned(self) -> "Run":
        """Return the same run, submitted at 0, in which every step takes as long as planned."""
        stages = (
            tuple(replace(step, actual_seconds=step.planned_seconds) for step in stage)
            for stage in self.stages
        )
        return Run(0.0, tuple(stages))


def draw_day(runs_per_hour: float, seed: int, *, gangs: bool) -> list[Run]:
    """Draw the runs of a day, in the order in which they are submitted.

    Args:
        runs_per_hour: mean rate; most runs arrive in the afternoon, hardly any at night.
        seed: seed of the day; with and without gangs all else is the same.
        gangs: whether steps that make workers do so; else they are ordinary steps.
    """
    rng = Random(seed)
    runs = [Run(seconds, _stages(rng)) for seconds in _arrivals(runs_per_hour, rng)]
    return runs if gangs else [_without_workers(run) for run in runs]


def draw_run(rng: Random) -> Run:
    """Draw one run without workers, submitted at the beginning of the day."""
    return _without_workers(Run(0.0, _stages(rng)))


def _arrivals(runs_per_hour: float, rng: Random) -> Iterator[float]:
    """Yield Poisson arrivals whose rate follows the day, by thinning."""
    now = 0.0
    while True:
        now += rng.expovariate(runs_per_hour * (1 + _SWING) / 3600)
        if now >= DAY_SECONDS:
            return
        wave = math.sin(2 * math.pi * (now - _PEAK_SHIFT_SECONDS) / DAY_SECONDS)
        if rng.random() * (1 + _SWING) < 1 + _SWING * wave:
            yield now


def _without_workers(run: Run) -> Run:
    stages = (tuple(replace(step, workers=0) for step in stage) for stage in run.stages)
    return replace(run, stages=tuple(stages))


def _stages(rng: Random) -> tuple[tuple[Step, ...], ...]:
    (kind,) = rng.choices([_etl, _training, _sweep, _gang], [45, 30, 15, 10])
    return tuple(tuple(stage) for stage in kind(rng))


def _lognormal(rng: Random, sigma: float) -> float:
    """Draw a lognormal factor with mean 1."""
    return math.exp(rng.gauss(0, sigma) - sigma * sigma / 2)


def _step(
    rng: Random,
    requests: tuple[int, int, int],
    mean_seconds: float,
    sigma: float = _SIGMA,
    workers: int = 0,
) -> Step:
    planned = mean_seconds * _lognormal(rng, sigma)
    return Step(Amounts(*requests), planned, planned * _lognormal(rng, _ACTUAL_SIGMA), workers)


def _etl(rng: Random) -> Sequence[Sequence[Step]]:
    return [
        [_step(rng, (1, 2, 0), 120)],
        [_step(rng, (2, 4, 0), 300) for _ in range(rng.choice([2, 4, 6, 8]))],
        [_step(rng, (4, 16, 0), 240)],
        [_step(rng, (1, 2, 0), 60)],
    ]


def _training(rng: Random) -> Sequence[Sequence[Step]]:
    return [
        [_step(rng, (1, 2, 0), 180)],
        [_step(rng, (8, 24, 0), 600)],
        [_step(rng, (4, 16, rng.choice([1, 1, 2, 4])), 3000, 0.7)],
        [_step(rng, (2, 8, 0), 240)],
        [_step(rng, (1, 2, 0), 60)],
    ]


def _sweep(rng: Random) -> Sequence[Sequence[Step]]:
    return [
        [_step(rng, (4, 8, 0), 300)],
        [_step(rng, (4, 12, 1), 1500, 0.4) for _ in range(rng.choice([4, 6, 8, 12]))],
        [_step(rng, (1, 2, 0), 60)],
    ]


def _gang(rng: Random) -> Sequence[Sequence[Step]]:
    return [
        [_step(rng, (4, 8, 0), 400)],
        [_step(rng, (1, 2, 0), 2400, workers=rng.choice([3, 4, 6]))],
        [_step(rng, (2, 8, 0), 200)],
    ]
