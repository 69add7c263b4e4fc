"""Brute force: all plans of a tiny run that do not hold starts back, to check other solvers."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel import TERMS
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.simulation import DISPATCH_POLICIES, simulate

MAX_PLANS = 50_000_000
"""Largest number of plans that are tried; more would take minutes."""

_AT_A_TIME = 4096
"""Number of plans that the kernel simulates in one call."""

_MANY = 700.0
"""Logarithm of a number of plans from which on it counts as infinite: it would overflow."""


def count_plans(problem: PlacementProblem) -> float:
    """Return an upper limit of the number of plans: assignments, times all orders if `ordered`."""
    logarithm = float(np.log(problem.arrays.allowed.sum(axis=1)).sum())
    if problem.dispatch == "ordered":
        logarithm += math.lgamma(1 + int((problem.arrays.gene >= 0).sum()))
    return math.exp(logarithm) if logarithm < _MANY else math.inf


def best_of_all(problem: PlacementProblem) -> Placement:
    """Return the best placement of all assignments and orders, in the objective's order.

    Under `ordered`, each step starts as soon as its turn comes and its node has room. To hold a
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
    return try_all(problem).placement


class BestPlan(NamedTuple):
    """Best of all plans.

    Attributes:
        placement: placement of the plan.
        terms: [5] terms of the objective.
        plans: number of plans that were tried.
    """

    placement: Placement
    terms: Floats
    plans: int


def try_all(problem: PlacementProblem) -> BestPlan:
    """Try all plans and return the best, the first of several."""
    choices = [np.flatnonzero(row) for row in problem.arrays.allowed]
    assignments = math.prod(map(len, choices))
    best = Placement(np.zeros(problem.genes, np.int64), np.zeros(problem.activities))
    terms, plans = np.full(TERMS, np.inf), 0
    policy = DISPATCH_POLICIES[problem.dispatch]
    for keys in _all_keys(problem, max(1, _AT_A_TIME // assignments)):
        for first in range(0, assignments, _AT_A_TIME):
            genes = _genes(choices, np.arange(first, min(first + _AT_A_TIME, assignments)))
            number = native.best_of(problem, policy, genes, keys, terms)
            if number >= 0:
                best = Placement(genes[number % len(genes)], keys[number // len(genes)])
            plans += len(genes) * len(keys)
    return BestPlan(best, terms, plans)


def _genes(choices: list[Integers], numbers: Integers) -> Integers:
    """Return [P, G] the assignments with these numbers."""
    genes = np.empty((numbers.size, len(choices)), np.int64)
    for gene in reversed(range(len(choices))):
        numbers, choice = np.divmod(numbers, choices[gene].size)
        genes[:, gene] = choices[gene][choice]
    return genes


def _all_keys(problem: PlacementProblem, at_a_time: int) -> Iterator[Floats]:
    """Yield [at a time, A] the orders that respect the precedences; zeros unless `ordered`."""
    if problem.dispatch != "ordered":
        yield np.zeros((1, problem.activities))
        return
    deciders = np.flatnonzero(problem.arrays.gene >= 0)
    orders = _orders(_deciders_before(problem, deciders), 0)
    while batch := list(islice(orders, at_a_time)):
        keys = np.zeros((len(batch), problem.activities))
        rows = np.arange(len(batch))[:, None]
        keys[rows, deciders[np.array(batch, np.int64)]] = np.arange(deciders.size)
        yield keys


def _deciders_before(problem: PlacementProblem, deciders: Integers) -> list[int]:
    """Return for each activity that has a gene those that must come before it, as bits."""
    bit_of = {activity: 1 << number for number, activity in enumerate(deciders.tolist())}
    before = [0] * problem.activities
    for activity in problem.topological.tolist():
        for earlier in problem.arrays.before(activity).tolist():
            before[activity] |= before[earlier] | bit_of.get(earlier, 0)
    return [before[activity] for activity in bit_of]


def _orders(before: list[int], placed: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of all activities that are not placed yet; `placed` is a set of bits."""
    if placed.bit_count() == len(before):
        yield ()
        return
    for number, needed in enumerate(before):
        if not placed >> number & 1 and not needed & ~placed:
            for following in _orders(before, placed | 1 << number):
                yield number, *following


def brute_force(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate the best of all assignments and orders.

    Raises:
        PlanningError: there are too many plans.
    """
    return simulate(problem, best_of_all(problem))
