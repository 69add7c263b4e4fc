"""Baselines: other ways of placing a run, with which plans are compared.

A baseline takes a problem and a seed, which only `random` uses, and returns the `Schedule` that it
leads to, by the same simulation as every plan. `BASELINES` names them.
"""

from collections.abc import Callable

from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.baselines.brute_force import brute_force
from kfp_placement_engine.search.baselines.default_scheduler import (
    POLICIES,
    fifo,
    kube_default,
    simulate_ties,
)
from kfp_placement_engine.search.baselines.heft import heft
from kfp_placement_engine.search.baselines.random_placement import random_schedule

BASELINES: dict[str, Callable[[PlacementProblem, int], Schedule]] = {
    "kube-default": kube_default,
    "heft": heft,
    "fifo": fifo,
    "random": random_schedule,
    "brute-force": brute_force,
}
"""Name -> baseline."""


def schedules_of(name: str, problem: PlacementProblem, seed: int = 0) -> list[Schedule]:
    """Return the schedules that a baseline may lead to, one for each tie-break.

    The first is that of `BASELINES`.
    """
    if name in POLICIES:
        return simulate_ties(problem, POLICIES[name], seed)
    return [BASELINES[name](problem, seed)]
