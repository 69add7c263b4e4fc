"""Carries out what the queue has decided; a failure of one stops no other."""

import logging
from collections.abc import Mapping

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.metrics import RUNS_RELEASED
from kfp_placement_controller.observed.run_queues import ObservedQueue, observe_queue
from kfp_placement_controller.queueing.actions import (
    QueueAction,
    ReleaseCause,
    ReleaseHeld,
    ShowHeld,
    WriteQueueStatus,
)
from kfp_placement_controller.sources.queue_source import JsonPatch, QueuedRun, QueueSource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder, Regarding
from kfp_placement_kube.exceptions import ConflictError, KubernetesError, NotFoundError
from kfp_placement_kube.kinds import Kind

_LOG = logging.getLogger(__name__)

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
}
"""What an event says of a run that begins without having been admitted: reason and note."""


class QueueActionRunner:
    """Writes to the API server, in the coordinator's thread."""

    def __init__(
        self, client: KubeClient, events: EventRecorder, sources: Mapping[Kind, QueueSource]
    ) -> None:
        """Nothing is written yet.

        Args:
            client: the API server.
            events: where events go.
            sources: build the patches of runs, by the kind of their objects.
        """
        self._client = client
        self._events = events
        self._sources = sources

    def read_queues(self) -> list[ObservedQueue]:
        """All RunQueues as they are now.

        Raises:
            KubernetesError: refused, or no answer.
        """
        queues = []
        for raw in self._client.list(RUN_QUEUES).items:
            try:
                queues.append(observe_queue(raw))
            except InputError as error:
                _LOG.warning("a RunQueue is not read: %.300s", error)
        return queues

    def run(self, action: QueueAction) -> None:
        """Carry out one action; what fails is decided again."""
        try:
            match action:
                case ShowHeld():
                    source = self._sources[action.run.owner.kind]
                    self._patch(action.run, source.held_patch(action.run, action.message))
                case ReleaseHeld():
                    self._release(action)
                case WriteQueueStatus():
                    metadata = {"resourceVersion": action.version}
                    patch = {"metadata": metadata, "status": action.fields}
                    namespace, name = action.key
                    self._client.patch(RUN_QUEUES, name, namespace, patch, subresource="status")
        except (ConflictError, NotFoundError) as error:
            # Somebody has written in between; what there is now comes by a watch.
            _LOG.debug("%s: %s", type(action).__name__, error)
        except KubernetesError as error:
            _LOG.warning("%s: %s", type(action).__name__, error)

    def _release(self, action: ReleaseHeld) -> None:
        run = action.run
        self._patch(run, self._sources[run.owner.kind].release_patch(run))
        RUNS_RELEASED.labels(str(action.cause)).inc()
        if action.cause in _NOTES:
            reason, note = _NOTES[action.cause]
            owner = run.owner
            regarding = Regarding(owner.kind, owner.name, run.key.namespace, owner.uid)
            self._events.record(regarding, reason, note, type="Warning", action="Releasing")

    def _patch(self, run: QueuedRun, patch: JsonPatch) -> None:
        self._client.patch(run.owner.kind, run.owner.name, run.key.namespace, patch)
