"""All plans of a tiny run that hold no start back: what everything else is held against."""

import math

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import Schedule, simulate

MAX_PLANS = 50_000_000
"""More plans than this are refused: it would take minutes."""

_MANY = 700.0
"""Logarithm from which on a number of plans is called infinite: it would overflow."""


def count_plans(problem: PlacementProblem) -> float:
    """An upper limit of the number of plans: assignments times, if ordered, all orders."""
    logarithm = float(np.log(problem.arrays.allowed.sum(axis=1)).sum())
    if problem.dispatch == "ordered":
        logarithm += math.lgamma(1 + int((problem.arrays.gene >= 0).sum()))
    return math.exp(logarithm) if logarithm < _MANY else math.inf


def best_of_all(problem: PlacementProblem) -> Placement:
    """The best placement of all assignments and orders, in the objective's order.

    Under `ordered`, each step starts as soon as its turn comes and its node has room: holding a
    start back can be better still, and is not tried.

    Raises:
        PlanningError: there are too many plans.
    """
    plans = count_plans(problem)
    if plans > MAX_PLANS:
        raise PlanningError(
            f"brute force would try up to {plans:.3g} plans; "
            f"it is for tiny runs (at most {MAX_PLANS:.3g})"
        )
    genes, order, _, _ = native.brute_force(problem)
    return Placement(genes, order, np.empty(0))


def brute_force(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """The best by trying every assignment and order. The seed is not used.

    Raises:
        PlanningError: there are too many plans.
    """
    return simulate(problem, best_of_all(problem))
