"""List scheduling: a plan at once, without a search."""

import time
from dataclasses import replace

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines.heft import heft_placement
from kfp_placement_engine.search.priorities import priority_rules
from kfp_placement_engine.search.result import Candidate, Result, best_of, undecided
from kfp_placement_engine.search.simulation import simulate_list


def list_schedule(problem: PlacementProblem, warm_start: Placement | None = None) -> Result:
    """Return the better of two plans: HEFT's, whose gaps avoid reserved room, and a list schedule.

    HEFT does not know latency rules, so it is offered only the nodes of least round trip for ruled
    steps. Nothing is random: the same problem gives the same plan.

    Args:
        problem: problem to solve.
        warm_start: plan that is returned if it is better, or None.
    """
    started = time.monotonic()
    if problem.genes:
        placements = list_placements(problem, warm_start)
        best = best_of(Candidate.of(problem, placement) for placement in placements)
    else:
        best = undecided(problem)
    return Result(best.placement, best.schedule, 0, 0, time.monotonic() - started)


def list_placements(problem: PlacementProblem, warm_start: Placement | None) -> list[Placement]:
    """Return the plans of which `list_schedule` takes the best."""
    listed = simulate_list(problem, next(iter(priority_rules(problem).values())))
    placements = [
        heft_placement(_near_users(problem)),
        Placement.of_schedule(problem, listed.start, listed.node),
    ]
    return placements if warm_start is None else [*placements, *warm_start.variants]


def _near_users(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem with ruled steps allowed only on the nodes of least round trip."""
    arrays = problem.arrays
    if not problem.ruled.any():
        return problem
    allowed = arrays.allowed.copy()
    for gene, members in enumerate(problem.gene_activities):
        excess = arrays.latency_excess_ms[arrays.class_of[list(members)]].max(axis=0)
        allowed[gene] &= excess <= excess[allowed[gene]].min()
    return replace(problem, arrays=arrays._replace(allowed=allowed))
