"""The baseline HEFT: heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002)."""

from dataclasses import replace

import numpy as np

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.simulation import Schedule, simulate


def heft_placement(problem: PlacementProblem) -> Placement:
    """Return HEFT's nodes in the order of HEFT's own starts; decoded by rank it would be worse."""
    start, node = native.heft(problem)
    return Placement.of_schedule(problem, np.where(np.isfinite(start), start, 1e300), node)


def heft(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate HEFT's plan under the problem's dispatch.

    Upward ranks, earliest finish over all nodes, insertion into gaps in which all requested
    resources are free. Under `ready` dispatch no step waits for its node, so the order is lost.
    HEFT does not know limits of loops: where there are some, the order in which its steps start
    without one counts as well, and the better of both is returned. The seed is not used.
    """
    placement = heft_placement(problem)
    schedule = simulate(problem, placement)
    if problem.dispatch != "ordered" or not problem.arrays.loop_parallelism.size:
        return schedule
    # In the order of HEFT's starts, iterations would wait for others that are not admitted yet.
    free = simulate(replace(problem, dispatch="ready"), placement)
    other = simulate(problem, Placement.of_schedule(problem, free.start, free.node))
    return other if better(other.terms, schedule.terms) else schedule
