"""A live cluster, read like the output of `kubectl get nodes,pods,pvc,pv,loc,plpol -A`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterError, ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.kinds import (
    LOCATIONS,
    POLICIES,
    lacks_namespace,
    object_if_allowed,
    objects,
)
from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.plans.progress import Progress
from kfp_placement_engine.readers.cluster_file import UNUSED_KEYS
from kfp_placement_engine.readers.kubernetes.dumps import read_dump
from kfp_placement_kube.kinds import (
    CLAIMS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    VOLUMES,
    JsonObject,
    Kind,
)

MAX_OBJECTS = 500_000
"""Largest number of objects of one kind that are read."""

SOURCE = "live"
"""Name of the cluster in a plan."""

_WANTED = {
    NODES: "",
    PODS: "room on nodes is unknown: they are taken to be empty",
    CLAIMS: "volume claims are taken to be unbound and unused",
    VOLUMES: "bound volumes are taken to be reachable from every node",
    LOCATIONS: "latencies are those of node labels",
    POLICIES: "the planner's own assumptions hold",
}
"""Kinds to read -> what is assumed if we may not read one; "" = no plan is made without it."""


def live_cluster(api: ClusterApi, namespace: str, progress: Progress) -> Cluster:
    """Read a cluster.

    A kind that we may not list in all namespaces is listed in one. For a kind that we may not list
    at all something is assumed, and the cluster's notices say what.

    Args:
        api: cluster to read.
        namespace: namespace that is listed if we may not list all.
        progress: receiver of reports on how far reading is.

    Raises:
        ClusterError: the cluster gives no answer, or we may not read nodes.
        EngineError: a node cannot be read, or the cluster is too large.
    """
    documents: list[Any] = []
    unread: dict[str, str] = {}
    refused = ""
    for number, kind in enumerate(_WANTED):
        tell = partial(progress, number / len(_WANTED))
        try:
            documents += _list(api, kind, "", tell)
        except ClusterMissingError:
            pass  # our own kind: without the controller there are no such objects
        except ClusterForbiddenError as error:
            # The first refusal speaks for the others.
            refused = refused or str(error)
            objects_of_one, unread[kind.plural] = _read_namespace(api, kind, namespace, error, tell)
            documents += objects_of_one
    for kind in (QUOTAS, LIMIT_RANGES):
        try:
            documents += _list(api, kind, namespace, partial(progress, 1.0))
        except ClusterMissingError:
            pass  # no server of Kubernetes lacks them
        except ClusterForbiddenError as error:
            refused = refused or str(error)
            unread[kind.plural] = f"{kind.plural} of namespace {namespace} are not counted"
    documents += _namespaces_of_all_pipelines(api, namespace)
    cluster = read_dump(documents, name=SOURCE)
    notices: list[Notice] = []
    if unread:
        assumed = f"{', '.join(unread)}: {'; '.join(unread.values())} ({refused})"
        notices.append(Notice("not-allowed", f"may not read {assumed}"))
    if lacks_namespace(api, namespace):
        missing = f"there is no namespace {namespace} in the cluster"
        notices.append(Notice("no-namespace", missing))
    return replace(cluster, notices=(*notices, *cluster.notices))


def _namespaces_of_all_pipelines(api: ClusterApi, namespace: str) -> list[JsonObject]:
    """Return the namespaces in which all KFP runs are planned.

    If we may not list namespaces, it is `namespace`, if we may read that.
    """
    selector = f"{PIPELINES_LABEL}={ALL_PIPELINES}"
    try:
        return list(objects(api, NAMESPACES, label_selector=selector))
    except ClusterForbiddenError:
        raw = object_if_allowed(api, NAMESPACES, namespace)
        return [] if raw is None else [raw]


def _read_namespace(
    api: ClusterApi, kind: Kind, namespace: str, refusal: ClusterError, tell: Callable[[str], None]
) -> tuple[list[JsonObject], str]:
    """Return the objects of one namespace, if we may list them, and what is assumed."""
    assumption = _WANTED[kind]
    if not assumption:
        raise ClusterForbiddenError(
            f"{refusal}; without nodes nothing can be planned: ask for a Cluster file instead,"
            " which whoever may list nodes makes with `kfp-placement cluster live --output"
            " cluster.yaml`"
        ) from refusal
    if kind.namespaced:
        try:
            objects_of_one = _list(api, kind, namespace, tell)
            return objects_of_one, f"only {kind.plural} of namespace {namespace} are counted"
        except ClusterForbiddenError:
            pass  # the first refusal is reported
    return [], assumption


def _list(
    api: ClusterApi, kind: Kind, namespace: str, tell: Callable[[str], None]
) -> list[JsonObject]:
    listed: list[JsonObject] = []
    tell(f"reading {kind.plural}")
    for page in api.pages(kind, namespace=namespace):
        listed += map(_slim, page.items)
        tell(f"reading {kind.plural}: {len(listed):,}")
        if len(listed) > MAX_OBJECTS:
            raise LimitError(f"more than {MAX_OBJECTS:,} {kind.plural}; that is too many to read")
    return listed


def _slim(raw: Mapping[str, Any]) -> JsonObject:
    """Return an object without keys that planning does not use, such as environments of pods."""
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
