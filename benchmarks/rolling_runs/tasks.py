"""The steps of a series while it is simulated: what is planned for each, and what has happened."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from benchmarks.rolling_runs.draws import Series
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.units.resources import Resources

LINK_BYTES_PER_SECOND = Assumptions().link_bytes_per_second


class State(Enum):
    """State of a step."""

    WAITS = auto()
    """The step waits for others and has no pod."""

    GATED = auto()
    """The step's pod waits for its turn."""

    FREED = auto()
    """The gate was overdue: the default scheduler takes the pod to any node."""

    RUNS = auto()
    DONE = auto()


@dataclass(eq=False, slots=True)
class Task:
    """A step; times in seconds since the first arrival.

    Attributes:
        run: number of its run.
        name: name of the step.
        requests: requests of its pod.
        true_seconds: run time at speed 1.
        before, after: steps that it waits for, and that wait for it.
        received_bytes: bytes that it reads, by producer.
        state: current state.
        missing: number of `before` that have not ended.
        planned_node: number of the node that the plan names; -1 = none.
        start, finish: planned; from its start on that start, and its expected end.
        created: time at which its pod was there.
        ready: time at which its data was on the planned node as well.
        node: node on which it runs or ran; -1 = none yet.
        ended: time of its end.
    """

    run: int
    name: str
    requests: Resources
    true_seconds: float
    before: list["Task"] = field(default_factory=list)
    after: list["Task"] = field(default_factory=list)
    received_bytes: dict[str, int] = field(default_factory=dict)
    state: State = State.WAITS
    missing: int = 0
    planned_node: int = -1
    start: float = 0.0
    finish: float = 0.0
    created: float = math.inf
    ready: float = math.inf
    node: int = -1
    ended: float = math.inf

    def data_arrives(self, node: int) -> float:
        """Return when its data is on a node: it moves once its producer ends."""
        moments = [self.created]
        moments += [
            each.ended + self.received_bytes.get(each.name, 0) / LINK_BYTES_PER_SECOND
            for each in self.before
            if each.node != node
        ]
        return max(moments)


def tasks_of(series: Series) -> list[Mapping[str, Task]]:
    """Return the steps of each run by name; none has begun."""
    result: list[Mapping[str, Task]] = []
    for number, (run, factor) in enumerate(zip(series.runs, series.factors, strict=True)):
        tasks = {
            step.name: Task(
                number, step.name, step.requests, (step.duration_seconds or 0.0) * factor[step.name]
            )
            for step in run.steps
        }
        for step in run.steps:
            task = tasks[step.name]
            task.before += [tasks[name] for name in step.depends_on]
            task.missing = len(task.before)
            for each in task.before:
                each.after.append(task)
            for data in step.inputs:
                if data.producer:
                    size = task.received_bytes.get(data.producer, 0) + (data.size_bytes or 0)
                    task.received_bytes[data.producer] = size
        result.append(tasks)
    return result
