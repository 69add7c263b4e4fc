"""RunQueues, as kopf reports them, for the coordinator."""

from typing import Any

import kopf

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey

GONE = "DELETED"
"""How the API server calls the end of an object; at the start kopf gives no type."""


def follow_run_queues(registry: kopf.OperatorRegistry, inbox: Inbox[QueueCoordinator]) -> None:
    """Pass every change of a RunQueue on.

    Args:
        registry: of the operator.
        inbox: the coordinator's.
    """

    @kopf.on.event(RUN_QUEUES.api_version, RUN_QUEUES.plural, registry=registry)
    def run_queue_changed(
        event: kopf.RawEvent, namespace: str | None, name: str, logger: kopf.Logger, **_: Any
    ) -> None:
        key = QueueKey(namespace or "", name)
        if event["type"] == GONE:
            inbox.put(lambda coordinator, _now: coordinator.queue_changed(key, None))
            return
        try:
            queue = observe_queue(event["object"])
        except InputError as error:
            logger.warning("is not read: %s", error)
            return
        inbox.put(lambda coordinator, _now: coordinator.queue_changed(key, queue))
