"""What plans are compared with: one file, one way of deciding, the same call.

A baseline takes a problem (and a seed) and returns the `Schedule` it leads to, played by the same
simulation as every plan. `BASELINES` names them.
"""

from collections.abc import Callable

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines.brute_force import brute_force
from kfp_placement_engine.search.baselines.fifo import fifo
from kfp_placement_engine.search.baselines.heft import heft
from kfp_placement_engine.search.baselines.kube_default import kube_default
from kfp_placement_engine.search.baselines.random_placement import random_placement
from kfp_placement_engine.search.baselines.tie_breaks import simulate_ties
from kfp_placement_engine.search.simulation import Schedule

BASELINES: dict[str, Callable[[PlacementProblem, int], Schedule]] = {
    "kube-default": kube_default,
    "heft": heft,
    "fifo": fifo,
    "random": random_placement,
    "brute-force": brute_force,
}
"""Name -> baseline; the arguments are the problem and a seed (used by `random` alone)."""

TIED_POLICIES = {"kube-default": native.KUBE_DEFAULT, "fifo": native.STRICT_FIFO}
"""Policy of the baselines in which kube-scheduler breaks ties."""


def schedules_of(name: str, problem: PlacementProblem, seed: int = 0) -> list[Schedule]:
    """What a baseline may lead to: a schedule for each tie-break, first that of `BASELINES`."""
    if name in TIED_POLICIES:
        return simulate_ties(problem, TIED_POLICIES[name], seed)
    return [BASELINES[name](problem, seed)]


__all__ = [
    "BASELINES",
    "TIED_POLICIES",
    "brute_force",
    "fifo",
    "heft",
    "kube_default",
    "random_placement",
    "schedules_of",
]
