"""Execution of the actions that the coordinator of `plan` decides; a failed one stops no other."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus

from kfp_placement_controller.actuators.deviations import report_deviation
from kfp_placement_controller.actuators.held_runs import close_queue
from kfp_placement_controller.actuators.histories import HistoryTask
from kfp_placement_controller.actuators.objects import listed_objects
from kfp_placement_controller.actuators.placements import (
    MOST_EPOCH,
    PlacementWriter,
    StoredVersion,
    stored_version,
)
from kfp_placement_controller.actuators.policies import write_findings
from kfp_placement_controller.actuators.search_worker import SearchWorker
from kfp_placement_controller.exceptions import SupersededError
from kfp_placement_controller.histories.actions import DeleteHistory, WriteHistory
from kfp_placement_controller.kinds import PLACEMENTS, RUN_REQUESTS
from kfp_placement_controller.learning.actions import AskMemory
from kfp_placement_controller.metrics import STRANDED_PODS_DELETED
from kfp_placement_controller.observed.deviations import Deviation
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.packages.actions import AskPackage
from kfp_placement_controller.planning.actions import (
    Action,
    Announce,
    CloseQueue,
    DeletePod,
    DeleteRequest,
    ForgetRun,
    SayFindings,
    WritePlacement,
    WriteRequest,
)
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.queueing.overdue import Silence, closed_condition, closing_patch
from kfp_placement_engine.contract.custom_resources import (
    PipelinePlacement,
    RunRequest,
    read_resource,
)
from kfp_placement_engine.contract.shared_parts import ObjectMetadata
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.events import EventRecorder, Regarding
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import PODS, JsonObject, key_of

_LOG = logging.getLogger(__name__)

_Attempted = DeletePod | SayFindings | CloseQueue | WriteRequest | DeleteRequest
"""Actions whose failure is only logged, as the coordinator decides them again."""


@dataclass
class ActionRunner:
    """Writes to the API server, in the coordinator's thread.

    Attributes:
        client: the API server.
        events: recorder of events.
        worker: worker that searches.
        clock: time of day.
        ask_memory: function that submits a question about memory, and returns at once.
        ask_package: function that submits a question to KFP's API, and returns at once.
        change_history: function that submits a change of a history, and returns at once.
        open_gate: function that submits a gate to take off, and returns at once.
    """

    client: KubeClient
    events: EventRecorder
    worker: SearchWorker
    clock: Callable[[], datetime]
    ask_memory: Callable[[AskMemory], None]
    ask_package: Callable[[AskPackage], None]
    change_history: Callable[[HistoryTask], None]
    open_gate: Callable[[OpenGate], None]
    _versions: dict[RunKey, StoredVersion] = field(default_factory=dict)

    @property
    def highest_epoch(self) -> int:
        """Highest epoch of all placements as last read or written; -1 if there are none."""
        epochs = (each.epoch for each in self._versions.values() if each.epoch <= MOST_EPOCH)
        return max(epochs, default=-1)

    def read_placements(self) -> list[PipelinePlacement]:
        """Return all placements as they are now; unreadable ones are left out and written again.

        Raises:
            KubernetesError: refused, or no answer.
        """

        def read(raw: JsonObject) -> PipelinePlacement:
            self._versions[RunKey(*key_of(raw))] = stored_version(raw)
            return read_resource(PipelinePlacement, raw)

        self._versions.clear()
        return listed_objects(self.client, PLACEMENTS, read)

    def is_first(self, write: WritePlacement) -> bool:
        """Return whether a run has no object yet; then only its plan is written."""
        return write.key not in self._versions

    def run(self, action: Action, coordinator: Coordinator) -> None:
        """Carry out one action."""
        match action:
            case PlanningRound():
                self.worker.submit(action)
            case AskMemory():
                self.ask_memory(action)
            case AskPackage():
                self.ask_package(action)
            case Announce():
                owner = action.owner
                regarding = Regarding(owner.kind, owner.name, action.key.namespace, owner.uid)
                note = f"this run is not planned: {action.why}"
                self.events.record(
                    regarding, action.reason, note, type="Warning", action="Planning", once=True
                )
            case Deviation():
                report_deviation(self.events, action)
            case WritePlacement():
                self._write(action, coordinator)
            case WriteHistory() | DeleteHistory():
                self.change_history(HistoryTask(action, coordinator.epoch))
            case OpenGate():
                self.open_gate(action)
            case ForgetRun():
                self._versions.pop(action.key, None)
            case _:
                self._attempt(action)

    def _write(self, write: WritePlacement, coordinator: Coordinator) -> None:
        writer, version = PlacementWriter(self.client), self._versions.get(write.key)
        is_first = version is None
        try:
            if write.is_new_plan or version is None:
                version = writer.write_plan(write.placement, version)
                self._versions[write.key] = version
            if not is_first:
                self._versions[write.key] = writer.write_status(write.placement, version)
        except SupersededError as error:
            _LOG.warning("%s", error)
            coordinator.follow()
        except (KubernetesError, InputError) as error:
            if isinstance(error, NotFoundError):
                # The run is gone, or somebody has deleted the object, which is then created again.
                self._versions.pop(write.key, None)
            status = error.status if isinstance(error, KubernetesError) else HTTPStatus.BAD_REQUEST
            coordinator.publisher.write_failed(
                write,
                str(error),
                coordinator.monotonic(),
                is_refused=HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR,
            )
        else:
            coordinator.publisher.written(write, coordinator.monotonic(), has_status=not is_first)

    def _attempt(self, action: _Attempted) -> None:
        """Write an object; a failed write is decided again at the next evaluation."""
        try:
            match action:
                case DeletePod():
                    pod = action.pod
                    if delete_unbound(self.client, pod.namespace, pod.name, pod.uid):
                        STRANDED_PODS_DELETED.inc()
                        _LOG.warning(
                            "pod %s/%s waited for a dead scheduler: deleted",
                            pod.namespace,
                            pod.name,
                        )
                case SayFindings():
                    write_findings(self.client, action.findings, self.clock())
                case CloseQueue():
                    self._close(action.queue)
                case WriteRequest():
                    _write_request(self.client, action)
                case DeleteRequest():
                    namespace, name = action.key
                    self.client.delete(RUN_REQUESTS, name, namespace, uid=action.uid)
                    _LOG.warning("RunRequest %s/%s was not of this run: removed", *action.key)
        except (KubernetesError, InputError) as error:
            _LOG.warning("%s: %s", type(action).__name__, error)

    def _close(self, queue: ObservedQueue) -> None:
        status = closing_patch(queue, closed_condition(Silence()), self.clock())
        if status is not None:
            close_queue(self.client, queue.key, status)
            _LOG.warning("RunQueue %s/%s holds no more runs: no queue leads", *queue.key)


def delete_unbound(client: KubeClient, namespace: str, name: str, uid: str) -> bool:
    """Delete a pod unless it is bound to a node, even if that happens at the last moment.

    A pod that waits for a dead scheduler cannot change to another one; its run makes a new pod.

    Args:
        client: the API server.
        namespace: namespace of the pod.
        name: name of the pod.
        uid: identifier of the pod; a later pod of the same name stays.

    Returns:
        Whether this call deleted the pod.

    Raises:
        KubernetesError: refused, or no answer.
    """

    def write(pod: JsonObject | None) -> bool:
        if pod is None:
            return False
        metadata = pod["metadata"]
        bound = pod["spec"].get("nodeName")
        if bound or metadata["uid"] != uid or "deletionTimestamp" in metadata:
            return False
        version = metadata["resourceVersion"]
        return client.delete(PODS, name, namespace, uid=uid, resource_version=version)

    read = partial(client.get, PODS, name, namespace)
    return modify(read(), write, read)


def _write_request(client: KubeClient, write: WriteRequest) -> None:
    """Write a RunRequest, unless somebody has changed it since it was read.

    Raises:
        KubernetesError: refused, or no answer.
    """
    namespace, name = write.key
    try:
        if not write.version:
            owners = (write.owner.reference(),)
            metadata = ObjectMetadata(name=name, namespace=namespace, owner_references=owners)
            request = RunRequest(metadata=metadata, spec=write.spec)
            client.create(RUN_REQUESTS, request.to_object())
            return
        spec = write.spec.model_dump(mode="json", by_alias=True)
        patch = {"metadata": {"resourceVersion": write.version}, "spec": spec}
        client.patch(RUN_REQUESTS, name, namespace, patch)
    except (WriteConflictError, NotFoundError):
        # The watch delivers the current object, which is then compared again.
        return
