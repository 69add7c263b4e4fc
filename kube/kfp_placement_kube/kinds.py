"""Kinds of objects with their addresses in the API server; those of Kubernetes itself by name."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

JsonObject = dict[str, Any]
"""An object as the API server prints it, a part of one, or a merge patch of one."""


def key_of(raw: JsonObject) -> tuple[str, str]:
    """Return the namespace ("" for kinds without) and the name of an object."""
    metadata = raw["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        api_version: group and version, or the version alone for the core group.
        plural: plural name, as in addresses.
        kind: name of the kind, as in objects.
        namespaced: whether its objects live in namespaces.
        metadata_only: whether only the metadata of the objects is requested.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True
    metadata_only: bool = False

    @property
    def group(self) -> str:
        """API group; "" = the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        """Address at which the API server describes the group's kinds."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the address of one object, or of all in a namespace or in the cluster.

        Args:
            namespace: namespace of the objects; "" = all namespaces, or a kind without namespaces.
            name: name of the object; "" = all objects.
            subresource: part of the object, such as `status`; "" = the object itself.
        """
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)


NODES = Kind("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Kind("v1", "namespaces", "Namespace", namespaced=False)
PODS = Kind("v1", "pods", "Pod")
CLAIMS = Kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Kind("v1", "persistentvolumes", "PersistentVolume", namespaced=False)
QUOTAS = Kind("v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Kind("v1", "limitranges", "LimitRange")
LEASES = Kind("coordination.k8s.io/v1", "leases", "Lease")
EVENTS = Kind("events.k8s.io/v1", "events", "Event")
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io/v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
