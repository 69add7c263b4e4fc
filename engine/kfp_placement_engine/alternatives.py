"""What if a step went elsewhere: the plan is played again with the step on other nodes."""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.contract.quantities import format_duration
from kfp_placement_engine.fitness import better
from kfp_placement_engine.placement import Placement
from kfp_placement_engine.problem import PlacementProblem
from kfp_placement_engine.simulation import Schedule, simulate

_EQUAL_SECONDS = 1e-6
"""Ends that differ by less are the same."""

_DECIDING = {
    "completion": "this uses the nodes more evenly",
    "packing": "this uses fewer nodes",
    "paper": "Eq. (1) of the paper values this more",
}
"""What the objective's other term says of a node that ends the run at the same time."""


@dataclass(frozen=True)
class Alternative:
    """The plan with one step on another node.

    Attributes:
        node: name of the node.
        schedule: what it leads to.
    """

    node: str
    schedule: Schedule


def moved(problem: PlacementProblem, placement: Placement, activity: int, node: int) -> Alternative:
    """Play the placement with the activity's gene on another node."""
    nodes = placement.gene_nodes.copy()
    nodes[problem.arrays.gene[activity]] = node
    played = simulate(problem, Placement(nodes, placement.priority, np.empty(0)))
    return Alternative(problem.node_names[node], played)


def compared(
    problem: PlacementProblem, schedule: Schedule, activity: int, others: list[Alternative]
) -> str:
    """What speaks for the activity's node against others, in one sentence.

    Args:
        problem: the problem.
        schedule: the plan's schedule.
        activity: the step's activity.
        others: the plan with the step on other nodes, at least one.
    """
    latency = float(schedule.terms[1])
    allowed = [other for other in others if other.schedule.terms[1] <= latency + 1e-9]
    if not allowed:
        return "elsewhere it would take the room of a step that should be near its users"
    best = min(allowed, key=lambda other: other.schedule.makespan_seconds)
    later = best.schedule.makespan_seconds - schedule.makespan_seconds
    if later > _EQUAL_SECONDS:
        text = format_duration(later)
        return f"the run would end {text} later with this step on {best.node}, the next best"
    if later < -_EQUAL_SECONDS:
        earlier = format_duration(-later)
        return f"found in the time given; {best.node} alone would end the run {earlier} earlier"
    equal = [
        other
        for other in allowed
        if other.schedule.makespan_seconds <= schedule.makespan_seconds + _EQUAL_SECONDS
    ]
    return _among_equals(problem, schedule, activity, equal)


def _among_equals(
    problem: PlacementProblem, schedule: Schedule, activity: int, equal: list[Alternative]
) -> str:
    own = float(schedule.end[activity])
    soonest = min(equal, key=lambda other: float(other.schedule.end[activity]))
    later = float(soonest.schedule.end[activity]) - own
    if later > _EQUAL_SECONDS:
        return f"ends first here, {format_duration(later)} later on {soonest.node}"
    names = " or ".join(other.node for other in equal[:2])
    preferred = all(better(schedule.terms, other.schedule.terms) for other in equal)
    why = _DECIDING[problem.objective] if preferred else "nothing speaks against those nodes"
    return f"the run ends no earlier with it on {names}; {why}"
