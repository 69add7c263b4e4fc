"""A thin client of the API server: requests for any kind, with objects as plain dicts.

The official client's models take 1.6 GB for 5,000 pods and drop fields that they do not know.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypedDict, TypeVar, Unpack

from kfp_placement_kube.exceptions import GarbledError, NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import JsonObject, Kind, key_of
from kfp_placement_kube.observer import SILENT, Observer
from kfp_placement_kube.requests import Requests
from kfp_placement_kube.responses import Page, Stream, page_of, typed
from kfp_placement_kube.transport import Transport

PAGE_SIZE = 500
"""Number of objects in a page of a list: 7 MB of pods of 13 kB."""

MAX_TRIES = 5
"""Largest number of attempts to write an object that others write at the same time."""

ObjectT = TypeVar("ObjectT")
ResultT = TypeVar("ResultT")

_MERGE_CONTENT = "application/merge-patch+json"

_APPLY_CONTENT = "application/apply-patch+yaml"
"""Content type of server-side apply; the body is JSON, which is valid YAML."""


class Selection(TypedDict, total=False):
    """Restriction of a list or watch to some objects of a kind; empty = all objects.

    Attributes:
        namespace: namespace of the objects; "" = all namespaces.
        label_selector: selector of labels, in Kubernetes' form.
        field_selector: selector of fields, in Kubernetes' form.
    """

    namespace: str
    label_selector: str
    field_selector: str


class Listing(NamedTuple):
    """Objects of a kind, and the version at which they were listed.

    Attributes:
        items: objects, requested page by page; so an error may come between two of them.
        resource_version: version of the list; a stream that starts there misses no change.
    """

    items: Iterator[JsonObject]
    resource_version: str


class KubeClient:
    """A client of the API server for one account; safe to use from several threads.

    Attributes:
        observer: observer of everything that this client and its watches do.
    """

    def __init__(self, transport: Transport, observer: Observer = SILENT) -> None:
        """Make a client; the first request opens a connection.

        Args:
            transport: connections to the server.
            observer: observer of everything that this client and its watches do.
        """
        self.observer = observer
        self._transport = transport
        self._requests = Requests(transport, observer)

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """Return one object, or None where there is no such object.

        Raises:
            KubernetesError: refused, or no answer.
        """
        try:
            return self._requests.ask("get", kind, kind.path(namespace, name))
        except NotFoundError:
            return None

    def get_path(self, path: str) -> JsonObject:
        """Return the object at an address, such as the description of an API group.

        Raises:
            NotFoundError: nothing is there.
            KubernetesError: refused, or no answer.
        """
        return self._requests.ask("get", None, path)

    def list(
        self, kind: Kind, *, limit: int = PAGE_SIZE, **selection: Unpack[Selection]
    ) -> Listing:
        """List objects of a kind, requested in pages.

        Args:
            kind: kind of the objects.
            limit: number of objects in a page.
            selection: restriction to some of the objects.

        Raises:
            KubernetesError: refused, or no answer.
        """
        pages = self.pages(kind, limit=limit, **selection)
        first = next(pages)
        return Listing(_items(first, pages), first.resource_version)

    def pages(
        self, kind: Kind, *, limit: int = PAGE_SIZE, **selection: Unpack[Selection]
    ) -> Iterator[Page]:
        """Yield the pages of a list; each is requested when the caller asks for it.

        Args:
            kind: kind of the objects.
            limit: number of objects in a page.
            selection: restriction to some of the objects.

        Raises:
            KubernetesError: refused, or no answer.
        """
        path, query = _selected(kind, selection)
        token = ""
        while True:
            parameters = {**query, "limit": str(limit), "continue": token}
            page = page_of(kind, self._requests.ask("list", kind, path, query=parameters))
            # Else a foreign answer, such as a proxy's, would pass as an empty last page.
            if not page.resource_version:
                raise GarbledError(f"{path}: the answer is not a list", why="no list")
            token = page.continue_token
            yield page
            if not token:
                return
            # A page of pods takes 50 MB: free this one before the next one is read.
            del page

    def create(self, kind: Kind, body: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object and return it as the server keeps it.

        Args:
            kind: kind of the object.
            body: the object; its kind and version may be missing.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            WriteConflictError: there is an object of that name.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(body.get("metadata", {}).get("namespace", ""))
        return self._requests.write("create", kind, path, typed(kind, body), dry_run=dry_run)

    def replace(self, kind: Kind, body: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace an object.

        If `body` has a resourceVersion, replace only an object that nobody has written since.

        Raises:
            WriteConflictError: somebody has written since.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(*key_of(body), subresource)
        return self._requests.write("update", kind, path, typed(kind, body))

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object by a merge patch and return the changed object.

        Args:
            kind: kind of the object.
            name: name of the object.
            namespace: namespace of the object; "" for kinds without namespaces.
            patch: merge patch.
            subresource: part of the object, such as `status`; "" = the object itself.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            NotFoundError: there is no such object.
            WriteConflictError: the patch names a resourceVersion, and somebody has written since.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(namespace, name, subresource)
        return self._requests.write("patch", kind, path, patch, _MERGE_CONTENT, dry_run=dry_run)

    def apply(
        self, kind: Kind, body: JsonObject, manager: str, *, subresource: str = ""
    ) -> JsonObject:
        """Set fields by server-side apply, even those that others have set.

        Fields that the manager has set before and that are not in the body are removed.

        Args:
            kind: kind of the object.
            body: name of the object, and the fields; a uid allows only that very object.
            manager: name of the owner of these fields.
            subresource: part of the object, such as `status`; "" = the object itself.

        Raises:
            WriteConflictError: there is another object of that name.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(*key_of(body), subresource)
        query = {"fieldManager": manager, "force": "true"}
        return self._requests.write(
            "patch", kind, path, typed(kind, body), _APPLY_CONTENT, query=query
        )

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> bool:
        """Delete an object; return False if there was no such object.

        Args:
            kind: kind of the object.
            name: name of the object.
            namespace: namespace of the object; "" for kinds without namespaces.
            uid: uid that the object must have; a later one of its name has another; "" = any.
            resource_version: version that the object must still have; "" = any.

        Raises:
            WriteConflictError: the object has another uid, or has changed.
            KubernetesError: refused, or no answer.
        """
        body: JsonObject = {"propagationPolicy": "Background"}
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {key: value for key, value in conditions.items() if value}:
            body["preconditions"] = preconditions
        try:
            self._requests.write("delete", kind, kind.path(namespace, name), body)
        except NotFoundError:
            return False
        return True

    def stream(
        self,
        kind: Kind,
        resource_version: str,
        *,
        timeout_seconds: int | None = 60,
        silence_seconds: float | None = None,
        **selection: Unpack[Selection],
    ) -> Stream:
        """Open a stream of changes since a version.

        Args:
            kind: kind of the objects.
            resource_version: version to start from, of a list or an earlier change; "" = now.
            timeout_seconds: time after which the server ends the stream; None = some minutes.
            silence_seconds: time without a byte after which the stream counts as broken; None =
                half a minute longer than `timeout_seconds`, or the transport's own time without it.
            selection: restriction to some of the objects.

        Raises:
            ExpiredError: the server no longer knows that version: list again.
            KubernetesError: refused, or no answer.
        """
        path, query = _selected(kind, selection)
        query |= {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": "" if timeout_seconds is None else str(timeout_seconds),
        }
        if silence_seconds is None and timeout_seconds is not None:
            silence_seconds = timeout_seconds + 30.0
        response = self._requests.open("watch", kind, path, query, silence=silence_seconds)
        return Stream(kind, self._transport.lines(response, path), self.observer)


def modify(
    current: ObjectT,
    write: Callable[[ObjectT], ResultT],
    read: Callable[[], ObjectT],
    *,
    retry_on: tuple[type[Exception], ...] = (WriteConflictError,),
) -> ResultT:
    """Write an object; if others have written it since it was read, read and write again.

    If `MAX_TRIES` writes fail, the error of the last one is raised.

    Args:
        current: the object as it was read, or a value that `write` decides from.
        write: function that decides and writes; the write names the version it was decided from.
        read: function that reads the value again, after others have written.
        retry_on: errors of `write` which mean that others have written; other errors are raised.

    Returns:
        The result of `write`.
    """
    for _ in range(MAX_TRIES - 1):
        try:
            return write(current)
        except retry_on:
            current = read()
    return write(current)


def _selected(kind: Kind, selection: Selection) -> tuple[str, dict[str, str]]:
    """Return the address of a kind's objects, and the parameters that select some of them."""
    return kind.path(selection.get("namespace", "")), {
        "labelSelector": selection.get("label_selector", ""),
        "fieldSelector": selection.get("field_selector", ""),
    }


def _items(page: Page | None, pages: Iterator[Page]) -> Iterator[JsonObject]:
    """Yield the objects of this page and of the next ones, with one page at a time in memory."""
    while page is not None:
        yield from page.items
        page = None
        page = next(pages, None)
