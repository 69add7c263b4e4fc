"""RunQueues and RunRequests, as kopf reports them, for the coordinator."""

from collections.abc import Callable
from typing import Any, TypeVar

import kopf

from kfp_placement_controller.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.metrics import WATCH_CHANGES
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.observed.run_requests import observe_request
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.kinds import Kind

GONE = "DELETED"
"""How the API server calls the end of an object; at the start kopf gives no type."""

ObservedT = TypeVar("ObservedT")
Tell = Callable[[QueueCoordinator, str, str, ObservedT | None], None]


def follow_run_queues(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of a RunQueue on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
    """
    follow_kind(
        registry,
        inbox,
        RUN_QUEUES,
        observe_queue,
        lambda queue, space, name, new: queue.queue_changed(QueueKey(space, name), new),
    )


def follow_run_requests(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of a RunRequest on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
    """
    follow_kind(
        registry,
        inbox,
        RUN_REQUESTS,
        observe_request,
        lambda queue, space, name, new: queue.request_changed(RunKey(space, name), new),
    )


def follow_kind(
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

    # Asynchronous, though it waits for nothing: kopf gives any other function to a pool of threads,
    # which costs more than the function itself.
    @kopf.on.event(kind.api_version, kind.plural, registry=registry, id=kind.plural)
    async def changed(
        event: kopf.RawEvent, namespace: str | None, name: str, logger: kopf.Logger, **_: Any
    ) -> None:
        try:
            new = None if event["type"] == GONE else observe(dict(event["object"]))
        except InputError as error:
            logger.warning("is not read: %s", error)
            return
        WATCH_CHANGES.labels(kind.kind).inc()
        inbox.put(lambda coordinator, _now: tell(coordinator, namespace or "", name, new))
