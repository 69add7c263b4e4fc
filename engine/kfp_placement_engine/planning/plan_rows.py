"""Rows of a plan: steps and drivers on the time line, and what was assumed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.contract.step_types import near_marks
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.lowering.work import duration_of
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.images import UNKNOWN_IMAGE_BYTES, SizeSource, canonical
from kfp_placement_engine.model.latency import is_ruled, unused_locations
from kfp_placement_engine.model.reasons import Reason, reason, reason_text
from kfp_placement_engine.model.run_graph import DurationSource, Notice, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.plans.limits import Phases
from kfp_placement_engine.plans.planned_step import (
    Alternative,
    Explanation,
    PlannedDriver,
    PlannedStep,
    RunTimeOrigin,
)
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import Schedule
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.units.quantities import format_resource

_NAMED = 5
"""Names in a line that counts."""


@dataclass(frozen=True)
class Explanations:
    """Why steps go where they go, by index of their activities.

    Attributes:
        reasons: why each goes where it goes.
        alternatives: next best nodes, where they were asked for.
    """

    reasons: Mapping[int, Reason]
    alternatives: Mapping[int, tuple[Alternative, ...]]


def step_rows(
    run: int, lowered: Lowered, schedule: Schedule, explanations: Explanations
) -> tuple[PlannedStep, ...]:
    """The steps of one of the runs, in its graph's order."""
    graph, activities = lowered.runs[run].graph, lowered.step_activities[run]
    return tuple(
        _step_row(run, lowered, schedule, activities[step.name], step, explanations)
        if step.name in activities
        else _ended_row(run, lowered, step)
        for step in graph.steps
    )


def sized_input(step: Step, basis: Basis | None) -> str:
    """The only input, where its size tells the run time, by what that rests on; else ""."""
    is_by_size = basis is not None and basis.by_size
    return step.inputs[0].key if is_by_size and len(step.inputs) == 1 else ""


def _ended_row(run: int, lowered: Lowered, step: Step) -> PlannedStep:
    """Return the row of a step that has ended: where it was, and no times."""
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
    name = problem.node_names[node] if placed else running.node if running else None
    shown = placed or cached or running is not None
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
    """What an activity does on its node; without a node only its run time is known."""
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
    """The driver pods of one of the runs, by start."""
    own = lowered.problem.is_driver & (lowered.problem.arrays.run == run)
    rows = [
        PlannedDriver(
            lowered.problem.activity_names[index],
            lowered.problem.node_names[schedule.node[index]],
            float(schedule.start[index]),
            float(schedule.end[index]),
        )
        for index in np.flatnonzero(own)
        if schedule.node[index] >= 0 and np.isfinite(schedule.end[index])
    ]
    return tuple(sorted(rows, key=lambda row: (row.start_seconds, row.name)))


def notices_of(graph: RunGraph, lowered: Lowered) -> list[Notice]:
    """Notices about marks and images."""
    return [
        *_unmarked_steps(graph, lowered.options.marked_only),
        *near_marks(graph.steps, lowered.options.latency_ruled_types),
        *unused_locations(graph.steps, lowered.options.latency_ruled_types),
        *_unknown_images(graph, lowered),
    ]


def _unknown_images(graph: RunGraph, lowered: Lowered) -> list[Notice]:
    """One notice for all images that the planner knows nothing of."""
    unknown = _images(graph, lowered, SizeSource.UNKNOWN)
    if not unknown:
        return []
    size = format_resource("memory", UNKNOWN_IMAGE_BYTES)
    count = _count(len(unknown), "image")
    each = " each" if len(unknown) > 1 else ""
    return [
        Notice(
            "unknown-images",
            f"no node reports {count}{_named(unknown.values())} and nobody states a size:"
            f" {size}{each} is assumed to be pulled; state it with image_size= in place(), or under"
            " images in a Cluster file",
        )
    ]


def _unmarked_steps(graph: RunGraph, marked_only: bool) -> list[Notice]:
    executors = [step for step in graph.steps if step.kind is StepKind.CONTAINER]
    unmarked = [step for step in executors if not (step.scheduler or step.unplanned)]
    opted_out = [step for step in executors if step.unplanned and not step.scheduler]
    if graph.source == "wfformat":
        return []
    texts = []
    if unmarked:
        verb = "is" if len(unmarked) == 1 else "are"
        some = f"{len(unmarked)} of {len(executors)} steps {verb} not marked{_tasks(unmarked)}:"
        count = "no step is marked: all are" if len(unmarked) == len(executors) else some
        texts.append(f"{count} {_effect('unmarked steps', marked_only)}")
    if opted_out:
        verb = "opts" if len(opted_out) == 1 else "opt"
        count = f"{len(opted_out)} of {len(executors)} steps {verb} out{_tasks(opted_out)}"
        effect = _effect("it" if len(opted_out) == 1 else "them", marked_only)
        texts.append(f'{count} with scheduler="default-scheduler": {effect}')
    return [Notice("unmarked-steps", each) for each in texts]


def _effect(steps: str, marked_only: bool) -> str:
    """Where steps without a mark go."""
    if marked_only:
        return "left to the default scheduler"
    return (
        f"planned as if marked; in a cluster the default scheduler places {steps}"
        " (--marked-only, marked_only in Python, shows that)"
    )


def used_assumptions(graph: RunGraph, cluster: Cluster, lowered: Lowered) -> tuple[str, ...]:
    """The assumed values that the plan rests on, each with how often it was used and where."""
    steps, assumptions = graph.steps, lowered.options.assumptions
    texts: list[str] = []
    without = [
        step
        for step in steps
        if step.duration_seconds is None
        if step.kind is StepKind.CONTAINER and not step.assumed_cached
    ]
    if without:
        seconds = format_duration(duration_of(without[0], assumptions))
        of = f"{len(without)} of {len(steps)} steps"
        texts.append(f"run time {seconds} for {of}{_tasks(without)}")
    unsized = sum(each.size_bytes is None for step in steps for each in step.inputs)
    if unsized:
        readers = [s for s in steps if any(each.size_bytes is None for each in s.inputs)]
        count = _count(unsized, "input")
        texts.append(f"size {assumptions.output_bytes} B for {count}{_tasks(readers)}")
    texts += _assumed_images(graph, lowered)
    drivers = len(graph.groups) + sum(step.has_driver for step in steps)
    if drivers:
        seconds = format_duration(assumptions.driver_seconds)
        texts.append(f"{seconds} for each of {_count(drivers, 'driver pod')}")
    return (*texts, *_assumed_widths(graph), *_assumed_rates(graph, cluster, assumptions))


def _assumed_images(graph: RunGraph, lowered: Lowered) -> list[str]:
    texts = []
    for source in (SizeSource.DEFAULT, SizeSource.UNKNOWN):
        images = _images(graph, lowered, source)
        if images:
            size = _size_text(lowered.image_sizes[next(iter(images))].size_bytes)
            count = _count(len(images), "image")
            texts.append(f"size {size} for {count} that no node reports{_named(images.values())}")
    usual = {
        name: _size_text(lowered.image_sizes[image].size_bytes)
        for image, name in _images(graph, lowered, SizeSource.USUAL).items()
    }
    if usual:
        count = _count(len(usual), "image")
        names = _named(f"{name} {size}" for name, size in usual.items())
        texts.append(f"usual size for {count} that no node reports{names}")
    return texts


def _images(graph: RunGraph, lowered: Lowered, source: SizeSource) -> dict[str, str]:
    """The run's images whose size comes from there: canonical reference -> as steps write it."""
    names: dict[str, str] = {}
    for step in graph.steps:
        if step.image and lowered.image_sizes[canonical(step.image)].source is source:
            names.setdefault(canonical(step.image), step.image)
    return names


def _size_text(size_bytes: int) -> str:
    text = format_resource("memory", size_bytes)
    return f"{text} B" if text.isdecimal() else text


def _assumed_widths(graph: RunGraph) -> list[str]:
    widths: dict[tuple[int, LearnedWidth | None], list[str]] = {}
    for group in graph.groups:
        if group.width_assumed:
            widths.setdefault((group.width, group.learned_width), []).append(group.name)
    return [
        f"width {width}{_of_runs(learned)} for {_count(len(names), 'loop')}"
        f"{_named(map(task_of, names))}"
        for (width, learned), names in widths.items()
    ]


def _of_runs(learned: LearnedWidth | None) -> str:
    """What a width rests on."""
    if learned is None:
        return ""
    if learned.width != learned.planned:
        runs = "the last run" if learned.runs == 1 else f"most of the last {learned.runs} runs"
        return f" ({runs} had no iteration)"
    return f", that of {_count(learned.runs, 'run')},"


def _assumed_rates(graph: RunGraph, cluster: Cluster, assumptions: Assumptions) -> list[str]:
    if graph.direct_transfers:
        return [f"{assumptions.link_bytes_per_second / 1e6:g} MB/s between two nodes"]
    if all(node.store_bytes_per_second is not None for node in cluster.nodes):
        return []
    rate = f"{assumptions.store_bytes_per_second / 1e6:g} MB/s"
    return [f"{rate} between a node and the object store"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tasks(steps: Iterable[Step]) -> str:
    return _named(step.task for step in steps)


def _named(names: Iterable[str]) -> str:
    """` (a, b, ...)`: a few of them, each once."""
    return f" ({listed(list(dict.fromkeys(names)), _NAMED)})"
