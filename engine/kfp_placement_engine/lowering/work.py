"""How long pods run and what they move: durations and transfers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.problem.problem import Booleans, Floats


@dataclass(frozen=True)
class Work:
    """[A] arrays as in `problem.ProblemArrays`; `pulls`: the image is pulled before the run."""

    duration_seconds: Floats
    scales: Booleans
    pulls: Booleans
    download_bytes: Floats
    upload_bytes: Floats


def duration_of(step: Step, assumptions: Assumptions) -> float:
    """The step's run time on the reference node; importers and createpvc are quick as drivers."""
    if step.duration_seconds is not None:
        return step.duration_seconds
    if step.kind is not StepKind.CONTAINER:
        return assumptions.driver_seconds
    return assumptions.duration_seconds


def input_bytes(graph: RunGraph, step: Step, assumptions: Assumptions) -> int:
    """What the step downloads from the object store; 0 where data moves directly."""
    if graph.direct_transfers:
        return 0
    return sum(
        assumptions.output_bytes if each.size_bytes is None else each.size_bytes
        for each in step.inputs
    )


def work_of(
    graphs: Sequence[RunGraph], activities: Sequence[Activity], assumptions: Assumptions
) -> Work:
    """Lower durations and store transfers, with one graph for each run."""
    count = len(activities)
    duration = np.full(count, assumptions.driver_seconds)
    scales, pulls = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    download, upload = np.zeros(count), np.zeros(count)
    for index, activity in enumerate(activities):
        step, graph = activity.step, graphs[activity.run]
        if step is None:
            continue
        duration[index] = duration_of(step, assumptions)
        scales[index] = pulls[index] = step.kind is StepKind.CONTAINER
        download[index] = input_bytes(graph, step, assumptions)
        upload[index] = 0 if graph.direct_transfers else sum(step.output_bytes.values())
    return Work(duration, scales, pulls, download, upload)


def transfer_edges(
    graphs: Sequence[RunGraph], activities: Sequence[Activity], assumptions: Assumptions
) -> Floats:
    """[E] bytes moved directly along each edge (predecessor, activity), in the edges' order."""
    transfers: list[float] = []
    for activity in activities:
        moved: dict[str, int] = {}
        if graphs[activity.run].direct_transfers and activity.step is not None:
            for each in activity.step.inputs:
                size = assumptions.output_bytes if each.size_bytes is None else each.size_bytes
                moved[each.producer] = moved.get(each.producer, 0) + size
        transfers += [
            float(moved.get(activities[before].name, 0)) for before in activity.predecessors
        ]
    return np.array(transfers, np.float64)
