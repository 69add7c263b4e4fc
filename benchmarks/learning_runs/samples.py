"""What it costs to play a run many times with drawn run times; the runs are made up."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from kfp_placement_engine.history.calibration import UNKNOWN
from kfp_placement_engine.planning.sampled_times import drawn_times

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import LoweringOptions, lower
from kfp_placement_engine.model.forecast import CommonFactor, Distribution
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import simulate_durations

SAMPLES, SPREAD, SEED = 200, 0.3, 0
COMMON = CommonFactor(share=0.3)
SHAPES = (Shape("kfp", 100, 20), Shape("kfp", 1000, 20), Shape("kfp", 1000, 100))
DISPATCHES = ("ready", "ordered")


@dataclass(frozen=True)
class SampleCost:
    """CPU time of one thread.

    Attributes:
        steps, nodes: of the run and its cluster.
        dispatch: how it is played.
        samples: how often.
        drawing_seconds, playing_seconds: for all samples.
    """

    steps: int
    nodes: int
    dispatch: str
    samples: int
    drawing_seconds: float
    playing_seconds: float


def sample_costs(progress: Callable[[str], None]) -> list[SampleCost]:
    """Of each shape and dispatch."""
    costs = []
    for shape in SHAPES:
        for dispatch in DISPATCHES:
            progress(f"samples: {shape.steps:,} steps on {shape.nodes} nodes, {dispatch}")
            costs.append(sample_cost(shape, dispatch))
    return costs


def sample_cost(shape: Shape, dispatch: str) -> SampleCost:
    """Of one plan, a list schedule; every step is as uncertain as the others."""
    options = LoweringOptions(dispatch=dispatch)
    problem = lower(made_up_run(shape), made_up_cluster(shape), options).problem
    placement = list_schedule(problem).placement
    durations = problem.arrays.duration_seconds
    distributions = {
        int(activity): Distribution(float(durations[activity]), SPREAD, UNKNOWN)
        for activity in np.flatnonzero((problem.arrays.gene >= 0) & (durations > 0))
    }
    started = time.process_time()
    random, drawn = np.random.default_rng(SEED), np.repeat(durations[None], SAMPLES, axis=0)
    for activity, seconds in drawn_times(distributions, SAMPLES, random, COMMON):
        drawn[:, activity] = seconds
    between = time.process_time()
    simulate_durations(problem, placement, drawn)
    ended = time.process_time()
    return SampleCost(
        shape.steps, shape.nodes, dispatch, SAMPLES, between - started, ended - between
    )
