"""A live cluster, read as what `kubectl get nodes,pods,pvc,pv,loc,plpol -A` prints is."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kfp_placement.live.exceptions import ClusterError, ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.kinds import (
    LOCATIONS,
    POLICIES,
    Api,
    JsonObject,
    lacks_namespace,
    object_if_allowed,
    objects,
)
from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.plans.progress import Progress
from kfp_placement_engine.readers.cluster_file import UNUSED_KEYS
from kfp_placement_engine.readers.kubernetes.objects import read_objects
from kfp_placement_kube.kinds import CLAIMS, NAMESPACES, NODES, PODS, VOLUMES, Kind

MAX_OBJECTS = 500_000
"""Objects of a cluster that are read."""

SOURCE = "live"
"""What the cluster is called in a plan."""


_WANTED = {
    NODES: "",
    PODS: "room on nodes is unknown: they are taken to be empty",
    CLAIMS: "volume claims are taken to be unbound and unused",
    VOLUMES: "bound volumes are taken to be reachable from every node",
    LOCATIONS: "latencies are those of node labels",
    POLICIES: "the planner's own assumptions hold",
}
"""Kinds to read, and what is assumed where one may not be read; "" = without it no plan is made."""


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
    unread: dict[str, str] = {}
    refused = ""
    for number, kind in enumerate(_WANTED):
        tell = partial(progress, number / len(_WANTED))
        try:
            documents += _list(api, kind, "", tell)
        except ClusterMissingError:
            pass  # ours: the controller is not installed, and there are none
        except ClusterForbiddenError as error:
            # The first refusal speaks for the others.
            refused = refused or str(error)
            found, unread[kind.plural] = _read_namespace(api, kind, namespace, error, tell)
            documents += found
    documents += _namespaces_of_all_pipelines(api, namespace)
    cluster = read_objects(documents, name=SOURCE)
    notices: list[Notice] = []
    if unread:
        assumed = f"{', '.join(unread)}: {'; '.join(unread.values())} ({refused})"
        notices.append(Notice("not-allowed", f"may not read {assumed}"))
    if lacks_namespace(api, namespace):
        missing = f"there is no namespace {namespace} in the cluster"
        notices.append(Notice("no-namespace", missing))
    return replace(cluster, notices=(*notices, *cluster.notices))


def _namespaces_of_all_pipelines(api: Api, namespace: str) -> list[JsonObject]:
    """Namespaces that plan all KFP runs: all there are, or if we may not list them, the one."""
    selector = f"{PIPELINES_LABEL}={ALL_PIPELINES}"
    try:
        return list(objects(api, NAMESPACES, label_selector=selector))
    except ClusterForbiddenError:
        raw = object_if_allowed(api, NAMESPACES, namespace)
        return [] if raw is None else [raw]


def _read_namespace(
    api: Api, kind: Kind, namespace: str, refusal: ClusterError, tell: Callable[[str], None]
) -> tuple[list[JsonObject], str]:
    """The objects of one namespace where not all may be listed, else none; and what is assumed."""
    without = _WANTED[kind]
    if not without:
        raise ClusterForbiddenError(
            f"{refusal}; without nodes nothing can be planned: ask for a Cluster file instead,"
            " which whoever may list nodes makes with `kfp-placement cluster live --output"
            " cluster.yaml`"
        ) from refusal
    if kind.namespaced:
        try:
            found = _list(api, kind, namespace, tell)
            return found, f"only {kind.plural} of namespace {namespace} are counted"
        except ClusterForbiddenError:
            pass  # the first refusal is reported
    return [], without


def _list(api: Api, kind: Kind, namespace: str, tell: Callable[[str], None]) -> list[JsonObject]:
    found: list[JsonObject] = []
    tell(f"reading {kind.plural}")
    for page in api.pages(kind, namespace=namespace):
        found += map(_slim, page.items)
        tell(f"reading {kind.plural}: {len(found):,}")
        if len(found) > MAX_OBJECTS:
            raise LimitError(f"more than {MAX_OBJECTS:,} {kind.plural}; that is too many to read")
    return found


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
