"""Kueue's objects, as kopf reports them, for the coordinator."""

from functools import partial

import kopf

from kfp_placement_controller.handlers.own_kinds import follow_kind
from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.kueue_quotas import (
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_kube.kinds import Kind


def follow_kueue(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of Kueue's objects on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
    """
    for kind, observe in (
        (WORKLOADS, observe_workload),
        (LOCAL_QUEUES, observe_local_queue),
        (RESOURCE_FLAVORS, observe_flavor),
        (ADMISSION_CHECKS, observe_check),
    ):
        follow_kind(registry, inbox, kind, observe, partial(_tell, kind))


def _tell(
    kind: Kind, coordinator: QueueCoordinator, namespace: str, name: str, new: object | None
) -> None:
    coordinator.kueue_changed(lambda objects: objects.changed(kind, namespace, name, new))
