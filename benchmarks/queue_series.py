"""Days of runs, simulated once for each way to start them, and what is measured of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from benchmarks.queue_day.admission import Queue
from benchmarks.queue_day.runs import Run, draw_day
from benchmarks.queue_day.simulation import AtOnce, PodOrder, simulate
from benchmarks.queue_day.start_ranges import RangedQueue, RangedStart

LARGE_GPUS = 6
"""A run that can use this many at once, or more, is large."""


@dataclass(frozen=True)
class Way:
    """One way to start runs.

    Attributes:
        name: name in the tables.
        overcommit: overcommit of the RunQueue; None = every run starts at once.
        whole_gangs: a step and its workers get their nodes together.
        packs_gangs: whether the queue knows which pods must run together.
    """

    name: str
    overcommit: float | None = None
    whole_gangs: bool = False
    packs_gangs: bool = True


ALONE = Way("pods alone")
WHOLE = Way("pods alone, gangs begin whole", whole_gangs=True)
QUEUED = Way("queued, overcommit 2", overcommit=2.0)
STRICT = Way("queued, overcommit 1", overcommit=1.0)
UNPACKED = Way("queued, overcommit 2, gangs not packed", overcommit=2.0, packs_gangs=False)
WITH_GANGS = (ALONE, WHOLE, QUEUED, STRICT, UNPACKED)
WITHOUT_GANGS = (ALONE, QUEUED, STRICT)


@dataclass(frozen=True)
class Day:
    """A day that was simulated.

    Attributes:
        seed: seed of the day, and of the orders in which its pods are tried.
        runs: number of submitted runs.
        unfinished: number of runs that never end.
        completion_seconds: mean time from submission to end, over runs that ended.
        waiting_pods: number of pods without a node, the mean over time.
        large_runs: number of ended runs that can use six GPUs or more at once.
        large_completion_seconds: mean time from submission to end of these; 0 if there are none.
    """

    seed: int
    runs: int
    unfinished: int
    completion_seconds: float
    waiting_pods: float
    large_runs: int = 0
    large_completion_seconds: float = 0.0


@dataclass(frozen=True)
class Series:
    """The days of one way at one rate.

    Attributes:
        gangs: whether steps make workers.
        runs_per_hour: the mean rate of arrivals.
        way: way in which runs start.
        days: days by seed.
    """

    gangs: bool
    runs_per_hour: int
    way: Way
    days: tuple[Day, ...]

    @property
    def stuck(self) -> int:
        """Number of days with runs that never end."""
        return sum(day.unfinished > 0 for day in self.days)

    @property
    def completion_seconds(self) -> float:
        """The mean over the runs of all days."""
        runs = sum(day.runs for day in self.days)
        return sum(day.runs * day.completion_seconds for day in self.days) / runs

    @property
    def large_completion_seconds(self) -> float:
        """The mean over the large runs of all days; 0 if there are none."""
        total = sum(day.large_runs * day.large_completion_seconds for day in self.days)
        return total / max(1, sum(day.large_runs for day in self.days))

    @property
    def waiting_pods(self) -> float:
        """The mean over the days."""
        return fmean(day.waiting_pods for day in self.days)

    def longer_than(self, other: "Series") -> float:
        """Return the time that runs take longer, as a share; of series without stuck days."""
        return self.completion_seconds / other.completion_seconds - 1

    def error_beside(self, other: "Series") -> float:
        """Return the standard error of the days' own ratios."""
        ratios = [
            mine.completion_seconds / its.completion_seconds
            for mine, its in zip(self.days, other.days, strict=True)
        ]
        return float(stdev(ratios) / len(ratios) ** 0.5) if len(ratios) > 1 else 0.0


def measure(runs_per_hour: int, way: Way, *, gangs: bool, days: int) -> Series:
    """Simulate the days of one way."""
    return Series(
        gangs=gangs,
        runs_per_hour=runs_per_hour,
        way=way,
        days=tuple(_day(seed, runs_per_hour, way, gangs=gangs) for seed in range(days)),
    )


def _day(seed: int, runs_per_hour: int, way: Way, *, gangs: bool) -> Day:
    runs = draw_day(runs_per_hour, seed, gangs=gangs)
    # Without gangs nothing can wait for each other, and the order matters little.
    order = PodOrder(any_order=gangs, whole_gangs=way.whole_gangs, seed=seed)
    outcome = simulate(runs, _gatekeeper(runs, way), order)
    completion = outcome.completion_seconds
    large = [took for number, took in completion.items() if runs[number].most_gpus >= LARGE_GPUS]
    return Day(
        seed=seed,
        runs=len(runs),
        unfinished=outcome.unfinished,
        completion_seconds=fmean(completion.values()),
        waiting_pods=outcome.waiting_pods,
        large_runs=len(large),
        large_completion_seconds=fmean(large) if large else 0.0,
    )


@dataclass(frozen=True)
class Ranges:
    """Forecasts of the runs' starts and their real starts, on all days of one rate.

    Attributes:
        gangs: whether steps make workers.
        runs_per_hour: the mean rate of arrivals.
        way: way in which runs start.
        waits: number of runs with a forecast, since they had to wait.
        ranged: number of runs with a range; a queue has none before it has seen waits.
        kept: the share of these that began within the range that was said first.
        early: the share that began before it.
        width: median width of these ranges beside the waits.
        later_kept: share of later ranges within which runs began: the mean over
            runs.
    """

    gangs: bool
    runs_per_hour: int
    way: Way
    waits: int
    ranged: int
    kept: float
    early: float
    width: float
    later_kept: float


def measure_ranges(runs_per_hour: int, way: Way, *, gangs: bool, days: int) -> Ranges:
    """Simulate the days of one way, whose queue says when runs start and learns from day to day."""
    starts: list[RangedStart] = []
    ratios: Sequence[float] = ()
    for seed in range(days):
        runs = draw_day(runs_per_hour, seed, gangs=gangs)
        queue = RangedQueue(runs, way.overcommit or 1.0, ratios)
        simulate(runs, queue, PodOrder(any_order=gangs, seed=seed))
        starts += queue.starts.values()
        ratios = queue.ratios
    ranged = [each for each in starts if each.has_range]
    later = [each.later_kept for each in ranged if each.later_kept is not None]
    return Ranges(
        gangs=gangs,
        runs_per_hour=runs_per_hour,
        way=way,
        waits=len(starts),
        ranged=len(ranged),
        kept=fmean(each.is_kept for each in ranged) if ranged else math.nan,
        early=fmean(each.is_early for each in ranged) if ranged else math.nan,
        width=median(each.width for each in ranged) if ranged else math.nan,
        later_kept=fmean(later) if later else math.nan,
    )


def _gatekeeper(runs: Sequence[Run], way: Way) -> AtOnce | Queue:
    if way.overcommit is None:
        return AtOnce()
    return Queue(runs, way.overcommit, packs_gangs=way.packs_gangs)
