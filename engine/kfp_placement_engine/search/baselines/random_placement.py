"""The baseline of random nodes: a run without any planning."""

import numpy as np

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.simulation import simulate


def random_placement(problem: PlacementProblem, seed: int) -> Placement:
    """Draw a random allowed node for every gene; steps are in the order of the run."""
    rng = np.random.default_rng(seed)
    draws = np.where(problem.arrays.allowed, rng.random(problem.arrays.allowed.shape), -1.0)
    nodes = draws.argmax(axis=1).astype(np.int64) if problem.genes else np.zeros(0, np.int64)
    return Placement(nodes, problem.places.astype(np.float64))


def random_schedule(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """Simulate `random_placement`."""
    return simulate(problem, random_placement(problem, seed))
