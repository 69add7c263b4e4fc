"""A short search that starts from a plan: for many problems that differ little from each other."""

import time
from dataclasses import replace
from itertools import islice

import numpy as np

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.genetic import candidates_of, seeds_of
from kfp_placement_engine.search.island import Island
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate, Result, best_of
from kfp_placement_engine.search.solve import is_tiny, solve
from kfp_placement_engine.search.stop import MaxGenerations

POPULATION = 8
"""Plans at work at a time; a warm start and few trials need only these."""

_SCORING = 8
"""Scoring a node costs this many times what looking at one costs (measured: 4 to 9)."""

_SEEDS = 2
"""Of the plans that any search starts from: kube-default's, a list schedule's and HEFT's."""


def refine(
    problem: PlacementProblem,
    warm_start: Placement,
    work: int,
    seed: int = 0,
    params: GeneticParams | None = None,
) -> Result:
    """A plan no worse than the given one; the best of all where they are few enough to try.

    It looks at no clock and uses one thread: the same problem, start, work and seed give the same
    plan.

    Args:
        problem: the problem.
        warm_start: a plan of it.
        work: how much to spend on other plans, as `trial_work` counts it.
        seed: of the random generator.
        params: of the search; the size of its populations and their number are not used.
    """
    params = params or GeneticParams()
    started = time.monotonic()
    if problem.genes == 0 or is_tiny(problem, params.exact_below):
        return solve(problem, MaxGenerations(0), seed, params, warm_start)
    candidates = candidates_of(problem, warm_start)
    for more in islice(seeds_of(problem, seed), _SEEDS):
        candidates += more
    candidates.append(_bred(problem, candidates, params, work // trial_work(problem), seed))
    best = best_of(candidates)
    return Result(best.placement, best.schedule, 0, seed, time.monotonic() - started)


def trial_work(problem: PlacementProblem) -> int:
    """What one trial costs: `simulation_work`, and what pods cost that kube-scheduler places.

    Those, such as KFP's drivers, are scored on every node, whereas a step goes to the node that its
    gene names. Searches of the same work then take about as long for runs with and without drivers.
    """
    arrays = problem.arrays
    scored = int(((arrays.gene < 0) & (arrays.fixed_node < 0)).sum())
    return problem.simulation_work + _SCORING * problem.nodes * scored


def _bred(
    problem: PlacementProblem,
    parents: list[Candidate],
    params: GeneticParams,
    trials: int,
    seed: int,
) -> Candidate:
    """The best of this many plans bred from those that hold no starts."""
    free = [each for each in parents if not each.placement.not_before.size]
    free.sort(key=lambda candidate: tuple(candidate.schedule.terms))
    state = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    island = Island(problem, replace(params, population_size=POPULATION), 0, state)
    island.start(free)
    island.improve(trials)
    return Candidate.of(problem, island.best.placement)
