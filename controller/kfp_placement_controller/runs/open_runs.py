"""Runs that can be planned: without a plan yet, or with the plan that is in force."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.running_pods import RunningPod, running_pods
from kfp_placement_controller.runs.step_statuses import StepStatus, group_progress, step_progress
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRoom, ReservedRun
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.past_runs.outlook import Outlook
from kfp_placement_engine.planning.starts.expected_times import StepSpan, times_by_now
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run that can be planned.

    Attributes:
        tracked: the run with all that is known of it.
        reading: the run as read, with its graph.
    """

    tracked: TrackedRun
    reading: RunReading

    @property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.tracked.key

    @property
    def steps(self) -> int:
        """Number of its steps."""
        return self.tracked.steps

    @property
    def observed(self) -> ObservedRun:
        """Object of the run, as last seen."""
        return self.tracked.observed

    @property
    def graph(self) -> RunGraph:
        """Graph of the run's steps."""
        return self.reading.graph

    @property
    def weight(self) -> float:
        """Weight of its completion among other runs, by the highest priority of its steps.

        One for priority 0; above it grows with the priority, below it shrinks and stays above zero.
        """
        priority = max((step.priority for step in self.graph.steps), default=0.0)
        return 1.0 + priority if priority >= 0 else 1.0 / (1.0 - priority)

    @property
    def needs_plan(self) -> bool:
        """True if the run has no plan that can be followed."""
        return self.tracked.plan is None or not self.tracked.is_whole or self.tracked.outdated

    @property
    def planned_nodes(self) -> Mapping[str, str | None]:
        """Planned nodes by step; None = the step has none."""
        plan = self.tracked.plan
        return {} if plan is None else {name: plan.node_of(name) for name in plan.rows}

    def is_moved_by(self, plan: Plan) -> bool:
        """Return whether `plan` moves any step that has not started."""
        before = self.tracked.plan
        return before is None or any(
            step.node != before.node_of(step.name)
            for step in plan.steps
            if self.tracked.statuses.get(step.name, _NOT_STARTED).unstarted
        )

    def fits(self, plan: Plan) -> bool:
        """Return whether `plan` has the steps of the graph as it is now: loops may have grown."""
        return {step.name for step in plan.steps} == {step.name for step in self.graph.steps}

    def running_pods(self, now: datetime) -> tuple[RunningPod, ...]:
        """Return the pods that a plan of the run has room for."""
        return tuple(running_pods(self.tracked, self.reading, now))

    def active_run(self, now: datetime, driver_seconds: float | None = None) -> ActiveRun:
        """Return the run as the engine plans it from now on.

        Args:
            now: the time.
            driver_seconds: time that one of its drivers takes; None = as assumed.
        """
        run = self.tracked
        return ActiveRun(
            key=key_text(run.key),
            graph=self.graph,
            release_seconds=-(now - run.observed.submitted_at).total_seconds(),
            weight=self.weight,
            progress={name: step_progress(status, now) for name, status in run.statuses.items()},
            group_progress=group_progress(self.graph, run.pods, now),
            namespace=run.key.namespace,
            driver_seconds=driver_seconds,
        )


class _PlannedRoom(NamedTuple):
    """Room that a step takes by plan: from a time since the submission, for some seconds."""

    step: str
    node: str | None
    start: float
    seconds: float
    requests: Resources


_NOT_STARTED = StepStatus()
"""Status of a step that has come since the last evaluation of the run, such as an iteration."""


@dataclass(frozen=True, eq=False)
class PlannedRun(OpenRun):
    """A run with a plan.

    Attributes:
        plan: plan in force.
    """

    plan: CurrentPlan

    @property
    def is_current(self) -> bool:
        """True if the run can still be planned, and has this graph and this plan."""
        run = self.tracked
        return run.reading is self.reading and run.plan is self.plan and run.is_open

    def waits_on(self, node: str | None) -> bool:
        """Return whether a step that has not started is planned on a node; None = on no node."""
        return any(self.plan.node_of(name) == node for name in self._waiting())

    def first_start(self) -> float | None:
        """Return the planned start of the next step, since the submission; None = none is left."""
        starts = (self.plan.start_of(name) for name in self._waiting())
        return min((start for start in starts if start is not None), default=None)

    def reserved(self, now: datetime, running: Iterable[RunningPod]) -> ReservedRun:
        """Return the room that the plan takes from now on, without steps that a hold keeps back.

        Args:
            now: the time.
            running: result of `running_pods` for this run.
        """
        elapsed = (now - self.observed.submitted_at).total_seconds()
        rooms = [each.reserved for each in running]
        for planned in self._planned_rooms:
            status = self.tracked.statuses.get(planned.step, _NOT_STARTED)
            if not (status.unstarted and planned.node) or self.tracked.awaits_pod(planned.step):
                continue
            begin = max(0.0, planned.start - elapsed)
            end = begin + planned.seconds
            rooms.append(ReservedRoom(planned.node, begin, end, planned.requests))
        return ReservedRun(key_text(self.key), tuple(rooms), self.weight)

    def planned_times(self) -> dict[str, StepSpan]:
        """Return the times of all steps that have not ended, in seconds of one clock for all runs.

        A step that began before its plan was made is planned to end when that plan says; one that
        began later than planned, or earlier, as long after its start as planned.
        """
        run, plan = self.tracked, self.plan
        submitted = run.observed.submitted_at.timestamp()
        times = {}
        for step in self.graph.steps:
            name = step.name
            status = run.statuses.get(name, _NOT_STARTED)
            start, seconds = plan.start_of(name), plan.seconds_of(name)
            if start is None or status.ended:
                continue
            seconds = math.inf if seconds is None else seconds
            if status.started_at is None:
                times[name] = StepSpan(submitted + start, submitted + start + seconds)
                continue
            started = status.started_at.timestamp()
            is_old = status.started_at < plan.planned_at
            end = submitted + start if is_old else started
            times[name] = StepSpan(started, end + seconds, runs=True)
        return times

    def outlook(self, now: datetime) -> Outlook:
        """Return how the run goes on by what has happened, in seconds since its submission.

        A run whose order nobody knows goes as planned.
        """
        times: Mapping[str, StepSpan] = self.planned_times()
        submitted, order = self.observed.submitted_at.timestamp(), self.reading.order
        if order is not None:
            planned_at, happened = self.plan.planned_at.timestamp(), dict(self._happened())
            times = times_by_now(order, times, happened, planned_at, now.timestamp())
        return Outlook(
            {
                name: (planned.start_seconds - submitted, planned.end_seconds - submitted)
                for name, planned in times.items()
                if planned.end_seconds < math.inf
            },
            is_placed=not self.waits_on(None),
            begin_seconds=self.tracked.held_seconds,
            now_seconds=now.timestamp() - submitted,
        )

    def _happened(self) -> Iterator[tuple[str, tuple[float, float]]]:
        """Yield the steps that have started, with their ends, real or by how long they take."""
        for name, status in self.tracked.statuses.items():
            row = self.plan.rows.get(name)
            if status.ended_at is not None:
                ended = status.ended_at.timestamp()
                yield name, (ended, ended)
            elif status.started_at is not None and row is not None:
                started = status.started_at.timestamp()
                planned = (row.finish_seconds or 0.0) - (row.start_seconds or 0.0)
                yield name, (started, started + max(0.0, planned))

    @cached_property
    def _planned_rooms(self) -> tuple[_PlannedRoom, ...]:
        """Room of all steps with a time, kept as each planning of one run needs it for all runs."""
        plan, rooms = self.plan, []
        for step in self.graph.steps:
            start, seconds = plan.start_of(step.name), plan.seconds_of(step.name)
            if start is not None and seconds is not None:
                node, requests = plan.node_of(step.name), requests_of(self.graph, step)
                rooms.append(_PlannedRoom(step.name, node, start, seconds, requests))
        return tuple(rooms)

    def _waiting(self) -> Iterable[str]:
        """Return the names of the steps that have not started."""
        return (name for name, status in self.tracked.statuses.items() if status.unstarted)


def key_text(key: RunKey) -> str:
    """Return the key as the engine knows it."""
    return f"{key.namespace}/{key.name}"
