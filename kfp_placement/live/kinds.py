"""The kinds of objects that the command line asks for, and how it asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from kfp_placement_engine.contract.keys import API_VERSION

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of object.

    Attributes:
        api_version: group and version, or the version alone.
        plural: as in addresses.
        kind: as in objects.
        namespaced: its objects live in namespaces.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "") -> str:
        """Where one object is, or all of a namespace, or of the cluster."""
        parts = ["apis" if "/" in self.api_version else "api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        return "/" + "/".join(parts)


NODES = Kind("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Kind("v1", "namespaces", "Namespace", namespaced=False)
PODS = Kind("v1", "pods", "Pod")
CLAIMS = Kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Kind("v1", "persistentvolumes", "PersistentVolume", namespaced=False)
EVENTS = Kind("v1", "events", "Event")
WORKFLOWS = Kind("argoproj.io/v1alpha1", "workflows", "Workflow")
PLACEMENTS = Kind(API_VERSION, "pipelineplacements", "PipelinePlacement")
POLICIES = Kind(API_VERSION, "placementpolicies", "PlacementPolicy", namespaced=False)
LOCATIONS = Kind(API_VERSION, "locations", "Location", namespaced=False)

NOT_INSTALLED = (
    "the cluster does not serve kind {}: the controller is not installed there; deploy/README.md"
    " of kfp-placement says how to"
)


class Api(Protocol):
    """An API server; every method raises `ClusterError`."""

    namespace: str

    def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """What is at a path."""
        ...

    def list(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        page_size: int = ...,
        accept: str = ...,
    ) -> Iterator[JsonObject]:
        """The pages of a list."""
        ...

    def create(self, path: str, body: object, *, dry_run: bool = False) -> JsonObject:
        """Create an object."""
        ...

    def patch(self, path: str, merge_patch: object, *, dry_run: bool = False) -> JsonObject:
        """Change an object by a merge patch."""
        ...

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[tuple[str, JsonObject]]:
        """Changes as they happen."""
        ...


def items(page: Mapping[str, Any]) -> Iterator[JsonObject]:
    """The objects of a page; what is none is passed over."""
    found = page.get("items")
    return (each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict))
