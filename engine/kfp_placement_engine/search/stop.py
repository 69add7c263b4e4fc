"""When a search stops: small callables of one protocol, asked after every generation."""

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
    """How far a search is.

    Attributes:
        generation: generations finished.
        since_improvement: generations since the best plan changed.
        terms: [5] what the best plan so far is worth, see `fitness`; None while that is not known.
        schedules: how many were decoded: the plans to start from, and those that the search played
            or gave up. The paper's search does not count them.
    """

    generation: int
    since_improvement: int
    terms: Floats | None = None
    schedules: int = 0


class StoppingCriterion(Protocol):
    """Says when to stop."""

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether to stop now."""
        ...


@dataclass
class MaxRuntime:
    """Stop after this many seconds; the clock starts when a search asks for the first time.

    Attributes:
        seconds: the budget.
        clock: monotonic seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    _start: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse a negative budget."""
        if not self.seconds >= 0:
            raise PlanningError(f"budget of {self.seconds!r} s; it must be 0 or more")

    def share(self) -> float:
        """How much of the budget is spent, 0 to 1."""
        if self._start is None or self.seconds <= 0:
            return 0.0
        return min(1.0, (self.clock() - self._start) / self.seconds)

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether the budget is spent. A search that begins starts the clock again."""
        if self._start is None or progress.generation == 0:
            self._start = self.clock()
        return self.clock() - self._start >= self.seconds


@dataclass(frozen=True)
class MaxGenerations:
    """Stop after this many generations; the only criterion that replays a plan exactly."""

    generations: int

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        if self.generations < 0:
            raise PlanningError(f"{self.generations} generations; it must be 0 or more")

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether the generations are done."""
        return progress.generation >= self.generations


@dataclass(frozen=True)
class MaxSchedules:
    """Stop after this many schedules: a budget that is the same on every machine.

    The last generation is as short as the budget demands, so a search of as many generations does
    not replay its plan; the same budget does.

    Attributes:
        schedules: the budget; the last child of each island, and the plans to start from that are
            made together, may exceed it by a few.
    """

    schedules: int

    def __post_init__(self) -> None:
        """Refuse a negative budget."""
        if self.schedules < 0:
            raise PlanningError(f"budget of {self.schedules} schedules; it must be 0 or more")

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether the budget is spent."""
        return progress.schedules >= self.schedules


@dataclass(frozen=True)
class BoundReached:
    """Stop when no plan can complete earlier: at the bound, every step placed, no rule missed.

    For the objective `completion`. Plans that complete as early and keep nodes less busy are looked
    for until some generations in a row have found none.
    A plan that misses a latency rule does not stop the search: to keep it may take longer.

    Attributes:
        completion_seconds: no plan completes earlier (weighted, with several runs).
        generations: without an improvement, after which the search stops there.
    """

    completion_seconds: float
    generations: int = 4

    def is_reached(self, terms: Floats) -> bool:
        """Whether a plan is at the bound, as closely as plans are compared.

        Args:
            terms: [5] what it is worth.
        """
        unplaced, latency_excess, completion = terms[:3].tolist()
        margin = RELATIVE_MARGIN * max(1.0, self.completion_seconds)
        return (
            not unplaced and not latency_excess and completion <= self.completion_seconds + margin
        )

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether the best plan is at the bound, and has not improved for long enough."""
        is_settled = progress.since_improvement >= self.generations
        return is_settled and progress.terms is not None and self.is_reached(progress.terms)


@dataclass(frozen=True)
class AnyOf:
    """Stop when any of the criteria says so."""

    criteria: tuple[StoppingCriterion, ...]

    def __call__(self, progress: SearchProgress) -> bool:
        """Whether any criterion holds; all are asked, so that every clock starts."""
        answers = [criterion(progress) for criterion in self.criteria]
        return any(answers)


def share_done(criterion: StoppingCriterion) -> float:
    """How much of a running time is spent, 0 to 1; 0 for criteria without one."""
    if isinstance(criterion, MaxRuntime):
        return criterion.share()
    if isinstance(criterion, AnyOf):
        return max((share_done(each) for each in criterion.criteria), default=0.0)
    return 0.0


def schedules_allowed(criterion: StoppingCriterion) -> float:
    """How many schedules a criterion allows at most; infinite for those that count none."""
    if isinstance(criterion, MaxSchedules):
        return criterion.schedules
    if isinstance(criterion, AnyOf):
        return min(map(schedules_allowed, criterion.criteria), default=math.inf)
    return math.inf
