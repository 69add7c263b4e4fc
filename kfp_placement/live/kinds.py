"""The kinds of objects that the command line asks for, and how it asks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement_engine.contract.keys import (
    HISTORY_NAMES,
    LOCATION_NAMES,
    PLACEMENT_NAMES,
    POLICY_NAMES,
    QUEUE_NAMES,
    REQUEST_NAMES,
)
from kfp_placement_engine.readers.argo.keys import WORKFLOW_NAMES
from kfp_placement_kube.kinds import NAMESPACES, Kind

if TYPE_CHECKING:
    from kfp_placement.live.connection import LiveCluster

Api: TypeAlias = "LiveCluster"
"""An API server; every method raises `ClusterError`."""

JsonObject = dict[str, Any]

EVENTS = Kind("v1", "events", "Event")
WORKFLOWS = Kind(*WORKFLOW_NAMES)
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
"""Features that serve our kinds where the controller does not, and where they are described."""


def objects(api: Api, kind: Kind, **chosen: Any) -> Iterator[JsonObject]:
    """Those that `Api.pages` brings, one by one.

    Args:
        api: the cluster.
        kind: of the objects.
        **chosen: which of them, and how many at a time, as for `pages`.

    Raises:
        ClusterError: refused, or no answer.
    """
    for page in api.pages(kind, **chosen):
        yield from page.items


def our_objects(api: Api, kind: Kind, **chosen: Any) -> Iterator[JsonObject]:
    """The same of one of our kinds, which may not be installed.

    Raises:
        ClusterMissingError: it is not; the message says how to.
        ClusterError: refused, or no answer.
    """
    try:
        yield from objects(api, kind, **chosen)
    except ClusterMissingError as error:
        raise not_installed(kind) from error


def not_installed(kind: Kind) -> ClusterMissingError:
    """The error for one of our kinds that the cluster does not serve."""
    what, where = _FEATURES.get(kind, ("the controller is", ""))
    return ClusterMissingError(
        f"the cluster does not serve kind {kind.kind}: {what} not installed there;"
        f" deploy/README.md of kfp-placement says how to{where}"
    )


def object_if_allowed(api: Api, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
    """An object; None = there is none, or we may not know.

    Raises:
        ClusterError: no answer.
    """
    try:
        return api.get(kind, name, namespace)
    except (ClusterForbiddenError, ClusterMissingError):
        return None


def lacks_namespace(api: Api, namespace: str) -> bool:
    """There is no such namespace; False where we may not know.

    Raises:
        ClusterError: no answer.
    """
    try:
        return api.get(NAMESPACES, namespace) is None
    except ClusterForbiddenError:
        return False
