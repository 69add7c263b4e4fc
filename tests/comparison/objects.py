"""What the stand-in of an API server holds: kinds, addresses, selectors, pages."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind that is served."""

    api_version: str
    kind: str
    namespaced: bool = True


OURS = "kfp-placement.dev/v1alpha1"

KINDS: Mapping[str, Kind] = {
    "nodes": Kind("v1", "Node", namespaced=False),
    "namespaces": Kind("v1", "Namespace", namespaced=False),
    "pods": Kind("v1", "Pod"),
    "events": Kind("v1", "Event"),
    "persistentvolumeclaims": Kind("v1", "PersistentVolumeClaim"),
    "persistentvolumes": Kind("v1", "PersistentVolume", namespaced=False),
    "leases": Kind("coordination.k8s.io/v1", "Lease"),
    "workflows": Kind("argoproj.io/v1alpha1", "Workflow"),
    "pipelineplacements": Kind(OURS, "PipelinePlacement"),
    "placementpolicies": Kind(OURS, "PlacementPolicy", namespaced=False),
    "locations": Kind(OURS, "Location", namespaced=False),
    "runqueues": Kind(OURS, "RunQueue"),
    "runrequests": Kind(OURS, "RunRequest"),
    "selfsubjectaccessreviews": Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", False),
}
"""By plural; events are also served by their newer group."""

_PLURALS = {kind.kind: plural for plural, kind in KINDS.items()}


@dataclass(frozen=True)
class Address:
    """Where something is.

    Attributes:
        api_version: group and version.
        plural: of the kind; "" = the group itself.
        namespace: "" = all.
        name: "" = all.
        part: of the object, such as `status`.
    """

    api_version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    part: str = ""

    def named(self, name: str) -> "Address":
        """One of these objects."""
        return replace(self, name=name)


def read_address(path: str) -> Address:
    """The address that a path names."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    size = 2 if parts[0] == "api" else 3
    version, rest = "/".join(parts[1:size]), parts[size:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    return Address(version, *_three(rest, namespace))


def _three(rest: list[str], namespace: str) -> tuple[str, str, str, str]:
    plural, name, part = [*rest, "", "", ""][:3]
    return plural, namespace, name, part


class Store:
    """Objects by kind, namespace and name."""

    def __init__(self, objects: Iterable[JsonObject] = ()) -> None:
        """Hold objects, each with its kind in it."""
        self._objects: dict[tuple[str, str, str], JsonObject] = {}
        self._version = 0
        for each in objects:
            metadata = each["metadata"]
            address = Address("", _PLURALS[each["kind"]], metadata.get("namespace", ""))
            self.put(address.named(metadata["name"]), each)

    def put(self, address: Address, raw: JsonObject) -> None:
        """Hold one, as a new version."""
        self._version += 1
        kept = copy.deepcopy(raw)
        kept["metadata"]["resourceVersion"] = str(self._version)
        self._objects[address.plural, address.namespace, address.name] = kept

    def get(self, address: Address) -> JsonObject | None:
        """One, if there is one."""
        return copy.deepcopy(self._objects.get((address.plural, address.namespace, address.name)))

    def page(self, address: Address, query: Mapping[str, str], accept: str) -> JsonObject:
        """Some of a list."""
        found = [
            raw
            for (plural, _, _), raw in sorted(self._objects.items())
            if plural == address.plural and self.selects(address, query, raw)
        ]
        start = int(query.get("continue") or 0)
        limit = int(query.get("limit") or len(found) or 1)
        more = str(start + limit) if start + limit < len(found) else ""
        items = copy.deepcopy(found[start : start + limit])
        if "PartialObjectMetadata" in accept:
            items = [{"metadata": raw["metadata"]} for raw in items]
        kind = KINDS[address.plural]
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": {"resourceVersion": str(self._version), "continue": more},
            "items": items,
        }

    @staticmethod
    def selects(address: Address, query: Mapping[str, str], raw: JsonObject) -> bool:
        """Whether a list or watch holds an object."""
        metadata = raw.get("metadata") or {}
        if address.namespace not in ("", metadata.get("namespace")):
            return False
        labels = {"metadata": {"labels": metadata.get("labels") or {}}}
        return all(
            _holds(term, labels["metadata"]["labels"].get(_key(term)))
            for term in filter(None, query.get("labelSelector", "").split(","))
        ) and all(
            _holds(term, _field(raw, _key(term)) or "")
            for term in filter(None, query.get("fieldSelector", "").split(","))
        )


def _key(term: str) -> str:
    return term.partition("=")[0].removesuffix("!")


def _holds(term: str, value: object) -> bool:
    key, equals, wanted = term.partition("=")
    if not equals:
        return value is not None
    return (value == wanted.removeprefix("=")) is not key.endswith("!")


def _field(raw: JsonObject, path: str) -> Any:
    found: Any = raw
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
