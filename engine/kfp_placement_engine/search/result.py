"""Results of a search: a placement with the schedule that it leads to."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.simulation import simulate


@dataclass(frozen=True)
class Candidate:
    """A placement with its schedule."""

    placement: Placement
    schedule: Schedule

    @staticmethod
    def of(problem: PlacementProblem, placement: Placement) -> "Candidate":
        """Simulate a placement."""
        return Candidate(placement, simulate(problem, placement))


def best_of(candidates: Iterable[Candidate]) -> Candidate:
    """Return the best plan, the first of several that are equally good."""
    best, *others = candidates
    for other in others:
        if better(other.schedule.terms, best.schedule.terms):
            best = other
    return best


def undecided(problem: PlacementProblem) -> Candidate:
    """Return the only plan of a problem that leaves nothing to decide."""
    nothing = np.zeros(0, np.int64)
    return Candidate.of(problem, Placement(nothing, np.zeros(problem.activities)))


@dataclass(frozen=True)
class Result:
    """The best plan that a search found.

    Attributes:
        placement: placement of the plan.
        schedule: simulation of the placement under the problem's dispatch.
        generations: number of generations; the plans to start from count as well, all but the
            first two. A search with the same seed and number gives the same plan.
        seed: seed of the random generator.
        seconds: duration of the search.
        exact: whether all assignments were tried, under `ordered` with all orders. Held starts
            (`Placement.not_before`) were not tried: a plan that keeps a step waiting although it
            could start may be better still.
    """

    placement: Placement
    schedule: Schedule
    generations: int
    seed: int
    seconds: float
    exact: bool = False
