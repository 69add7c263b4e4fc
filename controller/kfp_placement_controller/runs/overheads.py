"""Overheads that a namespace has shown and no hint states: drivers, and the start of a pod.

Those of one namespace teach no other, since whoever may make pods can make them as slow as they
like.

Every figure is the mean of the middle half of the last values, so that a driver that waited for
room, or a node that was asleep, does not count. A median would be less precise: the API server's
times are whole seconds. Until there are enough values the policy's or the planner's own value
applies.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean, median

from kfp_placement_controller.runs.run_pods import RunPods
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.model.run_graph import Group, Step

MAX_OVERHEAD_SECONDS = 600.0
"""Longest overhead that is learned from; a driver that took longer waited for something."""

WINDOW = 101
"""Number of last values that count; a change of the cluster shows after half as many."""


@dataclass
class RunningCentre:
    """Mean of the middle half of the last values.

    Attributes:
        least: number of values below which there is no mean.
    """

    least: int = 3
    _values: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, value: float) -> None:
        """Take in another value."""
        if 0 <= value <= MAX_OVERHEAD_SECONDS:
            self._values.append(value)

    @property
    def value(self) -> float | None:
        """Mean of the values in the middle; None = too few were seen."""
        count = len(self._values)
        if count < self.least:
            return None
        outer = max(1, count // 4) if count > 2 else 0
        return fmean(sorted(self._values)[outer : count - outer])


@dataclass
class LearnedOverheads:
    """Overheads of one namespace, learned from pods that have started.

    Attributes:
        driver: time from the moment at which a step could begin (its dependencies and the drivers
            of its groups have ended) until its pod is created, by each driver in between: the
            delay before it, the driver pod, and the delay after it.
        start: time from a pod's bind to the start of its main container, without planned pulls.
    """

    driver: RunningCentre = field(default_factory=RunningCentre)
    start: RunningCentre = field(default_factory=RunningCentre)
    _learned: set[str] = field(default_factory=set)

    @property
    def driver_seconds(self) -> float | None:
        """Seconds that a driver and the start of the pod after it take; None = not known yet.

        The planner has no time of its own for the start of a pod. Before every step of KFP is a
        driver, so counting it there only moves the bind, by a second or two.
        """
        if self.driver.value is None:
            return None
        return self.driver.value + (self.start.value or 0.0)

    def learn(self, run: TrackedRun, reading: RunReading) -> None:
        """Learn from the steps of a run that have started; every pod counts once.

        Nothing is learned of drivers that waited while the run was held back.

        Args:
            run: run as of its last evaluation.
            reading: the run as read, with its graph.
        """
        groups = {group.name: group for group in reading.graph.groups}
        plan, statuses = run.plan, run.statuses
        began_at, held_at = run.observed.state.started_at, run.hold.last_at
        for step in reading.graph.steps:
            pod = run.pods.executor(step.name)
            if pod is None or pod.running_at is None or pod.bound_at is None:
                continue
            if pod.pod.uid in self._learned:
                continue
            self._learned.add(pod.pod.uid)
            took = (pod.running_at - pod.bound_at).total_seconds()
            pulled = 0.0 if plan is None else plan.pull_seconds.get(step.name, 0.0)
            self.start.add(max(0.0, took - pulled))
            if step.has_driver and pod.identity is not None and pod.identity.attempt == 0:
                # Its driver ran after those of the groups that became ready at the same time.
                waited: list[Step | Group] = [step, *_groups_around(step, groups)]
                ready = [_ready(waiter.depends_on, statuses, began_at) for waiter in waited]
                if ready[0] is not None and (held_at is None or held_at < ready[0]):
                    passed = (pod.created_at - ready[0]).total_seconds()
                    self.driver.add(passed / ready.count(ready[0]))

    def forget(self, pods: RunPods) -> None:
        """Forget the pods of a run that is gone: they will not be seen again."""
        self._learned -= {pod.pod.uid for pod in pods}


class OverheadsByNamespace(defaultdict[str, LearnedOverheads]):
    """Overheads of each namespace in which runs were planned."""

    def __init__(self) -> None:
        """Know none."""
        super().__init__(LearnedOverheads)

    @property
    def median_driver_seconds(self) -> float:
        """Median of all namespaces of the time of one driver; 0 = not known yet."""
        return _median(each.driver for each in self.values())

    @property
    def median_start_seconds(self) -> float:
        """Median of all namespaces of the start of a pod; 0 = not known yet."""
        return _median(each.start for each in self.values())


def _median(centres: Iterable[RunningCentre]) -> float:
    values = [each.value for each in centres if each.value is not None]
    return median(values) if values else 0.0


def _groups_around(step: Step, groups: Mapping[str, Group]) -> Iterator[Group]:
    """Yield the groups with a driver that a step is in, the innermost first."""
    group = groups.get(step.group)
    while group is not None:
        if group.has_driver:
            yield group
        group = groups.get(group.parent) if group.name else None


def _ready(
    before: tuple[str, ...], statuses: Mapping[str, StepStatus], began_at: datetime | None
) -> datetime | None:
    """Return when the last of these steps had ended, or the run began; None = not known."""
    statuses_before = [status for name in before if (status := statuses.get(name)) is not None]
    ends = [status.ended_at for status in statuses_before if status.ended_at is not None]
    return max(ends, default=began_at) if len(ends) == len(before) else None
