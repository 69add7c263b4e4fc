"""The rows of a plan: steps and drivers with their nodes and times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.node_rules.latency import is_ruled
from kfp_placement_engine.model.reasons import Reason, reason, reason_text
from kfp_placement_engine.model.run_graph import DurationSource, Step
from kfp_placement_engine.plans.planned_step import (
    Alternative,
    Explanation,
    Phases,
    PlannedDriver,
    PlannedStep,
    RunTimeOrigin,
)
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule


@dataclass(frozen=True)
class Explanations:
    """The explanations of steps, by index of their activities.

    Attributes:
        reasons: reason for the node of each step.
        alternatives: next best nodes, if the options ask for them.
    """

    reasons: Mapping[int, Reason]
    alternatives: Mapping[int, tuple[Alternative, ...]]


def step_rows(
    run: int, lowered: Lowered, schedule: Schedule, explanations: Explanations
) -> tuple[PlannedStep, ...]:
    """Return the planned steps of the run with this index, in the order of its graph."""
    graph, activities = lowered.runs[run].graph, lowered.step_activities[run]
    return tuple(
        _step_row(run, lowered, schedule, activities[step.name], step, explanations)
        if step.name in activities
        else _ended_row(run, lowered, step)
        for step in graph.steps
    )


def sized_input(step: Step, basis: Basis | None) -> str:
    """Return the key of the only input, if the run time is learned by its size; else ""."""
    is_by_size = basis is not None and basis.by_size
    return step.inputs[0].key if is_by_size and len(step.inputs) == 1 else ""


def _ended_row(run: int, lowered: Lowered, step: Step) -> PlannedStep:
    """Return the row of a step that has ended, with its node and without times."""
    ended = reason("ended")
    return PlannedStep(
        spec=step,
        node=lowered.runs[run].progress[step.name].node,
        start_seconds=None,
        finish_seconds=None,
        phases=Phases(0.0, 0.0, 0.0),
        run_time=_run_time(step),
        latency_ms=None,
        is_latency_ruled=is_ruled(step.type, lowered.options.latency_ruled_types),
        requests=requests_of(lowered.runs[run].graph, step),
        explanation=Explanation(reason_text(ended), ended),
        progress=ProgressState.DONE,
    )


def _step_row(
    run: int,
    lowered: Lowered,
    schedule: Schedule,
    index: int,
    step: Step,
    explanations: Explanations,
) -> PlannedStep:
    """Return the row of a step that waits or runs."""
    problem, arrays = lowered.problem, lowered.problem.arrays
    node = int(schedule.node[index])
    placed = _is_placed(schedule, index)
    phases = phases_of(problem, schedule, index)
    latency = float(problem.latency_ms[arrays.class_of[index], node]) if placed else np.nan
    running = lowered.activities[index].running
    cached = step.assumed_cached and running is None
    needs_node = step.kind.has_pod and not cached
    name = problem.node_names[node] if placed else running.node if running else None
    shown = placed or not needs_node or running is not None
    start = -running.seconds_since_start if running else float(schedule.start[index])
    why = explanations.reasons[index]
    return PlannedStep(
        spec=step,
        node=name,
        start_seconds=start if shown else None,
        finish_seconds=float(schedule.end[index]) if shown else None,
        phases=replace(phases, duration_seconds=0.0) if cached else phases,
        run_time=_run_time(step, float(arrays.speed[node]) if placed else 1.0),
        latency_ms=None if np.isnan(latency) else latency,
        is_latency_ruled=is_ruled(step.type, lowered.options.latency_ruled_types),
        requests=requests_of(lowered.runs[run].graph, step),
        explanation=Explanation(
            reason_text(why, problem.node_names), why, explanations.alternatives.get(index, ())
        ),
        progress=ProgressState.RUNNING if running else ProgressState.WAITING,
    )


def _run_time(step: Step, node_speed: float = 1.0) -> RunTimeOrigin:
    is_unknown = step.duration_seconds is None
    return RunTimeOrigin(
        source=DurationSource.ASSUMED if is_unknown else step.duration_source,
        basis=step.duration_basis,
        sized_input=sized_input(step, step.duration_basis),
        node_speed=node_speed,
    )


def phases_of(problem: PlacementProblem, schedule: Schedule, index: int) -> Phases:
    """Return the phases of an activity on its node; without a node only its run time is known."""
    arrays, node = problem.arrays, int(schedule.node[index])
    duration = float(arrays.duration_seconds[index])
    if not _is_placed(schedule, index):
        return Phases(0.0, 0.0, duration)
    if arrays.scales[index]:
        duration /= float(arrays.speed[node])
    pull = float(schedule.pull_seconds[index])
    occupied = float(schedule.end[index] - schedule.begin[index])
    return Phases(pull, max(0.0, occupied - duration - pull), duration)


def _is_placed(schedule: Schedule, index: int) -> bool:
    return bool(schedule.node[index] >= 0 and np.isfinite(schedule.end[index]))


def driver_rows(run: int, lowered: Lowered, schedule: Schedule) -> tuple[PlannedDriver, ...]:
    """Return the planned driver pods of the run with this index, sorted by start."""
    own = lowered.problem.is_driver & (lowered.problem.arrays.run == run)
    rows = [
        PlannedDriver(
            lowered.problem.activity_names[index],
            lowered.problem.node_names[schedule.node[index]],
            float(schedule.start[index]),
            float(schedule.end[index]),
        )
        for index in np.flatnonzero(own).tolist()
        if _is_placed(schedule, index)
    ]
    return tuple(sorted(rows, key=lambda row: (row.start_seconds, row.name)))
