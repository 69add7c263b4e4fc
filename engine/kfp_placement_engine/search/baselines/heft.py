"""HEFT (Topcuoglu, Hariri, Wu 2002): heterogeneous earliest finish time."""

import numpy as np

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import Schedule, simulate


def heft_placement(problem: PlacementProblem) -> Placement:
    """HEFT's nodes in the order of HEFT's own starts; decoded by rank it would be worse."""
    start, node = native.heft(problem)
    return Placement.of_schedule(problem, np.where(np.isfinite(start), start, 1e300), node)


def heft(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """HEFT's plan, played under the problem's dispatch.

    Upward ranks, earliest finish over all nodes, insertion into gaps in which all requested
    resources are free. Under `ready` dispatch no step waits for its node, so the order is lost.
    The seed is not used.
    """
    return simulate(problem, heft_placement(problem))
