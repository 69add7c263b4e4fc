"""The default scheduler, strict or not: the same run, simulated with many tie-breaks.

kube-scheduler does not know node speeds, so among nodes of equal score it may take a quick or a
slow one. Since 1.35 this depends on the order in which it happens to list the nodes
(schedule_one.go, newSortedNodeScores); until 1.34 it drew one at random. A figure of one order
would say little about the others.
"""

import itertools
import math

import numpy as np

from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import AS_LISTED, Schedule, TieBreak
from kfp_placement_engine.search.simulation import simulate_policy

POLICIES = {"kube-default": Policy.KUBE_DEFAULT, "fifo": Policy.STRICT_FIFO}
"""Name -> policy, of the baselines in which kube-scheduler breaks ties."""

FEW_NODES = 4
MOST_TIE_BREAKS = math.factorial(FEW_NODES)
"""Largest number of orders or draws that are simulated: all orders of a few nodes."""

TIE_BREAK_WORK = 10_000_000
"""Work of all tie-breaks together (`PlacementProblem.simulation_work`): about 0.15 s."""


def kube_default(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate the run under kube-scheduler's stock profile.

    Pods are offered in order of creation; one that fits nowhere is skipped and tried again when
    something ends. Scores are TaintToleration, NodeAffinity, NodeResourcesFit, BalancedAllocation
    (by `problem.kube_version`) and ImageLocality; PodTopologySpread and InterPodAffinity skip the
    pods of a pipeline. Ties fall as the nodes are listed; `tie_breaks` has other ways.
    """
    return simulate_policy(problem, Policy.KUBE_DEFAULT)


def fifo(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate strict order of creation: a pod that fits nowhere holds up all pods after it.

    No Kubernetes scheduler does this; published comparisons often do. Otherwise the same as
    `kube_default`.
    """
    return simulate_policy(problem, Policy.STRICT_FIFO)


def tie_breaks(problem: PlacementProblem, seed: int) -> list[TieBreak]:
    """Return tie-breaks; the first is the one that plans use.

    With one node there is no other. With few, all orders are taken if the problem is small enough;
    otherwise orders are drawn, and one may come more than once.

    Args:
        problem: problem; the larger it is, the fewer tie-breaks, down to one.
        seed: seed of the orders or draws, where not all orders are taken.
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


def simulate_ties(problem: PlacementProblem, policy: Policy, seed: int) -> list[Schedule]:
    """Simulate a policy of the default scheduler under each of the `tie_breaks`."""
    return [simulate_policy(problem, policy, ties) for ties in tie_breaks(problem, seed)]
