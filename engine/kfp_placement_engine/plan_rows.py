"""Rows of a plan: steps and drivers on the time line, and what was assumed."""

from collections.abc import Mapping

import numpy as np

from kfp_placement_engine.assumptions import Assumptions
from kfp_placement_engine.cluster import Cluster
from kfp_placement_engine.contract.quantities import format_duration
from kfp_placement_engine.image_names import normalised
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.lowering.work import duration_of
from kfp_placement_engine.plan import PlannedDriver, PlannedStep
from kfp_placement_engine.run_graph import DurationSource, Notice, RunGraph, Step, StepKind
from kfp_placement_engine.simulation import Schedule


def step_rows(
    graph: RunGraph,
    lowered: Lowered,
    schedule: Schedule,
    reasons: Mapping[int, str],
    assumptions: Assumptions,
) -> tuple[PlannedStep, ...]:
    """The steps in the run graph's order."""
    rows = []
    for index, activity in enumerate(lowered.activities):
        if activity.step is not None:
            rows.append(
                _step_row(
                    graph, lowered, schedule, index, activity.step, reasons[index], assumptions
                )
            )
    return tuple(rows)


def _step_row(
    graph: RunGraph,
    lowered: Lowered,
    schedule: Schedule,
    index: int,
    step: Step,
    reason: str,
    assumptions: Assumptions,
) -> PlannedStep:
    problem, arrays = lowered.problem, lowered.problem.arrays
    node = int(schedule.node[index])
    placed = node >= 0 and bool(np.isfinite(schedule.end[index]))
    speed = float(arrays.speed[node]) if placed and arrays.scales[index] else 1.0
    duration = float(arrays.duration_seconds[index]) / speed
    pull = float(schedule.pull_seconds[index]) if placed else 0.0
    occupied = float(schedule.end[index] - schedule.begin[index]) if placed else 0.0
    latency = float(problem.latency_ms[arrays.class_of[index], node]) if placed else np.nan
    shown = placed or step.assumed_cached
    return PlannedStep(
        name=step.name,
        task=step.task,
        kind=step.kind,
        iteration=step.iteration,
        assumed=step.assumed,
        conditional=bool(step.conditions),
        type=step.type,
        location=step.location,
        node=problem.node_names[node] if placed else None,
        start_seconds=float(schedule.start[index]) if shown else None,
        finish_seconds=float(schedule.end[index]) if shown else None,
        image_pull_seconds=pull,
        transfer_seconds=max(0.0, occupied - duration - pull),
        duration_seconds=duration if not step.assumed_cached else 0.0,
        duration_source=DurationSource.ASSUMED
        if step.duration_seconds is None
        else step.duration_source,
        latency_ms=None if np.isnan(latency) else latency,
        requests=requests_of(graph, step),
        image=step.image,
        labels=step.labels,
        attempt_limit=step.attempt_limit,
        depends_on=step.depends_on,
        reason=reason,
        type_guessed=step.type_guessed,
        cached=step.assumed_cached,
    )


def driver_rows(lowered: Lowered, schedule: Schedule) -> tuple[PlannedDriver, ...]:
    """The driver pods, by start."""
    rows = [
        PlannedDriver(
            lowered.problem.activity_names[index],
            lowered.problem.node_names[schedule.node[index]],
            float(schedule.start[index]),
            float(schedule.end[index]),
        )
        for index in np.flatnonzero(lowered.problem.is_driver)
        if schedule.node[index] >= 0 and np.isfinite(schedule.end[index])
    ]
    return tuple(sorted(rows, key=lambda row: (row.start_seconds, row.name)))


def notices_of(graph: RunGraph, marked_only: bool) -> list[Notice]:
    """Notices about marks."""
    executors = [step for step in graph.steps if step.kind is StepKind.CONTAINER]
    unmarked = [step for step in executors if not step.scheduler]
    if not unmarked or graph.source == "wfformat":
        return []
    effect = (
        "they are left to the default scheduler"
        if marked_only
        else "they are planned as if they did; in a cluster the default scheduler places them "
        "(--marked-only, marked_only in Python, shows that)"
    )
    return [
        Notice(
            "unmarked-steps", f"{len(unmarked)} of {len(executors)} steps carry no mark; {effect}"
        )
    ]


def used_assumptions(
    graph: RunGraph, cluster: Cluster, assumptions: Assumptions
) -> tuple[str, ...]:
    """The assumed values that the plan rests on, each with how often it was used."""
    steps, texts = graph.steps, []
    without = [
        step for step in steps if step.duration_seconds is None and step.kind is StepKind.CONTAINER
    ]
    if without:
        seconds = format_duration(duration_of(without[0], assumptions))
        texts.append(f"run time {seconds} for {len(without)} of {len(steps)} steps")
    unsized = sum(each.size_bytes is None for step in steps for each in step.inputs)
    if unsized:
        texts.append(f"size {assumptions.output_bytes} B for {_count(unsized, 'input')}")
    reported = {name for node in cluster.nodes for name in node.images}
    unknown = len({normalised(step.image) for step in steps if step.image} - reported)
    if unknown:
        images = _count(unknown, "image")
        texts.append(f"size {assumptions.image_bytes} B for {images} that no node reports")
    drivers = len(graph.groups) + sum(step.has_driver for step in steps)
    if drivers:
        seconds = format_duration(assumptions.driver_seconds)
        texts.append(f"{seconds} for each of {_count(drivers, 'driver pod')}")
    widths = sum(group.width_assumed for group in graph.groups)
    if widths:
        texts.append(f"the width of {_count(widths, 'loop')}")
    return (*texts, *_assumed_rates(graph, cluster, assumptions))


def _assumed_rates(graph: RunGraph, cluster: Cluster, assumptions: Assumptions) -> list[str]:
    if graph.direct_transfers:
        return [f"{assumptions.link_bytes_per_second / 1e6:g} MB/s between two nodes"]
    if all(node.store_bytes_per_second is not None for node in cluster.nodes):
        return []
    rate = f"{assumptions.store_bytes_per_second / 1e6:g} MB/s"
    return [f"{rate} between a node and the object store"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
