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
"""Number of plans in the population; a warm start and few trials do not need more."""

_SCORING = 8
"""Cost of scoring a node, as a multiple of the cost of looking at one (measured: 4 to 9)."""

_SEEDS = 2
"""Number of groups of `seeds_of` to start from: kube-default and a list schedule, then HEFT."""


def refine(
    problem: PlacementProblem,
    warm_start: Placement,
    work: int,
    seed: int,
    params: GeneticParams | None,
) -> Result:
    """Return a plan that is not worse than the given one.

    Where there are few enough plans to try them all, it is the best. The search does not look at a
    clock and uses one thread: the same problem, start, work and seed give the same plan.

    Args:
        problem: problem to solve.
        warm_start: plan to start from.
        work: work to spend on other plans, as `trial_work` counts it.
        seed: seed of the random generator.
        params: parameters of the search; size and number of its populations are not used.
    """
    params = params or GeneticParams()
    started = time.monotonic()
    if problem.genes == 0 or is_tiny(problem, params.exact_below):
        # The paper's search would not look at the given plan.
        params = replace(params, variant="memetic")
        return solve(problem, MaxGenerations(0), seed, params, warm_start)
    candidates = candidates_of(problem, warm_start)
    for more in islice(seeds_of(problem, seed), _SEEDS):
        candidates += more
    candidates.append(_bred(problem, candidates, params, work // trial_work(problem), seed))
    best = best_of(candidates)
    return Result(best.placement, best.schedule, 0, seed, time.monotonic() - started)


def trial_work(problem: PlacementProblem) -> int:
    """Return the work of one trial: `simulation_work`, and the scoring of pods without a gene.

    kube-scheduler places such pods, for example KFP's drivers, and scores them on every node,
    whereas a step goes to the node that its gene names. With this, searches of the same work take
    about as long for runs with and without drivers.
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
    """Return the best of this many plans bred from the parents that do not hold starts."""
    free = [each for each in parents if not each.placement.not_before.size]
    free.sort(key=lambda candidate: tuple(candidate.schedule.terms))
    state = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    island = Island(problem, replace(params, population_size=POPULATION), 0, state)
    island.start(free)
    island.improve(trials)
    return Candidate.of(problem, island.best.placement)
