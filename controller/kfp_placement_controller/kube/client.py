"""A thin client of the API server: what may be asked of it, for any kind, in plain dicts.

The official client's models take 1.6 GB for 5,000 pods and drop fields that they do not know.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self

from kfp_placement_controller.exceptions import NotFoundError
from kfp_placement_controller.kube.answers import Stream
from kfp_placement_controller.kube.kinds import Kind
from kfp_placement_controller.kube.requests import JsonObject, Requests
from kfp_placement_controller.kube.transport import Lines, Transport
from kfp_placement_controller.settings import Settings

PatchType = Literal["merge", "json", "strategic"]

PAGE_SIZE = 500
"""Objects that are asked for at a time: 7 MB of pods as KFP makes them."""

_PATCH_CONTENT: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Listing(NamedTuple):
    """What there is of a kind.

    Attributes:
        items: page by page, as they are asked for; an error may come in between.
        resource_version: of the whole; a stream that starts there misses nothing.
    """

    items: Iterator[JsonObject]
    resource_version: str


class KubeClient:
    """The API server as our account sees it; safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        """Open nothing yet."""
        self._requests = Requests(transport)

    @classmethod
    def from_settings(cls, settings: Settings, *, timeout_seconds: float | None = None) -> Self:
        """The client of a process.

        Args:
            settings: the process'.
            timeout_seconds: another limit of one request than the settings', such as a Lease needs.

        Raises:
            SettingsError: no usable configuration.
        """
        timeout = timeout_seconds or settings.request_timeout_seconds
        return cls(Transport(settings.kubeconfig, timeout))

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """One object, or None if there is none.

        Raises:
            KubernetesError: refused, or no answer.
        """
        try:
            return self._requests.ask("get", kind, "GET", kind.path(namespace, name))
        except NotFoundError:
            return None

    def get_path(self, path: str) -> JsonObject:
        """What is at an address, such as the description of an API group.

        Raises:
            NotFoundError: nothing.
            KubernetesError: refused, or no answer.
        """
        return self._requests.ask("get", None, "GET", path)

    def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
    ) -> Listing:
        """All objects of a kind, asked for in pages.

        Args:
            kind: which.
            namespace: only this one's; "" = all.
            label_selector: only those, in Kubernetes' form.
            field_selector: only those, likewise.
            limit: objects in a page.

        Raises:
            KubernetesError: refused, or no answer.
        """
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit),
        }
        path = kind.path(namespace)
        first = self._requests.ask("list", kind, "GET", path, query=query)
        version = first["metadata"]["resourceVersion"]
        return Listing(self._items(kind, path, query, first), version)

    def create(
        self, kind: Kind, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> JsonObject:
        """Create an object; returns it as the server keeps it.

        Args:
            kind: what it is.
            body: the object; its kind and version may be left out.
            namespace: where; by default where the object says.
            subresource: such as `token`, of the object named in the body.

        Raises:
            ConflictError: there is one of that name.
            KubernetesError: refused, or no answer.
        """
        metadata = body.get("metadata", {})
        namespace = namespace or metadata.get("namespace", "")
        path = kind.path(namespace, metadata["name"] if subresource else "", subresource)
        return self._requests.write("create", kind, "POST", path, _typed(kind, body))

    def replace(self, kind: Kind, body: Mapping[str, Any], *, subresource: str = "") -> JsonObject:
        """Write a whole object; with a resourceVersion in it only if nobody has written since.

        Raises:
            ConflictError: somebody has.
            KubernetesError: refused, or no answer.
        """
        metadata = body["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return self._requests.write("update", kind, "PUT", path, _typed(kind, body))

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: object,
        *,
        how: PatchType = "merge",
        subresource: str = "",
    ) -> JsonObject:
        """Change an object; returns it as it is then.

        Args:
            kind: what it is.
            name: of the object.
            namespace: where; "" for kinds without.
            patch: the change, in the form that `how` says.
            how: merge patch, JSON patch or strategic merge patch.
            subresource: such as `status`.

        Raises:
            NotFoundError: there is none.
            ConflictError: the patch names a resourceVersion, and somebody has written since.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(namespace, name, subresource)
        return self._requests.write("patch", kind, "PATCH", path, patch, _PATCH_CONTENT[how])

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> bool:
        """Delete an object; returns False if it was gone.

        Args:
            kind: what it is.
            name: of the object.
            namespace: where; "" for kinds without.
            uid: delete only that very object, not a later one of the same name.
            resource_version: delete it only if nobody has written since.

        Raises:
            ConflictError: it is another, or has changed.
            KubernetesError: refused, or no answer.
        """
        body: JsonObject = {"propagationPolicy": "Background"}
        asked = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {key: value for key, value in asked.items() if value}:
            body["preconditions"] = preconditions
        try:
            self._requests.write("delete", kind, "DELETE", kind.path(namespace, name), body)
        except NotFoundError:
            return False
        return True

    def stream(
        self,
        kind: Kind,
        resource_version: str,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 60,
    ) -> Stream:
        """Changes since a version, as they happen.

        Args:
            kind: of what.
            resource_version: from where, as a list or an earlier change gave it.
            namespace: only this one's; "" = all.
            label_selector: only those, in Kubernetes' form.
            field_selector: only those, likewise.
            timeout_seconds: the server ends the stream then.

        Raises:
            ExpiredError: the server no longer knows that version: list again.
            KubernetesError: refused, or no answer.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        path = kind.path(namespace)
        # The server ends it in time; the margin is for a server that is late, or gone.
        response = self._requests.open(
            "watch", kind, "GET", path, query, silence=timeout_seconds + 30.0
        )
        return Stream(kind, Lines(response, path))

    def _items(
        self, kind: Kind, path: str, query: Mapping[str, str], page: JsonObject
    ) -> Iterator[JsonObject]:
        while True:
            # The items of a list do not say what they are; of metadata alone, none is null.
            yield from (_typed(kind, item) for item in page["items"] or ())
            further = page["metadata"].get("continue")
            if not further:
                return
            page = self._requests.ask(
                "list", kind, "GET", path, query={**query, "continue": further}
            )


def _typed(kind: Kind, body: Mapping[str, Any]) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}
