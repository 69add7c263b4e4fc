"""The solver of placement problems: it tries all plans, or runs a genetic algorithm."""

import os
import time
from itertools import chain

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.plans.progress import GenerationProgress, no_generation_progress
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines.brute_force import best_of_all, count_plans
from kfp_placement_engine.search.genetic import GeneticSearch, candidates_of, seeds_of
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate, Result, best_of, undecided
from kfp_placement_engine.search.stop import MaxRuntime, StoppingCriterion

EXACT_WORK = 10_000_000
"""Plans x work of one simulation up to which all plans are tried; takes well under a second."""


def solve(
    problem: PlacementProblem,
    stop: StoppingCriterion | None = None,
    seed: int = 0,
    params: GeneticParams | None = None,
    warm_start: Placement | None = None,
    *,
    threads: int = 0,
    report: GenerationProgress = no_generation_progress,
) -> Result:
    """Find a good placement.

    The same seed and number of generations give the same plan on any number of threads. The search
    starts from the baselines' schedules, as far as a plan can express them: under `ready` dispatch
    no step can wait, and users of one ReadWriteOnce volume stay together. The result is not worse
    than any of these plans. The paper's search starts from random plans alone.

    Args:
        problem: problem to solve.
        stop: stopping criterion; two seconds unless given. It is asked between generations, so even
            a budget of 0 returns a plan. The paper's search does not support `BoundReached`.
        seed: seed of the random generator, 0 or more.
        params: parameters of the search.
        warm_start: further plan to start from; None = there is none. It is not read by the paper's
            search, nor under `ready` where all plans are tried, as none can be better.
        threads: number of threads, at most one per island; 0 = as many as there are cores.
        report: callback after every generation, for progress.

    Raises:
        PlanningError: a negative seed, or a warm start of another problem where it is read.
    """
    if seed < 0:
        raise PlanningError(f"seed {seed}; it must be 0 or more")
    started = time.monotonic()
    params = params or GeneticParams()
    stop = stop or MaxRuntime(2.0)
    generations = 0
    is_exact = problem.genes == 0 or (
        params.variant != "paper" and is_tiny(problem, params.exact_below)
    )
    if is_exact:
        best = _exact(problem, seed, warm_start) if problem.genes else undecided(problem)
    elif params.variant == "paper":
        from kfp_placement_engine.search.paper_genetic import PaperSearch

        best, generations = PaperSearch(problem, params, seed).run(stop, report)
    else:
        search = GeneticSearch(problem, params, seed, threads or os.cpu_count() or 1)
        best, generations = search.run(stop, warm_start, report)
    seconds = time.monotonic() - started
    return Result(best.placement, best.schedule, generations, seed, seconds, is_exact)


def is_tiny(problem: PlacementProblem, exact_below: int) -> bool:
    """Return whether all plans can be tried: they are few, and this takes no longer than a search.

    Even a large run has few plans where volumes or selectors leave its steps no choice.
    """
    plans = count_plans(problem)
    quick = plans * problem.simulation_work <= EXACT_WORK
    return plans <= exact_below and quick


def _exact(problem: PlacementProblem, seed: int, warm_start: Placement | None) -> Candidate:
    """Return the best of all plans, and under `ordered` of the plans to start from as well.

    Trying all plans never holds a start; the plans to start from may, and can be better for it.
    """
    candidates = [Candidate.of(problem, best_of_all(problem))]
    if problem.dispatch == "ordered":
        candidates += candidates_of(problem, warm_start)
        candidates += chain.from_iterable(seeds_of(problem, seed))
    return best_of(candidates)
