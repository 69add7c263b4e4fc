"""What a solver returns."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.simulation import Schedule, simulate


@dataclass(frozen=True)
class Candidate:
    """A placement with its schedule."""

    placement: Placement
    schedule: Schedule

    @staticmethod
    def of(problem: PlacementProblem, placement: Placement) -> "Candidate":
        """Play a placement."""
        return Candidate(placement, simulate(problem, placement))


def best_of(candidates: Iterable[Candidate]) -> Candidate:
    """The best of some plans, the first of several that are as good."""
    best, *others = candidates
    for other in others:
        if better(other.schedule.terms, best.schedule.terms):
            best = other
    return best


def undecided(problem: PlacementProblem) -> Candidate:
    """Return the only plan of a problem that leaves nothing to decide."""
    nothing = np.zeros(0, np.int64)
    return Candidate.of(problem, Placement(nothing, np.zeros(problem.activities), np.empty(0)))


@dataclass(frozen=True)
class Result:
    """The best plan found.

    Attributes:
        placement: the decision.
        schedule: the decision played under the problem's dispatch.
        generations: generations searched, plans to start from included (all but the first two);
            with the seed they replay the plan.
        seed: of the random generator.
        seconds: time searched.
        exact: all assignments were tried, under `ordered` with all orders. Held starts
            (`Placement.not_before`) were not: a plan that keeps a step waiting although it could
            start may be better still.
    """

    placement: Placement
    schedule: Schedule
    generations: int
    seed: int
    seconds: float
    exact: bool = False
