"""Budgets of searches in a benchmark, and the resources that a search spent.

A budget counts schedules, the same on every machine, or CPU seconds of one thread. A search is
given one thread then; with BLAS on one thread as well, the CPU time of the process is that of one
thread, see `processes.on_one_thread`. Some benchmarks also have budgets of time, as people wait for
a plan; a search then has a thread for each island, by default one.
"""

import argparse
import math
import re
import time
from dataclasses import dataclass, replace

from kfp_placement_engine import AnyOf, GeneticParams, MaxSchedules, PlacementProblem, Result, solve
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.search.baselines.brute_force import count_plans
from kfp_placement_engine.search.stop import SearchProgress, StoppingCriterion
from kfp_placement_engine.units.durations import parse_duration

MOST_SCHEDULES = 10**9
MOST_SECONDS = 86_400.0

_BUDGET = re.compile(r"([0-9]{1,12}) ?schedules|([0-9]{1,9}(?:\.[0-9]{1,6})?) ?cpu", re.ASCII)


@dataclass(frozen=True)
class Budget:
    """Budget of a search, by one of three limits.

    Attributes:
        schedules: decodings; plans to start from count.
        cpu_seconds: CPU time of one thread; what is under way when it ends is finished.
        wall_seconds: time.
    """

    schedules: int | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None

    @property
    def text(self) -> str:
        """The budget as text for people."""
        if self.schedules is not None:
            return f"{self.schedules:,} schedules"
        if self.wall_seconds is not None:
            return f"{self.wall_seconds:g} s"
        return f"{self.cpu_seconds:g} s of CPU time"

    @property
    def word(self) -> str:
        """The budget as on the command line."""
        if self.schedules is not None:
            return f"{self.schedules}schedules"
        if self.wall_seconds is not None:
            return f"{self.wall_seconds:g}s"
        return f"{self.cpu_seconds:g}cpu"

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures for JSON."""
        if self.schedules is not None:
            return {"schedules": self.schedules}
        if self.wall_seconds is not None:
            return {"seconds": self.wall_seconds}
        return {"cpuSeconds": self.cpu_seconds or 0.0}


@dataclass(frozen=True)
class Spent:
    """Resources that a search spent.

    Attributes:
        schedules: decodings; where all plans were tried, how many there are.
        cpu_seconds: CPU time.
        has_begun: all plans to start from were compared, so none of them is better.
    """

    schedules: int
    cpu_seconds: float
    has_begun: bool

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures for JSON."""
        return {"schedules": self.schedules, "cpuSeconds": round(self.cpu_seconds, 6)}


def budget(text: str) -> Budget:
    """Read a budget such as `5000schedules` or `2cpu`, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is not a budget, is 0, or is too large.
    """
    match = _BUDGET.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: write a number of schedules or of CPU seconds, as in 5000schedules or "
            "2cpu"
        )
    if match[1]:
        return Budget(schedules=int(_within(text, float(match[1]), MOST_SCHEDULES, "schedules")))
    return Budget(cpu_seconds=_within(text, float(match[2]), MOST_SECONDS, "CPU seconds"))


def timed_budget(text: str) -> Budget:
    """Read a budget, or a time such as `2s` or `500ms`, for argparse.

    Raises:
        argparse.ArgumentTypeError: as of `budget`.
    """
    if text.strip().endswith(("schedules", "cpu")):
        return budget(text)
    try:
        wall_seconds = parse_duration(text)
    except EngineError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: write a number of schedules or of CPU seconds, or a time, as in "
            "5000schedules, 2cpu or 2s"
        ) from error
    return Budget(wall_seconds=_within(text, wall_seconds, MOST_SECONDS, "seconds"))


def _within(text: str, value: float, most: float, unit: str) -> float:
    if not 0 < value <= most:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: a budget is more than 0 and at most {most:,.0f} {unit}"
        )
    return value


class Meter:
    """A stopping criterion that notes what is spent, from the moment it is made."""

    def __init__(self, allowed: Budget) -> None:
        self._allowed = allowed
        self._started, self._started_at = time.process_time(), time.monotonic()
        self.schedules = 0
        self.has_begun = True

    @property
    def cpu_seconds(self) -> float:
        """CPU time since it was made."""
        return time.process_time() - self._started

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the budget is spent."""
        self.schedules = progress.schedules
        is_spent = (
            self.schedules >= _or_no_limit(self._allowed.schedules)
            or self.cpu_seconds >= _or_no_limit(self._allowed.cpu_seconds)
            or time.monotonic() - self._started_at >= _or_no_limit(self._allowed.wall_seconds)
        )
        # While a search makes the plans to start from it knows no terms.
        if is_spent and progress.terms is None:
            self.has_begun = False
        return is_spent


def _or_no_limit(allowed: float | None) -> float:
    return math.inf if allowed is None else allowed


def search(
    problem: PlacementProblem, allowed: Budget, seed: int, params: GeneticParams | None = None
) -> tuple[Result, Spent]:
    """Search with a budget; on one thread, unless it is one of time.

    All plans of a tiny problem are tried only if they are no more than the budget allows.
    """
    params, meter = params or GeneticParams(), Meter(allowed)
    stop: StoppingCriterion = meter
    if allowed.schedules is not None:
        params = replace(params, exact_below=min(params.exact_below, allowed.schedules))
        stop = AnyOf((MaxSchedules(allowed.schedules), meter))
    result = solve(problem, stop, seed, params, threads=0 if allowed.wall_seconds else 1)
    cpu_seconds = meter.cpu_seconds
    if result.exact:
        return result, Spent(round(count_plans(problem)), cpu_seconds, has_begun=True)
    return result, Spent(meter.schedules, cpu_seconds, meter.has_begun)
