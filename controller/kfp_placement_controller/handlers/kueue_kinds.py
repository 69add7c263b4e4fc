"""Kueue's objects as kopf reports them, passed on to the queue's coordinator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import kopf

from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.metrics import WATCH_CHANGES
from kfp_placement_controller.observed.kueue_quotas import (
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import JsonObject, Kind

DELETED = "DELETED"
"""Type of the event by which the API server reports that an object was deleted. Of the objects that
exist when kopf starts, it reports events without a type."""


@dataclass
class ObjectOrder:
    """Versions of the objects of one kind, to recognise events that arrive too late.

    kopf keeps the events of one object in order, but not those of two objects with the same name:
    where one is replaced, the end of the old one may arrive after the start of the new one.
    """

    _versions: dict[tuple[str, str], int] = field(default_factory=dict)

    def is_late(self, key: tuple[str, str], seen: Mapping[str, Any], *, is_gone: bool) -> bool:
        """Return whether a newer event was seen for this name.

        Args:
            key: namespace and name.
            seen: the object in the event. Resource versions grow (KEP-5504).
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


def follow_kueue(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of Kueue's objects on.

    Args:
        registry: registry of the operator.
        inbox: inbox of the coordinator.
    """
    for kind, observe in (
        (WORKLOADS, observe_workload),
        (LOCAL_QUEUES, observe_local_queue),
        (RESOURCE_FLAVORS, observe_flavor),
        (ADMISSION_CHECKS, observe_check),
    ):
        _follow(registry, inbox, kind, observe)


def _follow(
    registry: kopf.OperatorRegistry,
    inbox: Inbox[QueueCoordinator],
    kind: Kind,
    observe: Callable[[JsonObject], object | None],
) -> None:
    order = ObjectOrder()

    # Asynchronous, though it never waits: kopf gives any other function to a pool of threads,
    # which costs more than the function itself.
    @kopf.on.event(kind.api_version, kind.plural, registry=registry, id=kind.plural)
    async def changed(
        event: kopf.RawEvent, namespace: str | None, name: str, logger: kopf.Logger, **_: Any
    ) -> None:
        key = (namespace or "", name)
        is_gone = event["type"] == DELETED
        if order.is_late(key, event["object"], is_gone=is_gone):
            return
        try:
            new = None if is_gone else observe(dict(event["object"]))
        except InputError as error:
            logger.warning("is not read: %s", error)
            return
        WATCH_CHANGES.labels(kind.kind).inc()
        inbox.put(lambda coordinator, _now: coordinator.handle(kind, Change(key, None, new)))
