"""Pods that plans of their runs have room for; all others are load like everybody's.

Anybody may make pods that belong to their own run. So of each step one pod counts, or that of its
driver, and what it requests beyond the plan is load as well.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.runs.run_pods import RunPod
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.load import TakenRoom
from kfp_placement_engine.lowering.pods import DRIVER_REQUESTS, requests_of
from kfp_placement_engine.lowering.work import duration_of
from kfp_placement_engine.model.active_runs import ReservedRoom
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole
from kfp_placement_engine.units.resources import Resources, with_pod

_USUAL = Assumptions()


class RunningPod(NamedTuple):
    """A pod that has a node, and that a plan of its run has room for.

    Attributes:
        pod: the pod.
        planned: resources that the plan has for it.
        left_seconds: time that it still needs by that plan.
    """

    pod: ObservedPod
    planned: Resources
    left_seconds: float

    @property
    def reserved(self) -> ReservedRoom:
        """Room that the plan has for it."""
        return ReservedRoom(self.pod.node_name, 0.0, self.left_seconds, self.planned)

    @property
    def covered(self) -> TakenRoom:
        """Room that it takes, as far as the plan has room for it; the rest is load."""
        room = TakenRoom.of_pod(self.pod)
        return room._replace(load=room.load.within(with_pod(self.planned)))


def running_pods(run: TrackedRun, reading: RunReading, now: datetime) -> Iterator[RunningPod]:
    """Yield the pods that a plan of a run has room for.

    Args:
        run: run as of its last evaluation.
        reading: the run as read, with its graph.
        now: the time.
    """
    steps = {step.name: step for step in reading.graph.steps}
    for each in run.pods:
        if each.identity is None or each.bound_at is None or not each.pod.holds_room:
            continue
        if each.identity.role is PodRole.DRIVER:
            if not _drives(run, each, each.identity):
                continue
            planned, seconds = DRIVER_REQUESTS, reading.assumptions.driver_seconds
        else:
            step, status = steps.get(each.identity.name), run.statuses.get(each.identity.name)
            if step is None or status is None or not status.bound:
                continue
            if each is not run.pods.executor(step.name):
                continue
            planned = requests_of(reading.graph, step)
            seconds = _planned_seconds(run, step, reading.assumptions)
        running_seconds = max(0.0, (now - each.bound_at).total_seconds())
        left_seconds = _USUAL.remaining_seconds(seconds, running_seconds)
        yield RunningPod(each.pod, planned, left_seconds)


def _drives(run: TrackedRun, pod: RunPod, identity: PodIdentity) -> bool:
    """Return whether a driver is the last one of its step, which has not begun, or of its group."""
    if identity.is_group:
        return pod is run.pods.group_driver(identity.name)
    status = run.statuses.get(identity.name)
    return status is not None and status.unstarted and pod is run.pods.driver(identity.name)


def _planned_seconds(run: TrackedRun, step: Step, assumptions: Assumptions) -> float:
    """Return how long a step takes by the plan in force, or by what is known of it."""
    seconds = None if run.plan is None else run.plan.seconds_of(step.name)
    return duration_of(step, assumptions) if seconds is None else seconds
