"""A thin client of the API server: what may be asked of it, for any kind, in plain dicts.

The official client's models take 1.6 GB for 5,000 pods and drop fields that they do not know.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from kfp_placement_kube.answers import JsonObject, Page, Stream, page_of, typed
from kfp_placement_kube.exceptions import ConflictError, GarbledError, NotFoundError
from kfp_placement_kube.kinds import Kind
from kfp_placement_kube.observer import SILENT, Observer
from kfp_placement_kube.requests import Requests
from kfp_placement_kube.transport import Transport

PAGE_SIZE = 500
"""Objects that are asked for at a time: 7 MB of pods of 13 kB."""

MAX_TRIES = 5
"""Writes of one object that others may come before."""

ObjectT = TypeVar("ObjectT")
ResultT = TypeVar("ResultT")

_MERGE_CONTENT = "application/merge-patch+json"

_APPLY_CONTENT = "application/apply-patch+yaml"
"""What the API server calls it; JSON is YAML."""


class Selection(TypedDict, total=False):
    """Which objects of a kind; by default all.

    Attributes:
        namespace: only this one's; "" = all.
        label_selector: only those, in Kubernetes' form.
        field_selector: only those, likewise.
    """

    namespace: str
    label_selector: str
    field_selector: str


class Listing(NamedTuple):
    """What there is of a kind.

    Attributes:
        items: page by page, as they are asked for; an error may come in between.
        resource_version: of the whole; a stream that starts there misses nothing.
    """

    items: Iterator[JsonObject]
    resource_version: str


class KubeClient:
    """The API server as one account sees it; safe to use from several threads.

    Attributes:
        observer: is notified of everything that this client and its watches do.
    """

    def __init__(self, transport: Transport, observer: Observer = SILENT) -> None:
        """Nothing is opened yet.

        Args:
            transport: how to reach the server.
            observer: is notified of everything that this client and its watches do.
        """
        self.observer = observer
        self._transport = transport
        self._requests = Requests(transport, observer)

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """One object, or None if there is none.

        Raises:
            KubernetesError: refused, or no answer.
        """
        try:
            return self._requests.ask("get", kind, kind.path(namespace, name))
        except NotFoundError:
            return None

    def get_path(self, path: str) -> JsonObject:
        """What is at an address, such as the description of an API group.

        Raises:
            NotFoundError: nothing.
            KubernetesError: refused, or no answer.
        """
        return self._requests.ask("get", None, path)

    def list(
        self, kind: Kind, *, limit: int = PAGE_SIZE, **selection: Unpack[Selection]
    ) -> Listing:
        """All objects of a kind, asked for in pages.

        Args:
            kind: which.
            limit: objects in a page.
            selection: only those.

        Raises:
            KubernetesError: refused, or no answer.
        """
        pages = self.pages(kind, limit=limit, **selection)
        first = next(pages)
        if not first.resource_version:
            raise GarbledError(f"{kind.path()}: the answer is not a list", why="no list")
        return Listing(_items(first, pages), first.resource_version)

    def pages(
        self, kind: Kind, *, limit: int = PAGE_SIZE, **selection: Unpack[Selection]
    ) -> Iterator[Page]:
        """All objects of a kind, a page at a time; each is asked for when it is wanted.

        Args:
            kind: which.
            limit: objects in a page.
            selection: only those.

        Raises:
            KubernetesError: refused, or no answer.
        """
        path, query = _selected(kind, selection)
        further = ""
        while True:
            asked = {**query, "limit": str(limit), "continue": further}
            page = page_of(kind, self._requests.ask("list", kind, path, query=asked))
            further = page.further
            yield page
            if not further:
                return
            # A page of pods takes 50 MB: the next one is read when this one is gone.
            del page

    def create(self, kind: Kind, body: Mapping[str, Any], *, dry_run: bool = False) -> JsonObject:
        """Create an object; returns it as the server keeps it.

        Args:
            kind: what it is.
            body: the object; its kind and version may be left out.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            ConflictError: there is one of that name.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(body.get("metadata", {}).get("namespace", ""))
        return self._requests.write("create", kind, path, typed(kind, body), dry_run=dry_run)

    def replace(self, kind: Kind, body: Mapping[str, Any], *, subresource: str = "") -> JsonObject:
        """Write a whole object; with a resourceVersion in it only if nobody has written since.

        Raises:
            ConflictError: somebody has.
            KubernetesError: refused, or no answer.
        """
        path = _path_of(kind, body, subresource)
        return self._requests.write("update", kind, path, typed(kind, body))

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object by a merge patch; returns it as it is then.

        Args:
            kind: what it is.
            name: of the object.
            namespace: where; "" for kinds without.
            patch: the change.
            subresource: such as `status`.
            dry_run: the server checks the write and keeps nothing.

        Raises:
            NotFoundError: there is none.
            ConflictError: the patch names a resourceVersion, and somebody has written since.
            KubernetesError: refused, or no answer.
        """
        path = kind.path(namespace, name, subresource)
        return self._requests.write("patch", kind, path, patch, _MERGE_CONTENT, dry_run=dry_run)

    def apply(
        self, kind: Kind, body: Mapping[str, Any], manager: str, *, subresource: str = ""
    ) -> JsonObject:
        """Set fields by server-side apply, also where others have set them.

        Fields that the manager has set before and that are not in the body are removed.

        Args:
            kind: what it is.
            body: kind, version, name and the fields; with a uid only that very object.
            manager: owns these fields.
            subresource: such as `status`.

        Raises:
            ConflictError: there is another object of that name.
            KubernetesError: refused, or no answer.
        """
        path = _path_of(kind, body, subresource)
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
        """Changes since a version, as they happen.

        Args:
            kind: of what.
            resource_version: from where, as a list or an earlier change gave it; "" = from now.
            timeout_seconds: the server ends the stream then; None = when it likes, after minutes.
            silence_seconds: a stream without a word for this long has broken; None = half a minute
                after the server should have ended it.
            selection: only those.

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
    now: ObjectT,
    write: Callable[[ObjectT], ResultT],
    read: Callable[[], ObjectT],
    *,
    again_on: tuple[type[Exception], ...] = (ConflictError,),
) -> ResultT:
    """Write by what an object is now, and by what it is then where others have written in between.

    Args:
        now: the object, or whatever is known of it.
        write: writes what follows from that, naming the version that it was decided by.
        read: gives the same as `now`, as it is when others have written.
        again_on: how `write` says that they have; other errors end it.

    Returns:
        What `write` does; what the last of `MAX_TRIES` writes raises is raised.
    """
    for _ in range(MAX_TRIES - 1):
        try:
            return write(now)
        except again_on:
            now = read()
    return write(now)


def _path_of(kind: Kind, body: Mapping[str, Any], subresource: str) -> str:
    metadata = body["metadata"]
    return kind.path(metadata.get("namespace", ""), metadata["name"], subresource)


def _selected(kind: Kind, selection: Selection) -> tuple[str, dict[str, str]]:
    """Where objects are, and what to ask there for these alone."""
    return kind.path(selection.get("namespace", "")), {
        "labelSelector": selection.get("label_selector", ""),
        "fieldSelector": selection.get("field_selector", ""),
    }


def _items(page: Page | None, pages: Iterator[Page]) -> Iterator[JsonObject]:
    """The objects of this page and of all further ones, of which one at a time is kept."""
    while page is not None:
        yield from page.items
        page = None
        page = next(pages, None)
