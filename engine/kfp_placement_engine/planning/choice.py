"""Which of a search's best plans is handed out: the one that ends first with times as they may be.

A search compares plans on typical run times. Two plans that are equal there are not equal in a run,
where each step takes longer or shorter: the end is the latest of many, and a plan in which more of
them come close to it ends later. So the best few are played with the same samples.
"""

from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.planning.promises import say_defect
from kfp_placement_engine.planning.remaining_times import remaining_durations
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.fitness import RELATIVE_MARGIN
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import simulate_durations

CANDIDATES = 8
"""Plans that are played, the search's best included."""

SAMPLES = 40
_WORK = 50_000_000
"""At most, as `simulation_work` counts it: half a second. Of runs with more than some thousand
steps the search's best plan is taken as it is."""

_STREAM = 1
"""The samples of promises are others: a promise is not of the samples by which it was chosen."""


def others_wanted(lowered: Lowered) -> int:
    """How many plans besides its best the search is to hand out.

    None where nothing is known of how long steps may take, or where to play them takes too long.
    """
    if not any(run.forecast is not None and run.forecast.steps for run in lowered.runs):
        return 0
    affordable = _WORK // (SAMPLES * lowered.problem.simulation_work)
    return max(0, min(CANDIDATES, affordable) - 1)


def chosen_by_samples(lowered: Lowered, result: Result) -> Result:
    """The search's result with that of its plans which ends first on average.

    The best on typical run times wins ties. So it does where nothing else was found, or steps are
    left without a node.

    Args:
        lowered: the problem and what it was made from.
        result: of the search; its other plans are no worse in what counts before completions.
    """
    if not result.others or not result.schedule.finished.all():
        return result
    try:
        return _first_on_average(lowered, result)
    except Exception as error:
        say_defect(f"the plan that is best on typical run times is taken: {error!s:.200}")
        return result


def _first_on_average(lowered: Lowered, result: Result) -> Result:
    random = np.random.default_rng((result.seed, _STREAM))
    durations = remaining_durations(lowered, SAMPLES, random)
    best, least = None, _mean_end(lowered.problem, result.placement, durations)
    for candidate in result.others:
        mean = _mean_end(lowered.problem, candidate.placement, durations)
        if mean < least - RELATIVE_MARGIN * max(1.0, least):
            best, least = candidate, mean
    if best is None:
        return result
    return replace(result, placement=best.placement, schedule=best.schedule)


def _mean_end(problem: PlacementProblem, placement: Placement, durations: Floats) -> float:
    """Mean of what the plan is to keep small: completions by weight, or the latest end."""
    _, ends = simulate_durations(problem, placement, durations)
    runs, weight = problem.arrays.run, problem.arrays.run_weight
    if problem.objective == "makespan" or not weight.any():
        return float(ends.max(axis=1).mean())
    completions = [
        ends[:, runs == run].max(axis=1, initial=0.0).mean() for run in range(weight.size)
    ]
    return float(weight @ completions)
