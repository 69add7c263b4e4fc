"""Watches of `queue`: what is kept from each object, and how the coordinator learns of changes.

Kueue's kinds are not here: they may be missing, and are followed only while a RunQueue asks for
Kueue (`handlers`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kfp_placement_controller.kinds import POLICIES, RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.namespaces import observe_namespace
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.observed.run_requests import observe_request
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.settings import QueueSettings
from kfp_placement_controller.sources.queue_source import QueueSource
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_engine.contract.custom_resources import read_stored_policy
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS, JsonObject, Kind
from kfp_placement_kube.watch import WatchParams

_PARAMS = WatchParams(missing_seconds=60.0)
"""Times of the watches: objects of a kind that is missing are kept for a minute, since all runs
would start if their RunRequests went at once."""


def queue_readers(
    sources: Iterable[QueueSource], run_sources: RunSources
) -> Mapping[Kind, Callable[[JsonObject], Any]]:
    """Return the watched kinds, each with the function that makes what is kept from an object.

    Args:
        sources: sources of runs that can wait.
        run_sources: sources that say which run a pod belongs to.
    """
    return {
        **{source.kind: source.observe_queued for source in sources},
        NODES: observe_node,
        PODS: run_sources.observe_pod,
        POLICIES: lambda raw: read_stored_policy(raw).policy,
        NAMESPACES: observe_namespace,
        RUN_QUEUES: observe_queue,
        RUN_REQUESTS: observe_request,
    }


def queue_watches(
    client: KubeClient,
    settings: QueueSettings,
    sources: Iterable[QueueSource],
    run_sources: RunSources,
    inbox: Inbox[QueueCoordinator],
) -> WatchGroup:
    """Return the watches of the process, not started yet.

    Args:
        client: the API server.
        settings: settings of the process.
        sources: sources of runs that can wait.
        run_sources: sources that say which run a pod belongs to.
        inbox: inbox of the coordinator.
    """
    watches = WatchGroup(client, listed=inbox.wake)
    for kind, read in queue_readers(sources, run_sources).items():
        watches.add(kind, read, partial(_changed, inbox, kind), params=_PARAMS)
    changed = partial(_lease_changed, inbox)
    watches.add_lease(settings.own_namespace, settings.planner_lease_name, changed)
    return watches


def _changed(inbox: Inbox[QueueCoordinator], kind: Kind, change: Change[Any]) -> None:
    inbox.put(lambda coordinator, _now: coordinator.handle(kind, change))


def _lease_changed(inbox: Inbox[QueueCoordinator], lease: HeldLease | None) -> None:
    inbox.put_first(lambda coordinator, _now: coordinator.planner_lease(lease))
