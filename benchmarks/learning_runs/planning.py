"""Value of plans in runs as they really go, with times by history or 60 s for each step.

Steps vary little, some, or much. Ten runs are seen, then one is planned with 60 s for all, and on
learned times. Both plans are simulated with many runs as they may really be, beside kube-default.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.learning_runs.simulated_run import past_steps
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.wfinstances import CLUSTERS, FOLDER, instance_files, slot_run
from kfp_placement_engine import Cluster, PlacementProblem, RunGraph
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering import LoweringOptions, lower
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.past_runs.learned_times import with_history
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.search.simulation import simulate, simulate_policy
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations

RUNS_SEEN, REAL_RUNS, GENERATIONS = 10, 100, 60
DEVIATIONS = (0.05, 0.2, 0.7)
"""Standard deviations of the logarithm of run times, of which each task has one."""

DISPATCHES = ("ready", "ordered")

_SIZES = ((40, 6), (60, 6), (80, 6), (100, 9), (150, 9), (200, 12))
_SHAPES = (
    *(Shape("kfp", steps, nodes, seed) for steps, nodes in _SIZES for seed in (0, 1)),
    Shape("workflow", 30, 3),
    Shape("workflow", 60, 6),
    Shape("workflow", 120, 9),
)
_LEAST_STEPS, _MOST_STEPS, _TYPICAL_SECONDS = 30, 130, 4.0
"""Recorded runs of this size are planned, if half of their steps take this long or longer."""


@dataclass(frozen=True)
class PlannedCase:
    """One run under one dispatch.

    Attributes:
        case: name of the case.
        dispatch: `ready` or `ordered`.
        steps: number of steps.
        ends: mean end in seconds with 60 s for all, with history, and by kube-default.
    """

    case: str
    dispatch: str
    steps: int
    ends: Mapping[str, float]


def planned_cases(data: Path | None = None) -> Iterator[PlannedCase]:
    """Yield the cases under each dispatch; recorded runs only where their data is."""
    for number, (name, run, cluster) in enumerate(_cases(data)):
        for dispatch in DISPATCHES:
            yield planned_case(name, run, cluster, dispatch, number)


def _cases(data: Path | None) -> Iterator[tuple[str, RunGraph, Cluster]]:
    for shape in _SHAPES:
        name = f"{shape.kind} {shape.steps}, {shape.nodes} nodes, seed {shape.seed}"
        yield name, made_up_run(shape), made_up_cluster(shape)
    runs = ((path.stem, slot_run(path)) for path in _recorded(data))
    for number, (name, run) in enumerate(each for each in runs if _is_planned(each[1])):
        slots = CLUSTERS[number % len(CLUSTERS)]
        yield f"{name.removesuffix('-001')}, {slots.name}", run, slots.cluster()


def _recorded(data: Path | None) -> list[Path]:
    """Return recorded runs of the folder or of the usual one; empty without data."""
    is_there = data is not None and (data / FOLDER).is_dir()
    try:
        return instance_files(data if is_there else None)
    except InputNotFoundError:
        return []


def _is_planned(run: RunGraph) -> bool:
    seconds = [step.duration_seconds or 0.0 for step in run.steps]
    return _LEAST_STEPS <= len(seconds) <= _MOST_STEPS and median(seconds) >= _TYPICAL_SECONDS


def planned_case(
    name: str,
    run: RunGraph,
    cluster: Cluster,
    dispatch: str,
    seed: int,
    generations: int = GENERATIONS,
) -> PlannedCase:
    """One case; everything that is drawn is drawn from the seed."""
    random, options = np.random.default_rng(seed), LoweringOptions(dispatch=dispatch)
    tasks = dict.fromkeys(step.task for step in run.steps)
    deviations = {task: float(random.choice(DEVIATIONS)) for task in tasks}
    past = Past()
    for number in range(RUNS_SEEN):
        steps = tuple(past_steps(run.name, _really(run, deviations, random).steps))
        past.observe(PastRun(str(number), run.name, datetime.fromtimestamp(number, UTC), steps))
    timeless = (
        replace(step, duration_seconds=None, duration_source=DurationSource.ASSUMED)
        for step in run.steps
    )
    unknown = replace(run, steps=tuple(timeless))
    graphs = {"60 s": unknown, "history": with_history(unknown, past).graph}
    plans = {
        name: solve(lower(graph, cluster, options).problem, MaxGenerations(generations), seed)
        for name, graph in graphs.items()
    }
    real = [
        lower(_really(run, deviations, random), cluster, options).problem for _ in range(REAL_RUNS)
    ]
    ends = {
        name: fmean(simulate(each, plan.placement).makespan_seconds for each in real)
        for name, plan in plans.items()
    }
    ends["kube-default"] = fmean(map(_kube_default, real))
    return PlannedCase(name, dispatch, len(run.steps), ends)


def _really(
    run: RunGraph, deviations: Mapping[str, float], random: np.random.Generator
) -> RunGraph:
    """Return the run with its true times, as they may be."""
    steps = (
        replace(
            step,
            duration_seconds=(step.duration_seconds or 0.0)
            * float(random.lognormal(0, deviations[step.task])),
        )
        for step in run.steps
    )
    return replace(run, steps=tuple(steps))


def _kube_default(problem: PlacementProblem) -> float:
    return simulate_policy(problem, Policy.KUBE_DEFAULT).makespan_seconds
