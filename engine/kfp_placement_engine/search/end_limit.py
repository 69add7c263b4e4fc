"""How late the last of several runs may end, as the seconds that a search is given."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.objective import MakespanWithin
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.genetic import candidates_of, seeds_of
from kfp_placement_engine.search.simulation import Schedule


def within_makespan(
    problem: PlacementProblem, within: MakespanWithin | None, schedules: Iterable[Schedule]
) -> PlacementProblem:
    """The problem with a limit for the latest end, which is fixed before a search begins.

    Where no plan is within the limit, the one that is nearest to it is best.

    Args:
        problem: the problem; where no limit decides anything it is returned as it is.
        within: the limit; None = none.
        schedules: of the plans that the search starts from. A percentage is of the shortest of
            those that leave the fewest steps without a node; a time looks at none.

    Raises:
        PlanningError: a percentage, and no schedule.
    """
    if within is None or not is_limitable(problem):
        return problem
    seconds = within.seconds
    if seconds is None:
        ends = [(float(each.terms[0]), each.makespan_seconds) for each in schedules]
        if not ends:
            raise PlanningError(f"makespanWithin {within.text} of no plan; give at least one plan")
        seconds = min(ends)[1] * (1 + (within.percent or 0.0) / 100)
    return replace(problem, makespan_limit_seconds=seconds)


def is_limitable(problem: PlacementProblem) -> bool:
    """Whether a limit for the latest end can decide: several runs are to complete early."""
    return problem.objective == "completion" and problem.arrays.run_weight.size > 1


def starting_schedules(
    problem: PlacementProblem, seed: int = 0, warm_start: Placement | None = None
) -> Iterator[Schedule]:
    """Schedules of all plans that a search with this seed and warm start begins with."""
    yield from (each.schedule for each in candidates_of(problem, warm_start))
    for candidates in seeds_of(problem, seed):
        yield from (each.schedule for each in candidates)
