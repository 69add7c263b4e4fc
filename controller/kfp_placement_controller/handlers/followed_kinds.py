"""RunQueues, RunRequests and Kueue's objects, as kopf reports them, for the coordinator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import kopf

from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    RUN_QUEUES,
    RUN_REQUESTS,
    WORKLOADS,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.metrics import WATCH_CHANGES
from kfp_placement_controller.observed.kueue_quotas import (
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.observed.run_requests import observe_request
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.kinds import Kind

GONE = "DELETED"
"""How the API server calls the end of an object; at the start kopf gives no type."""

ObservedT = TypeVar("ObservedT")
Tell = Callable[[QueueCoordinator, str, str, ObservedT | None], None]


@dataclass
class ObjectOrder:
    """Tells which events of objects of one kind come too late.

    kopf keeps the order of an object's events, but not that of two objects of the same name: where
    one is replaced, the end of the old one may come after the beginning of the new one.
    """

    _versions: dict[tuple[str, str], int] = field(default_factory=dict)

    def is_late(self, key: tuple[str, str], seen: Mapping[str, Any], *, is_gone: bool) -> bool:
        """Whether something newer is known of this name.

        Args:
            key: namespace and name.
            seen: the object as the event has it. Its resource versions grow (KEP-5504).
            is_gone: whether the object was deleted.
        """
        version = int(seen["metadata"]["resourceVersion"])
        if version < self._versions.get(key, 0):
            return True
        if is_gone:
            self._versions.pop(key, None)
        else:
            self._versions[key] = version
        return False


def follow_own_kinds(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of RunQueues and RunRequests on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
    """
    _follow(
        registry,
        inbox,
        RUN_QUEUES,
        observe_queue,
        lambda queue, space, name, new: queue.queue_changed(QueueKey(space, name), new),
    )
    _follow(
        registry,
        inbox,
        RUN_REQUESTS,
        observe_request,
        lambda queue, space, name, new: queue.request_changed(RunKey(space, name), new),
    )


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
        _follow(registry, inbox, kind, observe, partial(_tell_of_kueue, kind))


def _tell_of_kueue(
    kind: Kind, coordinator: QueueCoordinator, namespace: str, name: str, new: object | None
) -> None:
    coordinator.kueue_changed(lambda objects: objects.changed(kind, namespace, name, new))


def _follow(
    registry: kopf.OperatorRegistry,
    inbox: Inbox[QueueCoordinator],
    kind: Kind,
    observe: Callable[[JsonObject], ObservedT | None],
    tell: Tell[ObservedT],
) -> None:
    """Pass every change of a kind on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
        kind: which.
        observe: reads an object; None = it does not matter, as if it were gone.
        tell: takes the coordinator, namespace ("" for kinds without), name, and what was read.
    """
    order = ObjectOrder()

    # Asynchronous, though it never waits: kopf gives any other function to a pool of threads,
    # which costs more than the function itself.
    @kopf.on.event(kind.api_version, kind.plural, registry=registry, id=kind.plural)
    async def changed(
        event: kopf.RawEvent, namespace: str | None, name: str, logger: kopf.Logger, **_: Any
    ) -> None:
        is_gone = event["type"] == GONE
        if order.is_late((namespace or "", name), event["object"], is_gone=is_gone):
            return
        try:
            new = None if is_gone else observe(dict(event["object"]))
        except InputError as error:
            logger.warning("is not read: %s", error)
            return
        WATCH_CHANGES.labels(kind.kind).inc()
        inbox.put(lambda coordinator, _now: tell(coordinator, namespace or "", name, new))
