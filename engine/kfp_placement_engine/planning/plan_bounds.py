"""Lower bounds for runs that are planned together, and searches that stop at them."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kfp_placement_engine.bounds.effort import IN_A_PLAN
from kfp_placement_engine.bounds.lower_bound import critical_path_bounds, lower_bound
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.comparison import Bounds
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.refine import refine
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.stop import AnyOf, BoundReached, StoppingCriterion

_ORDERED_WORK = 3_000_000
"""Work of the search for the gain if steps could wait, as `trial_work` counts it: some 40 ms."""


def search_stop(
    problem: PlacementProblem, options: PlanOptions, bounds: Bounds
) -> StoppingCriterion:
    """Return the options' criterion, and the bound's if the objective is to complete early.

    A number of generations must give the same plan on every machine. So a bound that needs an
    optional solver does not stop such a search.
    """
    is_repeatable = options.generations is not None
    needs_solver = any(bound.needs_solver for bound in bounds)
    if not problem.is_completion_first or (is_repeatable and needs_solver):
        return options.stop()
    return AnyOf((options.stop(), _bound_reached(problem, bounds)))


def _bound_reached(problem: PlacementProblem, bounds: Bounds) -> BoundReached:
    """Return a criterion that holds once no plan that keeps the latency rules can end earlier."""
    arrays = problem.arrays
    kept = arrays._replace(feasible=arrays.feasible & (arrays.latency_excess_ms <= 0))
    paths = critical_path_bounds(replace(problem, arrays=kept), len(bounds))
    ends = np.zeros(arrays.run_weight.size)
    # Reserved runs are behind the others; they may end later than reserved, but not earlier.
    np.maximum.at(ends, arrays.run, arrays.release_seconds + arrays.duration_seconds)
    pairs = zip(bounds, paths, strict=True)
    ends[: len(bounds)] = [max(bound.seconds, path.seconds) for bound, path in pairs]
    return BoundReached(float(arrays.run_weight @ ends))


def ordered_makespan(
    problem: PlacementProblem, options: PlanOptions, result: Result, bounds: Bounds
) -> float | None:
    """Return the makespan that a short search finds if steps may wait for their node, or None.

    The search starts from the plan and does not look at a clock, so that its result is always the
    same. It is left out where waiting cannot help, for example at the bound.
    """
    is_ready = problem.genes and problem.dispatch == "ready" and len(bounds) == 1
    is_comparable = problem.is_completion_first and not problem.unplaceable.any()
    if not (options.limits and is_ready and is_comparable) or options.quick:
        return None
    if _bound_reached(problem, bounds).is_reached(result.schedule.terms):
        return None
    ordered = replace(problem, dispatch="ordered")
    present = Placement.of_schedule(ordered, result.schedule.start, result.schedule.node)
    refined = refine(ordered, present, _ORDERED_WORK, options.seed, options.params)
    return refined.schedule.makespan_seconds


def bounds_of(
    problem: PlacementProblem, runs: int, schedules: Sequence[Schedule], *, quick: bool = False
) -> Bounds:
    """Return a lower bound for each run, never above the makespan of a given schedule."""
    if runs > 1 or quick:
        return critical_path_bounds(problem, runs)
    # Schedules may contain reserved rooms as well, which are behind the run's own activities.
    ends = [
        float(each.end[: problem.activities][each.awaited[: problem.activities]].max(initial=0.0))
        for each in schedules
        if each.finished.all()
    ]
    return (lower_bound(problem, min(ends, default=math.inf), IN_A_PLAN),)
