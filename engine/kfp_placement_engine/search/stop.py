"""Stopping criteria of a search: callables that are asked after every generation."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.fitness import RELATIVE_MARGIN


@dataclass(frozen=True)
class SearchProgress:
    """The progress of a search.

    Attributes:
        generation: number of generations finished.
        since_improvement: number of generations since the best plan changed.
        terms: [5] terms of the best plan so far, see `fitness`; None while they are unknown.
        schedules: number of schedules decoded: the plans to start from, and those that the search
            simulated or gave up. The paper's search does not count them.
    """

    generation: int
    since_improvement: int
    terms: Floats | None = None
    schedules: int = 0


class StoppingCriterion(Protocol):
    """A criterion by which a search stops."""

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether to stop now."""
        ...


@dataclass
class MaxRuntime:
    """Stop after a time; the clock starts when a search asks for the first time.

    Attributes:
        seconds: budget in seconds.
        clock: clock that gives monotonic seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    _start: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse a negative budget."""
        if not self.seconds >= 0:
            raise PlanningError(f"budget of {self.seconds!r} s; it must be 0 or more")

    def share(self) -> float:
        """Return the share of the budget that is spent, 0 to 1."""
        if self._start is None or self.seconds <= 0:
            return 0.0
        return min(1.0, (self.clock() - self._start) / self.seconds)

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the budget is spent; a search that begins starts the clock again."""
        if self._start is None or progress.generation == 0:
            self._start = self.clock()
        return self.clock() - self._start >= self.seconds


@dataclass(frozen=True)
class MaxGenerations:
    """Stop after a number of generations, which gives the same plan again on every machine."""

    generations: int

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        if self.generations < 0:
            raise PlanningError(f"{self.generations} generations; it must be 0 or more")

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the generations are done."""
        return progress.generation >= self.generations


@dataclass(frozen=True)
class MaxSchedules:
    """Stop after a number of schedules: a budget that is the same on every machine.

    The same budget gives the same plan again. Its number of generations does not: the last one is
    as short as the budget demands.

    Attributes:
        schedules: number of schedules; the last child of each island, and the plans to start from
            that are made together, may exceed it by a few.
    """

    schedules: int

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the budget is spent."""
        return progress.schedules >= self.schedules


@dataclass(frozen=True)
class BoundReached:
    """Stop when no plan can complete earlier: at the bound, every step placed, no rule missed.

    It is for the objective `completion`. The search goes on for plans that complete as early and
    keep nodes less busy, until some generations in a row have not found one. A plan that misses a
    latency rule does not stop the search, since plans that keep the rule may complete later.

    Attributes:
        completion_seconds: bound of the completion time (weighted, with several runs).
        generations: number of generations without an improvement after which the search stops.
    """

    completion_seconds: float
    generations: int = 4

    def is_reached(self, terms: Floats) -> bool:
        """Return whether a plan is at the bound, as closely as plans are compared.

        Args:
            terms: [5] terms of the plan.
        """
        unplaced, latency_excess, completion = terms[:3].tolist()
        margin = RELATIVE_MARGIN * max(1.0, self.completion_seconds)
        return (
            not unplaced and not latency_excess and completion <= self.completion_seconds + margin
        )

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the best plan is at the bound, and has not improved for long enough."""
        is_settled = progress.since_improvement >= self.generations
        return is_settled and progress.terms is not None and self.is_reached(progress.terms)


@dataclass(frozen=True)
class AnyOf:
    """Stop when any of the criteria holds."""

    criteria: tuple[StoppingCriterion, ...]

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether any criterion holds; all are asked, so that every clock starts."""
        answers = [criterion(progress) for criterion in self.criteria]
        return any(answers)


def share_done(criterion: StoppingCriterion) -> float:
    """Return the spent share of a criterion's running time, 0 to 1; 0 without a running time."""
    if isinstance(criterion, MaxRuntime):
        return criterion.share()
    if isinstance(criterion, AnyOf):
        return max((share_done(each) for each in criterion.criteria), default=0.0)
    return 0.0


def schedules_allowed(criterion: StoppingCriterion) -> float:
    """Return the most schedules that a criterion allows; infinite where it does not count them."""
    if isinstance(criterion, MaxSchedules):
        return criterion.schedules
    if isinstance(criterion, AnyOf):
        return min(map(schedules_allowed, criterion.criteria), default=math.inf)
    return math.inf
