"""Runs that are planned together, with what has already happened to each of them.

Time zero is *now*: the moment the plan is made. Whoever reads pods and Workflows fills these in;
the planner knows nothing of Kubernetes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.units.resources import Resources


class ProgressState(StrEnum):
    """State of a pod so far.

    `DONE` covers whatever never takes room again: succeeded, failed for good, from the cache, and
    skipped because a condition does not hold.
    """

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True)
class StepProgress:
    """State of a step, or of the driver pod of a step or group.

    Attributes:
        state: state of the step or driver pod. A step runs from its bind to the end of its uploads.
        node: name of the node it is or was on; None = none or unknown.
        seconds_since_start: time since its bind, if it runs.
        driver: the step's driver pod; None = it has ended if the step has started, else it waits.
    """

    state: ProgressState = ProgressState.WAITING
    node: str | None = None
    seconds_since_start: float = 0.0
    driver: "StepProgress | None" = None

    def __post_init__(self) -> None:
        """Refuse a time that is not a number from 0."""
        if not 0 <= self.seconds_since_start < math.inf:
            raise PlanningError(
                f"a step started {self.seconds_since_start!r} s ago; it must be 0 or more"
            )


@dataclass(frozen=True)
class ActiveRun:
    """One of the runs to plan.

    Attributes:
        key: unique key of the run, such as `namespace/name`.
        graph: the whole run, finished steps included.
        release_seconds: time of the submission, counted from now: negative for runs that have
            begun. Nothing of it starts earlier.
        weight: weight of its completion against those of the other runs.
        progress: state by step name; steps that are not named wait, unknown names are ignored.
        group_progress: state of the driver pods of groups, by group name (`""` = root). A
            driver is done as soon as anything in its group has started.
        held: step name -> node that a step keeps although it has not started.
        namespace: namespace of the run; runs of one namespace trust each other.
        driver_seconds: time that one of its drivers takes; None = as assumed.
    """

    key: str
    graph: RunGraph
    release_seconds: float = 0.0
    weight: float = 1.0
    progress: Mapping[str, StepProgress] = field(default_factory=dict)
    group_progress: Mapping[str, StepProgress] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    driver_seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be planned with."""
        if not math.isfinite(self.release_seconds):
            raise PlanningError(f"run {self.key!r} is released at {self.release_seconds} s")
        if not 0 <= self.weight < math.inf:
            raise PlanningError(f"run {self.key!r} has weight {self.weight}; it must be 0 or more")

    def state_of(self, step: str) -> ProgressState:
        """Return the state of a step."""
        step_progress = self.progress.get(step)
        return step_progress.state if step_progress else ProgressState.WAITING


@dataclass(frozen=True)
class ReservedRoom:
    """Room that a step of another plan takes.

    Attributes:
        node: name of the node.
        start_seconds, end_seconds: times counted from now; a step that runs already starts at 0.
        requests: reserved resources, in canonical units, without `pods`.
    """

    node: str
    start_seconds: float
    end_seconds: float
    requests: Resources


@dataclass(frozen=True)
class ReservedRun:
    """A run that keeps its plan while others are planned: its steps as room that is taken.

    This is far cheaper than planning it again. A step whose room is taken by then waits for it, and
    the run completes later, which counts with its weight; that later steps of it then start later
    too is not seen.

    Attributes:
        key: unique key of the run.
        rooms: room of each step.
        weight: weight of its completion.
    """

    key: str
    rooms: tuple[ReservedRoom, ...]
    weight: float = 1.0
