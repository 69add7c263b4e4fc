"""The baseline HEFT: heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002)."""

from dataclasses import replace

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.simulation import simulate


def heft_placement(problem: PlacementProblem) -> Placement:
    """Return HEFT's placement: its nodes, with steps in the order in which HEFT starts them.

    In the order of the upward ranks, the schedule would be worse.
    """
    start, node = native.heft(problem)
    return Placement.of_schedule(problem, start, node)


def heft(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate HEFT's plan under the problem's dispatch.

    HEFT takes the steps by upward rank and puts each on the node where it finishes first, also in
    a gap between other steps if all requested resources are free there. Under `ready` dispatch only
    its nodes count: a step that is ready does not wait for its turn.

    HEFT does not know limits of how much is under way at once. Under `ordered` dispatch of a run
    with such limits, the order in which the steps start under `ready` dispatch is simulated too,
    and the better schedule is returned.
    """
    placement = heft_placement(problem)
    schedule = simulate(problem, placement)
    if problem.dispatch != "ordered" or not problem.arrays.limit_most.size:
        return schedule
    # In HEFT's own order, iterations would wait for others that their loop has not let in yet.
    free = simulate(replace(problem, dispatch="ready"), placement)
    other = simulate(problem, Placement.of_schedule(problem, free.start, free.node))
    return other if better(other.terms, schedule.terms) else schedule
