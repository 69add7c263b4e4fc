"""All plans of a tiny run that hold no start back: what everything else is held against."""

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem
from kfp_placement_engine.search.simulation import DISPATCH_POLICIES, Schedule, simulate

MAX_PLANS = 50_000_000
"""More plans than this are refused: it would take minutes."""

_AT_A_TIME = 4096
"""Plans that are played in one call."""

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
    genes, order, _, _ = try_all(problem)
    return Placement(genes, order, np.empty(0))


def try_all(problem: PlacementProblem) -> tuple[Integers, Floats, Floats, int]:
    """Best [G] nodes, [A] order and [5] terms over all plans, and the number of plans."""
    choices = [np.flatnonzero(row) for row in problem.arrays.allowed]
    assignments = math.prod(map(len, choices))
    best = np.zeros(problem.genes, np.int64), np.zeros(problem.activities)
    terms, played = np.full(native.TERMS, np.inf), 0
    policy = DISPATCH_POLICIES[problem.dispatch]
    for keys in _all_keys(problem, max(1, _AT_A_TIME // assignments)):
        for first in range(0, assignments, _AT_A_TIME):
            genes = _genes(choices, np.arange(first, min(first + _AT_A_TIME, assignments)))
            found = native.best_of(problem, policy, genes, keys, terms)
            if found >= 0:
                best = genes[found % len(genes)], keys[found // len(genes)]
            played += len(genes) * len(keys)
    return *best, terms, played


def _genes(choices: list[Integers], numbers: Integers) -> Integers:
    """[P, G] the assignments with these numbers."""
    genes = np.empty((numbers.size, len(choices)), np.int64)
    for gene in reversed(range(len(choices))):
        numbers, choice = np.divmod(numbers, choices[gene].size)
        genes[:, gene] = choices[gene][choice]
    return genes


def _all_keys(problem: PlacementProblem, at_a_time: int) -> Iterator[Floats]:
    """[at a time, A] the orders that respect the precedences; one of zeros if none is kept."""
    if problem.dispatch != "ordered":
        yield np.zeros((1, problem.activities))
        return
    deciders = np.flatnonzero(problem.arrays.gene >= 0)
    orders = _orders(_deciders_before(problem, deciders), 0)
    while some := list(islice(orders, at_a_time)):
        keys = np.zeros((len(some), problem.activities))
        rows = np.arange(len(some))[:, None]
        keys[rows, deciders[np.array(some, np.int64)]] = np.arange(deciders.size)
        yield keys


def _deciders_before(problem: PlacementProblem, deciders: Integers) -> list[int]:
    """For each decider those that must come before it, as bits."""
    bit_of = {activity: 1 << number for number, activity in enumerate(deciders.tolist())}
    before = [0] * problem.activities
    for activity in problem.topological.tolist():
        for each in problem.arrays.before(activity).tolist():
            before[activity] |= before[each] | bit_of.get(each, 0)
    return [before[activity] for activity in bit_of]


def _orders(before: list[int], placed: int) -> Iterator[tuple[int, ...]]:
    """How those that are not placed yet, as bits, can follow."""
    if placed.bit_count() == len(before):
        yield ()
        return
    for number, needed in enumerate(before):
        if not placed >> number & 1 and not needed & ~placed:
            for following in _orders(before, placed | 1 << number):
                yield number, *following


def brute_force(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """The best by trying every assignment and order. The seed is not used.

    Raises:
        PlanningError: there are too many plans.
    """
    return simulate(problem, best_of_all(problem))
