"""Strict first in, first out: the head of the queue blocks."""

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import Schedule, simulate_policy


def fifo(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """As `kube_default`, but a pod that fits nowhere holds up all pods created after it.

    No Kubernetes scheduler does this; published comparisons often do. Ties as in
    `kube_default`. The seed is not used.
    """
    return simulate_policy(problem, native.STRICT_FIFO)
