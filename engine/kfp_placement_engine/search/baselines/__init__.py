"""Baselines: other ways of placing a run, with which plans are compared.

A baseline takes a problem and a seed and returns the `Schedule` that it leads to, by the same
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
    """Simulate the run under kube-scheduler's stock profile.

    Pods are offered in order of creation; one that fits nowhere is skipped and tried again when
    something ends. Scores are TaintToleration, NodeAffinity, NodeResourcesFit, BalancedAllocation
    (by `problem.kube_version`) and ImageLocality; PodTopologySpread and InterPodAffinity skip the
    pods of a pipeline. Ties fall as the nodes are listed; `tie_breaks` has other ways. The seed is
    not used.
    """
    return simulate_policy(problem, native.KUBE_DEFAULT)


def fifo(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate strict order of creation: a pod that fits nowhere holds up all pods after it.

    No Kubernetes scheduler does this; published comparisons often do. Otherwise the same as
    `kube_default`.
    """
    return simulate_policy(problem, native.STRICT_FIFO)


BASELINES: dict[str, Callable[[PlacementProblem, int], Schedule]] = {
    "kube-default": kube_default,
    "heft": heft,
    "fifo": fifo,
    "random": random_placement,
    "brute-force": brute_force,
}
"""Name -> baseline; the arguments are the problem and a seed, which only `random` uses."""

_TIED_POLICIES = {"kube-default": native.KUBE_DEFAULT, "fifo": native.STRICT_FIFO}
"""Name -> policy, of the baselines in which kube-scheduler breaks ties."""


def schedules_of(name: str, problem: PlacementProblem, seed: int = 0) -> list[Schedule]:
    """Return the schedules that a baseline may lead to, one for each tie-break.

    The first is that of `BASELINES`.
    """
    if name in _TIED_POLICIES:
        return simulate_ties(problem, _TIED_POLICIES[name], seed)
    return [BASELINES[name](problem, seed)]
