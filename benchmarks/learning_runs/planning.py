"""What plans are worth in runs as they really go: known by history, or assumed to take 60 s a step.

Steps vary little, some, or much. Ten runs are seen, then one is planned three times: with 60 s for
all, on learned medians, and with the choice by samples. Each plan is played with many runs as they
may really be, the same for all, beside kube-default, HEFT on medians and the lower bound.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
from kfp_placement_engine.planning.choice import chosen_by_samples, others_wanted

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.wfinstances import CLUSTERS, FOLDER, instance_files, slot_run
from kfp_placement_engine import Cluster, PlacementProblem, RunGraph, Step
from kfp_placement_engine.bounds.effort import BoundEffort
from kfp_placement_engine.bounds.lower_bound import lower_bound
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering import Lowered, LoweringOptions, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.history import Observation
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.learned_times import with_history
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.baselines import BASELINES
from kfp_placement_engine.search.simulation import simulate_durations, simulate_policy, slot_starts
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations

RUNS_SEEN, REAL_RUNS, GENERATIONS = 10, 100, 60
DEVIATIONS = (0.05, 0.2, 0.7)
"""Of the logarithm of a task's run times; each task has one of them."""

_NO_PROGRAM = BoundEffort(0, 0, 0)
"""Paths and room alone: there are thousands of runs to bound."""

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
        case: its name.
        dispatch: `ready` or `ordered`.
        steps: how many.
        ends: mean end in seconds, by plan and baseline, and of `bound`.
        differs: samples chose another plan.
    """

    case: str
    dispatch: str
    steps: int
    ends: dict[str, float]
    differs: bool


@dataclass(frozen=True)
class _Case:
    name: str
    run: RunGraph
    cluster: Cluster


def planned_cases(
    progress: Callable[[str], None], data: Path | None = None
) -> Iterator[PlannedCase]:
    """All cases under each dispatch; recorded runs only where their data is."""
    for number, case in enumerate(_cases(data)):
        for dispatch in DISPATCHES:
            progress(f"planning: {case.name}, {dispatch}")
            yield planned_case(case.name, case.run, case.cluster, dispatch, number)


def _cases(data: Path | None) -> Iterator[_Case]:
    for shape in _SHAPES:
        name = f"{shape.kind} {shape.steps}, {shape.nodes} nodes, seed {shape.seed}"
        yield _Case(name, made_up_run(shape), made_up_cluster(shape))
    runs = ((path.stem, slot_run(path)) for path in _recorded(data))
    for number, (name, run) in enumerate(each for each in runs if _is_planned(each[1])):
        slots = CLUSTERS[number % len(CLUSTERS)]
        yield _Case(f"{name.removesuffix('-001')}, {slots.name}", run, slots.cluster())


def _recorded(data: Path | None) -> list[Path]:
    """Those of the folder, else of the usual one; none where there are none."""
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
    random = np.random.default_rng(seed)
    lowering = LoweringOptions(dispatch=dispatch)
    true = lower_runs((ActiveRun("", run),), cluster, lowering)
    deviations = _deviations(run, random)
    graph, past = _without_times(run), Past()
    for _ in range(RUNS_SEEN):
        past.steps.observe(_observed(run, deviations, random))
    learned = with_history(graph, past)
    known = (ActiveRun("", learned.graph, forecast=learned.forecast),)
    unknown = (ActiveRun("", graph),)
    stop, lowered = MaxGenerations(generations), lower_runs(known, cluster, lowering)
    blind = solve(lower_runs(unknown, cluster, lowering).problem, stop, seed)
    found = solve(lowered.problem, stop, seed, others=others_wanted(lowered))
    chosen = chosen_by_samples(lowered, found)
    placements = {
        "60 s": blind.placement,
        "medians": found.placement,
        "samples": chosen.placement,
        "HEFT": _heft(lowered.problem),
    }
    real = _real_times(true, run, deviations, random)
    ends = {each: _mean_end(true.problem, place, real) for each, place in placements.items()}
    ends["kube-default"] = fmean(_kube_default(_with(true.problem, each)) for each in real)
    ends["bound"] = fmean(_bound(_with(true.problem, each)) for each in real)
    differs = chosen.placement is not found.placement
    return PlannedCase(name, dispatch, len(run.steps), ends, differs)


def _deviations(run: RunGraph, random: np.random.Generator) -> dict[str, float]:
    """Of each task."""
    tasks = dict.fromkeys(step.task for step in run.steps)
    return {task: float(random.choice(DEVIATIONS)) for task in tasks}


def _without_times(run: RunGraph) -> RunGraph:
    return replace(run, steps=tuple(map(_without_time, run.steps)))


def _without_time(step: Step) -> Step:
    return replace(step, duration_seconds=None, duration_source=DurationSource.ASSUMED)


def _observed(
    run: RunGraph, deviations: dict[str, float], random: np.random.Generator
) -> list[Observation]:
    return [
        Observation(
            step_identity(run.name, step),
            (step.duration_seconds or 0.0) * random.lognormal(0, deviations[step.task]),
        )
        for step in run.steps
    ]


def _real_times(
    lowered: Lowered, run: RunGraph, deviations: dict[str, float], random: np.random.Generator
) -> Floats:
    """[R, A] run times of runs as they really are."""
    times = np.repeat(lowered.problem.arrays.duration_seconds[None], REAL_RUNS, axis=0)
    for step in run.steps:
        activity = lowered.step_activities[0][step.name]
        times[:, activity] *= random.lognormal(0, deviations[step.task], REAL_RUNS)
    return times


def _with(problem: PlacementProblem, times: Floats) -> PlacementProblem:
    return replace(problem, arrays=problem.arrays._replace(duration_seconds=times))


def _mean_end(problem: PlacementProblem, placement: Placement, real: Floats) -> float:
    _, ends = simulate_durations(problem, placement, real)
    return float(ends.max(axis=1).mean())


def _heft(problem: PlacementProblem) -> Placement:
    schedule = BASELINES["heft"](problem, 0)
    return Placement.of_schedule(problem, slot_starts(problem, schedule), schedule.node)


def _kube_default(problem: PlacementProblem) -> float:
    return simulate_policy(problem, native.KUBE_DEFAULT).makespan_seconds


def _bound(problem: PlacementProblem) -> float:
    return lower_bound(problem, _kube_default(problem), _NO_PROGRAM).seconds
