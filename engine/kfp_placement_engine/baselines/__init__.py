"""What plans are compared with: one file, one way of deciding, the same call.

A baseline takes a problem (and a seed) and returns the `Schedule` it leads to, played by the same
simulation as every plan. `BASELINES` names them.
"""

from collections.abc import Callable

from kfp_placement_engine.baselines.brute_force import brute_force
from kfp_placement_engine.baselines.fifo import fifo
from kfp_placement_engine.baselines.heft import heft
from kfp_placement_engine.baselines.kube_default import kube_default
from kfp_placement_engine.baselines.random_placement import random_placement
from kfp_placement_engine.problem import PlacementProblem
from kfp_placement_engine.simulation import Schedule

BASELINES: dict[str, Callable[[PlacementProblem, int], Schedule]] = {
    "kube-default": kube_default,
    "heft": heft,
    "fifo": fifo,
    "random": random_placement,
    "brute-force": brute_force,
}
"""Name -> baseline; the arguments are the problem and a seed (used by `random` alone)."""

__all__ = ["BASELINES", "brute_force", "fifo", "heft", "kube_default", "random_placement"]
