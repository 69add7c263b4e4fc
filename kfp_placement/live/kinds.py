"""Kinds of objects that are read from a live cluster, and functions that read them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement_engine.contract.keys import (
    HISTORY_NAMES,
    LOCATION_NAMES,
    PLACEMENT_NAMES,
    POLICY_NAMES,
    QUEUE_NAMES,
    REQUEST_NAMES,
)
from kfp_placement_engine.readers.argo.keys import (
    CLUSTER_TEMPLATE_NAMES,
    TEMPLATE_NAMES,
    WORKFLOW_NAMES,
)
from kfp_placement_kube.kinds import NAMESPACES, JsonObject, Kind

CORE_EVENTS = Kind("v1", "events", "Event")
WORKFLOWS = Kind(*WORKFLOW_NAMES)
TEMPLATE_KINDS = {each.kind: Kind(*each) for each in (TEMPLATE_NAMES, CLUSTER_TEMPLATE_NAMES)}
"""Kinds of Argo's templates, by their names in objects."""
WORKFLOW_METADATA = replace(WORKFLOWS, metadata_only=True)
PLACEMENTS = Kind(*PLACEMENT_NAMES)
PLACEMENT_METADATA = replace(PLACEMENTS, metadata_only=True)
POLICIES = Kind(*POLICY_NAMES)
LOCATIONS = Kind(*LOCATION_NAMES)
RUN_QUEUES = Kind(*QUEUE_NAMES)
RUN_REQUESTS = Kind(*REQUEST_NAMES)
HISTORIES = Kind(*HISTORY_NAMES)

_FEATURES = {
    RUN_QUEUES: ("queues are", " (features/queue)"),
    RUN_REQUESTS: ("queues are", " (features/queue)"),
    HISTORIES: ("histories are", " (features/history)"),
}
"""Kinds that an optional feature installs -> start and end of a message about that."""


def objects(api: ClusterApi, kind: Kind, **chosen: Any) -> Iterator[JsonObject]:
    """Yield the objects of a kind.

    Args:
        api: cluster to read.
        kind: kind of the objects.
        **chosen: selectors and the size of a page, as for `ClusterApi.pages`.

    Raises:
        ClusterError: the cluster refuses, or gives no answer.
    """
    for page in api.pages(kind, **chosen):
        yield from page.items


def our_objects(api: ClusterApi, kind: Kind, **chosen: Any) -> Iterator[JsonObject]:
    """Yield the objects of one of our kinds, as `objects` does.

    Raises:
        ClusterMissingError: the kind is not installed; the message says how to install it.
        ClusterError: the cluster refuses, or gives no answer.
    """
    try:
        yield from objects(api, kind, **chosen)
    except ClusterMissingError as error:
        raise not_installed(kind) from error


def not_installed(kind: Kind) -> ClusterMissingError:
    """Return the error for one of our kinds that the cluster does not serve."""
    what, where = _FEATURES.get(kind, ("the controller is", ""))
    return ClusterMissingError(
        f"the cluster does not serve kind {kind.kind}: {what} not installed there;"
        f" deploy/README.md of kfp-placement says how to{where}"
    )


def object_if_allowed(
    api: ClusterApi, kind: Kind, name: str, namespace: str = ""
) -> JsonObject | None:
    """Return an object; None if it does not exist, or we have no right to read it.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    try:
        return api.get(kind, name, namespace)
    except (ClusterForbiddenError, ClusterMissingError):
        return None


def lacks_namespace(api: ClusterApi, namespace: str) -> bool:
    """Return whether a namespace does not exist; False if we have no right to look it up.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    try:
        return api.get(NAMESPACES, namespace) is None
    except ClusterForbiddenError:
        return False
