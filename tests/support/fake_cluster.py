"""An API server of plain dicts, as the live commands ask it."""

import copy
from collections.abc import Iterator
from typing import Any

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterConflictError, ClusterMissingError
from kfp_placement.live.kinds import (
    CORE_EVENTS,
    HISTORIES,
    LOCATIONS,
    PLACEMENTS,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
    TEMPLATE_KINDS,
    WORKFLOWS,
)
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS, JsonObject, Kind
from kfp_placement_kube.responses import Page, StreamEvent, page_of

KINDS = {
    kind.kind: kind
    for kind in [
        *(NAMESPACES, NODES, PODS, CORE_EVENTS, WORKFLOWS),
        *(PLACEMENTS, POLICIES, LOCATIONS, RUN_QUEUES, RUN_REQUESTS, HISTORIES),
        *TEMPLATE_KINDS.values(),
    ]
}
"""Kinds of the objects that a cluster of plain dicts holds, by name."""

ARGO = "workflows.argoproj.io"


class FakeCluster(ClusterApi):
    """Holds objects; answers gets, lists with selectors, merge patches and scripted streams.

    Attributes:
        namespace: the context's.
        refused: errors to raise, by the start of the path.
        streams: contents of each watch in turn: changes, or an error that ends it.
        request_streams: contents of each watch of RunRequests in turn.
        writes: path and patch of every write, those of dry runs included.
    """

    def __init__(self, namespace: str = "team-a") -> None:
        """Hold nothing yet."""
        self.namespace = namespace
        self.refused: dict[str, Exception] = {}
        self.streams: list[list[Any]] = []
        self.request_streams: list[list[Any]] = []
        self.writes: list[tuple[str, Any]] = []
        self._objects: dict[str, JsonObject] = {}
        self._kinds: set[str] = set()

    def serve(self, *kinds: Kind) -> None:
        """Know kinds of which there are no objects."""
        self._kinds.update(kind.plural for kind in kinds)

    def forget(self, kind: Kind) -> None:
        """Forget a kind."""
        self._kinds.remove(kind.plural)

    def put(self, raw: JsonObject) -> None:
        """Hold an object, which says its kind."""
        kind = KINDS[raw["kind"]]
        self.serve(kind)
        metadata = raw["metadata"]
        metadata.setdefault("resourceVersion", "1")
        self._objects[kind.path(metadata.get("namespace", ""), metadata["name"])] = raw

    def put_namespace(self, name: str, labels: Any = None) -> None:
        """Hold a namespace."""
        self.put({"kind": NAMESPACES.kind, "metadata": {"name": name, "labels": labels or {}}})

    def remove(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Remove it."""
        del self._objects[kind.path(namespace, name)]

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """An object, or None."""
        path = kind.path(namespace, name)
        self.check_access(path)
        return copy.deepcopy(self._objects.get(path))

    def pages(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        **_: Any,
    ) -> Iterator[Page]:
        """Pages of two objects, whatever is asked for."""
        self.check_access(kind.path(namespace))
        if kind.plural not in self._kinds:
            raise ClusterMissingError("404 page not found")
        # As in the API's own lists, items do not say what they are.
        chosen = [
            {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
            for place, raw in sorted(self._objects.items())
            if place.startswith(f"{kind.root}/")
            and place.rpartition("/")[0].endswith(f"/{kind.plural}")
            and namespace in ("", raw["metadata"].get("namespace"))
            and _selected(raw, label_selector, field_selector)
        ]
        for start in range(0, max(len(chosen), 1), 2):
            page = copy.deepcopy(chosen[start : start + 2])
            yield page_of(kind, {"metadata": {"resourceVersion": "7"}, "items": page})

    def create(self, kind: Kind, body: Any, *, dry_run: bool = False) -> JsonObject:
        """Keep a new object."""
        metadata = body["metadata"]
        self.check_access(kind.path(metadata.get("namespace", "")))
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        self.writes.append((path, body))
        if kind.plural not in self._kinds:
            raise ClusterMissingError("404 page not found")
        if path in self._objects:
            raise ClusterConflictError(f"{metadata['name']} already exists")
        if not dry_run:
            self._objects[path] = copy.deepcopy(body)
        return dict(body)

    def patch(
        self, kind: Kind, name: str, namespace: str, patch: Any, *, dry_run: bool = False
    ) -> JsonObject:
        """Change an object, if the patch's version is the object's."""
        path = kind.path(namespace, name)
        self.check_access(path)
        self.writes.append((path, patch))
        raw = self.get(kind, name, namespace)
        if raw is None:
            raise ClusterMissingError(f"{path} not found")
        version = patch.get("metadata", {}).get("resourceVersion")
        if version not in (None, raw["metadata"].get("resourceVersion")):
            raise ClusterConflictError("the object has been modified")
        merged = _merged(raw, patch)
        if not dry_run:
            self._objects[path] = merged
        return merged

    def stream(
        self,
        kind: Kind,
        resource_version: str,
        *,
        namespace: str = "",
        field_selector: str = "",
        **_: Any,
    ) -> Iterator[StreamEvent]:
        """The next of the scripted streams; an empty one when there are none left."""
        self.check_access(kind.path(namespace))
        streams = self.request_streams if kind == RUN_REQUESTS else self.streams
        for each in streams.pop(0) if streams else ():
            if isinstance(each, Exception):
                raise each
            yield each

    def check_access(self, path: str) -> None:
        for start, error in self.refused.items():
            if path.startswith(start):
                raise error


def _merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), part)
    return merged


def _selected(raw: JsonObject, label_selector: str, field_selector: str) -> bool:
    for term in filter(None, label_selector.split(",")):
        key, _, value = term.partition("=")
        label = raw["metadata"].get("labels", {}).get(key.removesuffix("!"))
        if (label == value) is key.endswith("!"):
            return False
    for term in filter(None, field_selector.split(",")):
        key, _, value = term.partition("=")
        value_there: Any = raw
        for part in key.split("."):
            value_there = value_there.get(part, {})
        # What is not set is empty, as for the API server.
        if (value_there or "") != value:
            return False
    return True


def workflow(name: str, namespace: str = "team-a", run_id: str = "", run_name: str = "") -> Any:
    """A Workflow's metadata, as KFP's API server writes it."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"pipeline/runid": run_id},
        "annotations": {"pipelines.kubeflow.org/run_name": run_name},
    }
    return {"apiVersion": WORKFLOWS.api_version, "kind": WORKFLOWS.kind, "metadata": metadata}


def executor_pod(
    step: str,
    *,
    run: str = "taxi-x7k2p",
    namespace: str = "team-a",
    node: str = "",
    gates: tuple[str, ...] = (),
    **status: Any,
) -> Any:
    """The pod of a step of a KFP run, as Argo makes it."""
    spec: JsonObject = {"containers": [{"name": "main", "image": "busybox"}]}
    if node:
        spec["nodeName"] = node
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{run}-{step}",
            "namespace": namespace,
            "uid": f"uid-{step}",
            "creationTimestamp": "2026-11-20T10:00:10Z",
            "labels": {f"{ARGO}/workflow": run},
            "annotations": {f"{ARGO}/node-name": f"{run}.root.{step}.executor"},
        },
        "spec": spec,
        "status": {"phase": "Pending", **status},
    }
