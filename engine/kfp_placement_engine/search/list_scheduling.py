"""A plan at once: list scheduling without a search."""

import time
from dataclasses import replace

import numpy as np

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines.heft import heft_placement
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.priorities import priority_rules
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import simulate, simulate_list


def list_schedule(problem: PlacementProblem, warm_start: Placement | None = None) -> Result:
    """The best of HEFT, whose gaps leave reserved room alone, and of one list schedule.

    HEFT knows no latency rules; ruled steps are therefore offered the nodes of least round trip
    only. No randomness is used: the same problem gives the same plan.

    Args:
        problem: the problem.
        warm_start: a plan that is taken if it is better.
    """
    started = time.monotonic()
    if problem.genes == 0:
        placement = Placement(np.zeros(0, np.int64), np.zeros(problem.activities), np.empty(0))
        return Result(placement, simulate(problem, placement), 0, 0, time.monotonic() - started)
    placements = list_placements(problem, warm_start)
    played = [simulate(problem, placement) for placement in placements]
    best = 0
    for number in range(1, len(played)):
        if better(played[number].terms, played[best].terms):
            best = number
    return Result(placements[best], played[best], 0, 0, time.monotonic() - started)


def list_placements(problem: PlacementProblem, warm_start: Placement | None) -> list[Placement]:
    """The plans of which `list_schedule` takes the best."""
    listed = simulate_list(problem, next(iter(priority_rules(problem).values())))
    placements = [
        heft_placement(_near_users(problem)),
        Placement.of_schedule(problem, listed.start, listed.node),
    ]
    return placements if warm_start is None else [*placements, *warm_start.variants]


def _near_users(problem: PlacementProblem) -> PlacementProblem:
    """The problem with ruled steps allowed on the nodes of least round trip only."""
    arrays = problem.arrays
    if not problem.ruled.any():
        return problem
    allowed = arrays.allowed.copy()
    for gene, members in enumerate(problem.gene_activities):
        excess = arrays.latency_excess_ms[arrays.class_of[list(members)]].max(axis=0)
        allowed[gene] &= excess <= excess[allowed[gene]].min()
    return replace(problem, arrays=arrays._replace(allowed=allowed))
