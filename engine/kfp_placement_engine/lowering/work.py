"""The work of pods: run times, and bytes that they transfer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.model.run_graph import DataInput, Step, StepKind
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import Booleans, Floats


@dataclass(frozen=True)
class Work:
    """The work of activities; arrays as in `problem.ProblemArrays`.

    Attributes:
        pulls: [A] whether the image is pulled before the run.
    """

    duration_seconds: Floats
    scales: Booleans
    pulls: Booleans
    download_bytes: Floats
    upload_bytes: Floats


def duration_of(step: Step, assumptions: Assumptions) -> float:
    """Return the time on the reference node; importers and createpvc take as long as drivers.

    A step without pod takes no time unless it is stated.
    """
    if step.duration_seconds is not None:
        return step.duration_seconds
    if not step.kind.has_pod:
        return 0.0
    if step.kind is not StepKind.CONTAINER:
        return assumptions.driver_seconds
    return assumptions.duration_seconds


def input_bytes(data: DataInput, assumptions: Assumptions) -> int:
    """Return the size of an input, stated or assumed."""
    return assumptions.output_bytes if data.size_bytes is None else data.size_bytes


def download_bytes(step: Step, assumptions: Assumptions) -> int:
    """Return the bytes that a step reads from the object store."""
    return sum([input_bytes(data, assumptions) for data in step.inputs])


def upload_bytes(step: Step) -> int:
    """Return the bytes that a step writes to the object store."""
    return sum(step.output_bytes.values())


def stored_bytes(step: Step, assumptions: Assumptions, *, direct_transfers: bool) -> int:
    """Return the bytes that a step reads and writes; none where data moves from node to node."""
    return 0 if direct_transfers else download_bytes(step, assumptions) + upload_bytes(step)


def work_of(
    activities: Sequence[Activity],
    driver_seconds: Sequence[float | None],
    assumptions: Assumptions,
    *,
    direct_transfers: bool,
) -> Work:
    """Return run times, and bytes to and from the store unless data moves from node to node.

    Args:
        activities: pods and joins of all runs.
        driver_seconds: time that drivers take, by run; None = as assumed.
        assumptions: values where nothing is known.
        direct_transfers: whether data moves from node to node.
    """
    count = len(activities)
    assumed = [
        assumptions if seconds is None else replace(assumptions, driver_seconds=seconds)
        for seconds in driver_seconds
    ]
    duration = np.array([assumed[each.run].driver_seconds for each in activities], np.float64)
    is_container = np.zeros(count, np.bool_)
    download, upload = np.zeros(count), np.zeros(count)
    steps = {
        index: activity.step
        for index, activity in enumerate(activities)
        if activity.step is not None
    }
    rows = list(steps)
    duration[rows] = [
        duration_of(step, assumed[activities[index].run]) for index, step in steps.items()
    ]
    is_container[rows] = [step.kind is StepKind.CONTAINER for step in steps.values()]
    if not direct_transfers:
        download[rows] = [download_bytes(step, assumptions) for step in steps.values()]
        upload[rows] = [upload_bytes(step) for step in steps.values()]
    return Work(duration, is_container, is_container, download, upload)


def transfer_edges(
    activities: Sequence[Activity], assumptions: Assumptions, *, direct_transfers: bool
) -> Floats:
    """Return [E] the bytes that move directly along each edge (predecessor, activity)."""
    if not direct_transfers:
        return np.zeros(sum(len(activity.predecessors) for activity in activities))
    transfers: list[int] = []
    for activity in [each for each in activities if each.predecessors]:
        moved: dict[str, int] = {}
        for data in activity.step.inputs if activity.step is not None else ():
            moved[data.producer] = moved.get(data.producer, 0) + input_bytes(data, assumptions)
        transfers += [moved.get(activities[before].name, 0) for before in activity.predecessors]
    return np.array(transfers, np.float64)
