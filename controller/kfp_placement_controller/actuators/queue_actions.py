"""Execution of the queue's actions; one that fails stops no other."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kfp_placement_controller.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.metrics import (
    RUN_STARTS,
    RUN_WAIT_SECONDS,
    RUNS_PREEMPTED,
    RUNS_RELEASED,
)
from kfp_placement_controller.queueing.actions import (
    BackendAction,
    QueueAction,
    ReleaseCause,
    ReleaseHeld,
    ResumeRun,
    ShowHeld,
    SuspendRun,
    WriteQueueStatus,
    WriteRequestStatus,
)
from kfp_placement_controller.sources.queue_source import MergePatch, QueuedRun, QueueSource
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder, Regarding
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import Kind

_LOG = logging.getLogger(__name__)

_REFUSED = frozenset({400, 403, 413, 422})
"""HTTP statuses of refusals that the same request would get again; others may pass."""

_TOO_LARGE = "request is too large"
"""Words of etcd, with status 500, about an object that is as large as an object may be."""

_NOTES = {
    ReleaseCause.HAS_BEGUN: (
        "HoldRemoved",
        "this run goes on: the label that holds runs was put on it after it had begun",
    ),
    ReleaseCause.NO_QUEUE: (
        "ReleasedWithoutQueue",
        "this run begins without admission: its namespace has no RunQueue default any more",
    ),
    ReleaseCause.PLANNER_DOWN: (
        "ReleasedWithoutPlanner",
        "this run begins without admission: no planner is there to say what it needs",
    ),
    ReleaseCause.NO_DEMAND: (
        "ReleasedUnplanned",
        "this run begins without admission: no planner has said what it needs",
    ),
}
"""Reason and note of the event about a run that starts without having been admitted."""


@dataclass
class QueueActionRunner:
    """Writes to the API server, in the coordinator's thread.

    Attributes:
        client: the API server.
        events: recorder of events.
        sources: sources that build the patches of runs, by the kind of their objects.
        write_for_backend: function that writes what a backend has decided.
    """

    client: KubeClient
    events: EventRecorder
    sources: Mapping[Kind, QueueSource]
    write_for_backend: Callable[[BackendAction], None]

    def run(self, action: QueueAction) -> bool:
        """Carry out one action; a failed one is decided again.

        Returns:
            Whether it was refused, and would be refused again, as by a webhook of others.
        """
        try:
            match action:
                case ShowHeld():
                    source = self.sources[action.run.owner.kind]
                    self._patch(action.run, source.held_patch(action.run, action.message))
                case ReleaseHeld():
                    self._release(action)
                case SuspendRun():
                    self._suspend(action)
                case ResumeRun():
                    source = self.sources[action.run.owner.kind]
                    self._patch(action.run, source.resume_patch(action.run))
                    _count(action)
                case WriteQueueStatus():
                    self._write_status(RUN_QUEUES, action)
                case WriteRequestStatus():
                    self._write_status(RUN_REQUESTS, action)
                case BackendAction():
                    self.write_for_backend(action)
        except (WriteConflictError, NotFoundError) as error:
            # Somebody has written in between; a watch brings the new state.
            _LOG.debug("%s: %s", type(action).__name__, error)
        except KubernetesError as error:
            _LOG.warning("%s: %s", type(action).__name__, error)
            return error.status in _REFUSED or _TOO_LARGE in str(error)
        return False

    def _release(self, action: ReleaseHeld) -> None:
        run = action.run
        self._patch(run, self.sources[run.owner.kind].release_patch(run))
        _count(action)
        if action.cause in _NOTES:
            reason, note = _NOTES[action.cause]
            self._record(run, reason, note, "Releasing")

    def _suspend(self, action: SuspendRun) -> None:
        run = action.run
        source = self.sources[run.owner.kind]
        self._patch(run, source.suspend_patch(run, action.preempted_for))
        RUNS_PREEMPTED.labels(run.key.namespace).inc()
        self._record(run, "Preempted", action.note, "Suspending")

    def _record(self, run: QueuedRun, reason: str, note: str, action: str) -> None:
        owner = run.owner
        regarding = Regarding(owner.kind, owner.name, run.key.namespace, owner.uid)
        self.events.record(regarding, reason, note, type="Warning", action=action)

    def _write_status(self, kind: Kind, action: WriteQueueStatus | WriteRequestStatus) -> None:
        patch = {"metadata": {"resourceVersion": action.version}, "status": action.fields}
        namespace, name = action.key
        self.client.patch(kind, name, namespace, patch, subresource="status")

    def _patch(self, run: QueuedRun, patch: MergePatch) -> None:
        self.client.patch(run.owner.kind, run.owner.name, run.key.namespace, patch)


def _count(action: ReleaseHeld | ResumeRun) -> None:
    """Count a started run in the metrics."""
    RUNS_RELEASED.labels(str(action.cause)).inc()
    if action.cause is ReleaseCause.ADMITTED:
        RUN_WAIT_SECONDS.observe(action.waited_seconds)
    if action.outcome is not None:
        RUN_STARTS.labels(str(action.outcome)).inc()
