"""What the default scheduler's ties come to: the same run, played with many tie-breaks.

kube-scheduler knows no node speeds, so among nodes of equal score it may take a quick or a slow
one. Which one, since 1.35, depends on the order in which it happens to list the nodes
(schedule_one.go, newSortedNodeScores); until 1.34 it drew one at random. A figure for one order
would be a figure of that order.
"""

import itertools
import math

import numpy as np

from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import AS_LISTED, Schedule, TieBreak, simulate_policy

FEW_NODES = 4
MOST_TIE_BREAKS = math.factorial(FEW_NODES)
"""How many orders or draws are played: as many as a few nodes have orders."""

TIE_BREAK_WORK = 10_000_000
"""What all tie-breaks together may cost (`PlacementProblem.simulation_work`): about 0.15 s."""


def tie_breaks(problem: PlacementProblem, seed: int = 0) -> list[TieBreak]:
    """Different tie-breaks, first that under which plans are played; one where there is one node.

    Args:
        problem: the problem; the larger, the fewer tie-breaks, down to one.
        seed: of the orders or draws, where not all orders are taken.
    """
    nodes = problem.nodes
    count = min(MOST_TIE_BREAKS, max(1, TIE_BREAK_WORK // problem.simulation_work))
    if nodes == 1:
        return [AS_LISTED]
    if problem.tie_rule == "random":
        return [AS_LISTED, *(TieBreak(draw=seed + number) for number in range(1, count))]
    if nodes <= FEW_NODES and math.factorial(nodes) <= count:
        return [
            TieBreak(np.array(order, np.int64)) for order in itertools.permutations(range(nodes))
        ]
    rng = np.random.default_rng(seed)
    return [AS_LISTED, *(TieBreak(rng.permutation(nodes)) for _ in range(1, count))]


def simulate_ties(problem: PlacementProblem, policy: int, seed: int = 0) -> list[Schedule]:
    """The schedules of a policy of the default scheduler under each of the `tie_breaks`."""
    return [simulate_policy(problem, policy, ties) for ties in tie_breaks(problem, seed)]
