"""What plans are compared with: one file, one way of deciding, the same call.

A baseline takes a problem (and a seed) and returns the `Schedule` it leads to, played by the same
simulation as every plan. `BASELINES` names them.
"""

from collections.abc import Callable

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines.brute_force import brute_force
from kfp_placement_engine.search.baselines.heft import heft
from kfp_placement_engine.search.baselines.random_placement import random_placement
from kfp_placement_engine.search.baselines.tie_breaks import simulate_ties
from kfp_placement_engine.search.simulation import Schedule, simulate_policy


def kube_default(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """What kube-scheduler's stock profile would do with the run.

    Pods are offered in order of creation; one that fits nowhere is skipped and tried again when
    something ends. Scores are TaintToleration, NodeAffinity, NodeResourcesFit, BalancedAllocation
    (by `problem.kube_version`) and ImageLocality; PodTopologySpread and InterPodAffinity skip the
    pods of a pipeline. Ties fall as the nodes are listed; `tie_breaks` has other ways. The seed is
    not used.
    """
    return simulate_policy(problem, native.KUBE_DEFAULT)


def fifo(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """As `kube_default`, but a pod that fits nowhere holds up all pods created after it.

    No Kubernetes scheduler does this; published comparisons often do. Ties as in
    `kube_default`. The seed is not used.
    """
    return simulate_policy(problem, native.STRICT_FIFO)


BASELINES: dict[str, Callable[[PlacementProblem, int], Schedule]] = {
    "kube-default": kube_default,
    "heft": heft,
    "fifo": fifo,
    "random": random_placement,
    "brute-force": brute_force,
}
"""Name -> baseline; the arguments are the problem and a seed (used by `random` alone)."""

_TIED_POLICIES = {"kube-default": native.KUBE_DEFAULT, "fifo": native.STRICT_FIFO}
"""Policy of the baselines in which kube-scheduler breaks ties."""


def schedules_of(name: str, problem: PlacementProblem, seed: int = 0) -> list[Schedule]:
    """What a baseline may lead to: a schedule for each tie-break, first that of `BASELINES`."""
    if name in _TIED_POLICIES:
        return simulate_ties(problem, _TIED_POLICIES[name], seed)
    return [BASELINES[name](problem, seed)]
