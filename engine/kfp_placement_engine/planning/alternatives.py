"""A plan with one step on another node, simulated again to compare the two."""

from dataclasses import dataclass

from kfp_placement_engine.model.reasons import Reason, reason
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem, occupied_seconds
from kfp_placement_engine.problem.schedule import Schedule, completions
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.simulation import simulate

ALTERNATIVES_WORK = 50_000_000
"""Work to spend on trying other nodes, about half a second; beyond it losses are estimated."""

_EQUAL_SECONDS = 1e-6
"""Largest difference of two ends that counts as none."""


@dataclass(frozen=True)
class MovedStep:
    """The plan with one step on another node.

    Attributes:
        node: index of the node.
        schedule: schedule of the plan with the step there.
    """

    node: int
    schedule: Schedule


def move_step(
    problem: PlacementProblem, placement: Placement, activity: int, node: int
) -> MovedStep:
    """Simulate the placement with the activity's gene on another node."""
    nodes = placement.gene_nodes.copy()
    nodes[problem.arrays.gene[activity]] = node
    return MovedStep(node, simulate(problem, Placement(nodes, placement.priority)))


def seconds_on_nodes(problem: PlacementProblem, activity: int) -> Floats:
    """Return [N] the seconds of download, run and upload of the activity on each node."""
    seconds: Floats = occupied_seconds(problem.arrays, [activity], slice(None))[0]
    return seconds


def reason_against(
    problem: PlacementProblem, schedule: Schedule, activity: int, others: list[MovedStep]
) -> Reason:
    """Return the reason for the activity's node, and against the others.

    Args:
        problem: problem that was planned.
        schedule: schedule of the plan.
        activity: activity of the step.
        others: plans with the step on other nodes, at least one.
    """
    latency = float(schedule.terms[1])
    allowed = [other for other in others if other.schedule.terms[1] <= latency + 1e-9]
    if not allowed:
        return reason("keeps-room")
    run = int(problem.arrays.run[activity])

    def end(schedule: Schedule) -> float:
        return float(completions(problem, schedule)[run])

    best = min(allowed, key=lambda other: end(other.schedule))
    later = end(best.schedule) - end(schedule)
    if later > _EQUAL_SECONDS:
        return reason("run-later", seconds=later, node=best.node)
    if later < -_EQUAL_SECONDS:
        return reason("found-in-time", seconds=-later, node=best.node)
    latest = end(schedule) + _EQUAL_SECONDS
    equal = [other for other in allowed if end(other.schedule) <= latest]
    return _among_equals(problem, schedule, activity, equal)


def _among_equals(
    problem: PlacementProblem, schedule: Schedule, activity: int, equal: list[MovedStep]
) -> Reason:
    own = float(schedule.end[activity])
    soonest = min(equal, key=lambda other: float(other.schedule.end[activity]))
    later = float(soonest.schedule.end[activity]) - own
    if later > _EQUAL_SECONDS:
        return reason("ends-first", seconds=later, node=soonest.node)
    preferred = all(better(schedule.terms, other.schedule.terms) for other in equal)
    return reason(
        "equal-end",
        objective=problem.objective if preferred else "",
        node=equal[0].node,
        other=equal[1].node if len(equal) > 1 else None,
    )
