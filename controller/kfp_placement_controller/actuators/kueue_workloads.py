"""Reads and writes of Kueue's objects, made only while a RunQueue asks for Kueue."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kfp_placement_controller.actuators.objects import listed_objects
from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from kfp_placement_controller.observed.kueue_quotas import (
    KueueListing,
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.actions import BackendAction
from kfp_placement_controller.queueing.kueue.actions import (
    ApplyStatus,
    ClearAdmission,
    CreateWorkload,
    DeleteWorkload,
    PatchWorkload,
)
from kfp_placement_controller.queueing.kueue.applied_statuses import without_admission
from kfp_placement_kube.access import WATCH_VERBS, Need, check_access, is_served
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import AccessError
from kfp_placement_kube.kinds import JsonObject, key_of

KUEUE_NEEDS = (
    Need(WORKLOADS, ("get", *WATCH_VERBS, "create", "patch", "delete")),
    Need(WORKLOADS, ("update", "patch"), subresource="status"),
    Need(LOCAL_QUEUES),
    Need(RESOURCE_FLAVORS),
    Need(ADMISSION_CHECKS),
    Need(ADMISSION_CHECKS, ("patch",), subresource="status"),
)
"""Rights that are needed for Kueue's objects while a RunQueue asks for Kueue."""


@dataclass
class KueueWriter:
    """Writer of the Kueue backend's objects.

    Attributes:
        client: the API server.
        clock: time of day.
    """

    client: KubeClient
    clock: Callable[[], datetime]

    def run(self, action: BackendAction) -> None:
        """Carry out one action.

        Raises:
            KubernetesError: refused, or no answer.
        """
        match action:
            case CreateWorkload():
                self.client.create(WORKLOADS, action.body)
            case PatchWorkload():
                self.client.patch(WORKLOADS, action.name, action.run.namespace, action.patch)
            case ApplyStatus():
                self.client.apply(action.kind, action.body, action.manager, subresource="status")
            case ClearAdmission():
                self._clear(action)
            case DeleteWorkload():
                namespace = action.run.namespace
                self.client.delete(WORKLOADS, action.name, namespace, uid=action.uid)
            case _:
                raise TypeError(f"not an action on Kueue's objects: {action}")

    def check(self) -> None:
        """Check that Kueue is installed, and that we may use it.

        Raises:
            AccessError: it is not; the message names the rights that are missing.
            KubernetesError: the question was refused, or there was no answer.
        """
        if not is_served(self.client, WORKLOADS):
            raise AccessError("its kinds are not installed in this cluster")
        check_access(self.client, KUEUE_NEEDS)

    def read(self) -> KueueListing:
        """Read all of Kueue's objects as they are now.

        Raises:
            KubernetesError: refused, or no answer.
        """
        client = self.client
        flavors = listed_objects(
            client, RESOURCE_FLAVORS, lambda raw: (key_of(raw)[1], observe_flavor(raw))
        )
        return KueueListing(
            listed_objects(client, WORKLOADS, observe_workload),
            listed_objects(client, LOCAL_QUEUES, observe_local_queue),
            dict(flavors),
            listed_objects(client, ADMISSION_CHECKS, observe_check),
        )

    def _clear(self, action: ClearAdmission) -> None:
        read = partial(self.client.get, WORKLOADS, action.name, action.run.namespace)

        def write(now: JsonObject | None) -> None:
            if now is None or now["metadata"].get("uid") != action.uid:
                return
            cleared = without_admission(now, self.clock())
            if cleared is not None:
                self.client.replace(WORKLOADS, cleared, subresource="status")

        modify(read(), write, read)
