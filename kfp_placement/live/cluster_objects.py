"""A live cluster, read as what `kubectl get nodes,pods,pvc,pv,loc,plpol -A` prints is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.kinds import (
    CLAIMS,
    LOCATIONS,
    NAMESPACES,
    NODES,
    PODS,
    POLICIES,
    VOLUMES,
    Api,
    JsonObject,
    lacks_namespace,
    object_if_allowed,
)
from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.progress import Progress
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.readers.cluster_file import UNUSED_KEYS
from kfp_placement_engine.readers.kubernetes.objects import read_objects
from kfp_placement_kube.kinds import Kind

MAX_OBJECTS = 500_000
"""Objects of a cluster that are read."""

SOURCE = "live"
"""What the cluster is called in a plan."""


@dataclass(frozen=True)
class _Wanted:
    """A kind to read.

    Attributes:
        kind: which.
        without: what is assumed where it may not be read; "" = then nothing can be planned.
    """

    kind: Kind
    without: str = ""


@dataclass(frozen=True)
class _Unread:
    """A kind that may not be read as a whole.

    Attributes:
        kind: which.
        without: what that means for the plan.
        refusal: the server's words.
    """

    kind: Kind
    without: str
    refusal: ClusterForbiddenError


_WANTED = (
    _Wanted(NODES),
    _Wanted(PODS, "room on nodes is unknown: they are taken to be empty"),
    _Wanted(CLAIMS, "volume claims are taken to be unbound and unused"),
    _Wanted(VOLUMES, "bound volumes are taken to be reachable from every node"),
    _Wanted(LOCATIONS, "latencies are those of node labels"),
    _Wanted(POLICIES, "the planner's own assumptions hold"),
)


def live_cluster(api: Api, namespace: str, progress: Progress) -> Cluster:
    """Read the cluster.

    What may not be read of all namespaces is read of one; what may not be read at all is assumed,
    and the cluster's notices say what.

    Args:
        api: the cluster.
        namespace: the one.
        progress: told how much is done and what is being done.

    Raises:
        ClusterError: no answer, or nodes may not be read.
        EngineError: a node cannot be read, or the cluster is too large.
    """
    documents: list[Any] = []
    unread: list[_Unread] = []
    for number, wanted in enumerate(_WANTED):
        share = number / len(_WANTED)
        documents += _read(api, wanted, namespace, unread, partial(progress, share))
    documents += _namespaces_of_all_pipelines(api, namespace)
    cluster = read_objects(documents, name=SOURCE)
    notices = [*_notices(unread), *_namespace_notices(api, namespace)]
    return replace(cluster, notices=(*notices, *cluster.notices))


def _namespaces_of_all_pipelines(api: Api, namespace: str) -> list[JsonObject]:
    """Namespaces that plan all KFP runs: all there are, or if we may not list them, the one."""
    selector = f"{PIPELINES_LABEL}={ALL_PIPELINES}"
    try:
        pages = list(api.pages(NAMESPACES, label_selector=selector))
    except ClusterForbiddenError:
        raw = object_if_allowed(api, NAMESPACES, namespace)
        return [] if raw is None else [raw]
    return [raw for page in pages for raw in page.items]


def _namespace_notices(api: Api, namespace: str) -> list[Notice]:
    if not lacks_namespace(api, namespace):
        return []
    return [Notice("no-namespace", f"there is no namespace {namespace} in the cluster")]


def _notices(unread: Sequence[_Unread]) -> list[Notice]:
    """One for all that may not be read: the first refusal speaks for the others."""
    if not unread:
        return []
    kinds = ", ".join(each.kind.plural for each in unread)
    assumed = "; ".join(each.without for each in unread)
    return [Notice("not-allowed", f"may not read {kinds}: {assumed} ({unread[0].refusal})")]


def _read(
    api: Api,
    wanted: _Wanted,
    namespace: str,
    unread: list[_Unread],
    tell: Callable[[str], None],
) -> list[JsonObject]:
    kind = wanted.kind
    try:
        return _list(api, kind, "", tell)
    except ClusterMissingError:
        # Ours: the controller is not installed, and there are none.
        return []
    except ClusterForbiddenError as error:
        if not wanted.without:
            raise ClusterForbiddenError(
                f"{error}; without nodes nothing can be planned: ask for a Cluster file instead,"
                " which whoever may list nodes makes with `kfp-placement cluster live --output"
                " cluster.yaml`"
            ) from error
        objects, without = _of_one_namespace(api, wanted, namespace, tell)
        unread.append(_Unread(kind, without, error))
        return objects


def _of_one_namespace(
    api: Api, wanted: _Wanted, namespace: str, tell: Callable[[str], None]
) -> tuple[list[JsonObject], str]:
    """Those of one namespace, or none; and what that means for the plan."""
    if wanted.kind.namespaced:
        try:
            objects = _list(api, wanted.kind, namespace, tell)
            return objects, f"only {wanted.kind.plural} of namespace {namespace} are counted"
        except ClusterForbiddenError:
            pass  # the first refusal is reported
    return [], wanted.without


def _list(api: Api, kind: Kind, namespace: str, tell: Callable[[str], None]) -> list[JsonObject]:
    objects: list[JsonObject] = []
    tell(f"reading {kind.plural}")
    for page in api.pages(kind, namespace=namespace):
        objects += map(_slim, page.items)
        tell(f"reading {kind.plural}: {len(objects):,}")
        if len(objects) > MAX_OBJECTS:
            raise LimitError(f"more than {MAX_OBJECTS:,} {kind.plural}; that is too many to read")
    return objects


def _slim(raw: Mapping[str, Any]) -> JsonObject:
    """Without what is not needed: most of what pods weigh, and their environment."""
    return {
        key: _slim_value(value)
        for key, value in raw.items()
        if key not in UNUSED_KEYS or not isinstance(value, dict | list)
    }


def _slim_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _slim(value)
    if isinstance(value, list):
        return [_slim_value(each) for each in value]
    return value
