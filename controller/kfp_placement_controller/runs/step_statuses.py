"""Statuses of steps: pods tell where and when a step ran, the run's object how it ended.

Ends, cache hits and branches not taken come from the object; where it cannot be read, from pods
alone. The module `waiting` says what a pod that does not run waits for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.gate_deadlines import StartWindow
from kfp_placement_controller.runs.attach_failures import AttachFailures
from kfp_placement_controller.runs.run_pods import RunPod, RunPods
from kfp_placement_controller.runs.waiting import WaitsFor, start_window, waits_for
from kfp_placement_controller.sources.source import RunEnd, RunState
from kfp_placement_engine.model.active_runs import ProgressState, StepProgress
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState
from kfp_placement_engine.readers.tree.run_outcomes import RunOutcome, StepOutcome

_NOT_REPORTED = StepOutcome(StepState.PENDING)
"""Outcome of a step that the run's object does not mention."""


@dataclass(frozen=True, slots=True)
class StepStatus:
    """Status of a step: its state, and when and where it ran.

    Attributes:
        state: state so far.
        node: name of the node that its pod is or was bound to; "" = none.
        started_at: time at which that pod was bound; None = it was not.
        ended_at: time at which the step ended; None = it has not, or nobody knows when.
        waiting: the thing that its pod waits for; None = nothing.
        message: message of a step that failed; "" = there is none.
        driver: progress of the driver pod before the step, for the planner; None = there is none.
    """

    state: StepState = StepState.PENDING
    node: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    waiting: WaitsFor | None = None
    message: str = ""
    driver: StepProgress | None = field(default=None, compare=False)

    @property
    def ended(self) -> bool:
        """True if the step has ended, or never runs."""
        return self.state in ENDED_STATES

    @property
    def unstarted(self) -> bool:
        """True if the step is still to start."""
        return self.started_at is None and not self.ended

    @property
    def bound(self) -> bool:
        """True if its pod takes room on a node."""
        return not self.ended and bool(self.node)


@dataclass(frozen=True)
class RunSituation:
    """Facts about a run besides its pods.

    Attributes:
        outcome: outcome of its steps, as its object states it.
        state: state of the run.
        gate_deadline_seconds: age at which our gate comes off a pod.
        attach_failures: volumes that could not be attached.
    """

    outcome: RunOutcome
    state: RunState
    gate_deadline_seconds: float
    attach_failures: AttachFailures

    @property
    def is_readable(self) -> bool:
        """True if the object says how steps end."""
        return not (self.state.unreadable or self.outcome.problem)


def step_statuses(
    graph: RunGraph, pods: RunPods, situation: RunSituation, now: datetime
) -> Mapping[str, StepStatus]:
    """Return the statuses of all steps of a run, by name."""
    return {step.name: _status(step, pods, situation, now) for step in graph.steps}


def last_end(statuses: Iterable[StepStatus]) -> datetime | None:
    """Return when the last step of a run ended, and so the run; None = no step has run."""
    ran = (StepState.SUCCEEDED, StepState.FAILED)
    ends = (status.ended_at for status in statuses if status.state in ran)
    return max((end for end in ends if end is not None), default=None)


def group_progress(graph: RunGraph, pods: RunPods, now: datetime) -> Mapping[str, StepProgress]:
    """Return the progress of the driver pods of groups, by the group's name."""
    drivers = {group.name: pods.group_driver(group.name) for group in graph.groups}
    return {name: driver_progress(pod, now) for name, pod in drivers.items() if pod is not None}


def driver_progress(pod: RunPod, now: datetime) -> StepProgress:
    """Return the progress of a driver pod; if it failed, another is made or the run ends."""
    if pod.ended:
        return StepProgress(ProgressState.DONE)
    if pod.bound_at is None:
        return StepProgress()
    return StepProgress(ProgressState.RUNNING, pod.pod.node_name, _seconds(now - pod.bound_at))


def step_progress(status: StepStatus, now: datetime) -> StepProgress:
    """Return the progress of a step, as the planner sees it."""
    if status.ended:
        return StepProgress(ProgressState.DONE, status.node or None)
    is_pause = status.state is StepState.RUNNING and not status.node
    if (status.bound or is_pause) and status.started_at is not None:
        since = _seconds(now - status.started_at)
        return StepProgress(ProgressState.RUNNING, status.node or None, since)
    return StepProgress(driver=status.driver)


def _status(step: Step, pods: RunPods, situation: RunSituation, now: datetime) -> StepStatus:
    outcome = situation.outcome.steps.get(step.name, _NOT_REPORTED)
    pod = pods.executor(step.name)
    ended = _end(step, outcome, pod, situation)
    if ended is not None:
        return _ended(ended, outcome, pod)
    if situation.state.end is not None:
        return _cut_off(pod, situation.state)
    if not step.kind.has_pod:
        return StepStatus(outcome.state, started_at=outcome.started_at)
    if pod is None or pod.ended:
        # The next attempt has no pod yet.
        since = outcome.started_at or now
        window = start_window(step, outcome, None)
        waiting = waits_for(
            None, outcome.message, since, situation.gate_deadline_seconds, window=window
        )
        state = StepState.PENDING if waiting is None else StepState.WAITING
        driver = pods.driver(step.name)
        progress = None if driver is None else driver_progress(driver, now)
        if pod is not None:
            progress = StepProgress(ProgressState.DONE)
        return StepStatus(state, waiting=waiting, driver=progress)
    window = start_window(step, outcome, pod)
    return _open(pod, now, situation, window)


def _end(
    step: Step, outcome: StepOutcome, pod: RunPod | None, situation: RunSituation
) -> StepState | None:
    """Return the state in which a step ended; None = it has not ended."""
    if outcome.state in ENDED_STATES:
        if outcome.state is StepState.FAILED and pod is not None and not pod.ended:
            return None  # an attempt that the object does not show yet
        return outcome.state
    if pod is None or not pod.ended:
        return None
    if pod.pod.phase == "Succeeded":
        return StepState.SUCCEEDED
    # A readable object says whether the step is tried again; without one, this was the end.
    is_readable = situation.is_readable and outcome is not _NOT_REPORTED
    return None if is_readable and step.attempt_limit > 1 else StepState.FAILED


def _ended(state: StepState, outcome: StepOutcome, pod: RunPod | None) -> StepStatus:
    if state in (StepState.CACHED, StepState.SKIPPED):
        return StepStatus(state, ended_at=outcome.finished_at)
    if pod is not None and pod.bound_at is not None:
        ended_at = pod.ended_at or outcome.finished_at
        failure = pod.pod.failure.message if state is StepState.FAILED and pod.pod.failure else ""
        return StepStatus(
            state, pod.pod.node_name, pod.bound_at, ended_at, message=failure or outcome.message
        )
    message = outcome.message if state is StepState.FAILED else ""
    return StepStatus(state, outcome.host, outcome.started_at, outcome.finished_at, message=message)


def _cut_off(pod: RunPod | None, state: RunState) -> StepStatus:
    """Return the status of a step that had not ended when its run did."""
    if pod is None or pod.bound_at is None:
        return StepStatus(StepState.SKIPPED)
    well = state.end is RunEnd.SUCCEEDED
    ended_at = pod.ended_at or state.finished_at
    end = StepState.SUCCEEDED if well else StepState.FAILED
    return StepStatus(end, pod.pod.node_name, pod.bound_at, ended_at)


def _open(
    pod: RunPod, now: datetime, situation: RunSituation, window: StartWindow | None
) -> StepStatus:
    """Return the status of a step whose pod exists and has not ended."""
    attach_failure = situation.attach_failures.message(pod.pod.namespace, pod.pod.uid)
    deadline_seconds = situation.gate_deadline_seconds
    waiting = waits_for(pod, "", now, deadline_seconds, attach_failure, window)
    state = StepState.PENDING
    if waiting is not None:
        state = StepState.WAITING
    elif pod.bound_at is not None:
        state = StepState.RUNNING
    return StepStatus(
        state,
        pod.pod.node_name,
        pod.bound_at,
        waiting=waiting,
        driver=StepProgress(ProgressState.DONE),
    )


def _seconds(span: timedelta) -> float:
    return max(0.0, span.total_seconds())
