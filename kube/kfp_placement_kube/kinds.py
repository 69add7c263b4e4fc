"""Kinds of objects, and where the API server keeps them; those of Kubernetes itself by name."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        api_version: group and version, or the version alone for the core group.
        plural: as it is in addresses.
        kind: as it is in objects.
        namespaced: whether its objects live in namespaces.
        metadata_only: the server is asked for the metadata of its objects and nothing else.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True
    metadata_only: bool = False

    @property
    def group(self) -> str:
        """The API group; "" = the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        """Where the API server describes the group's kinds."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where one object is, or all of a namespace or of the cluster.

        Args:
            namespace: only this one's; "" = all, and always for kinds without namespaces.
            name: of the object.
            subresource: part of the object, such as `status`.
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
LEASES = Kind("coordination.k8s.io/v1", "leases", "Lease")
EVENTS = Kind("events.k8s.io/v1", "events", "Event")
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io/v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
