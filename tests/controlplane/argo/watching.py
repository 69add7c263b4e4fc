"""Objects of a kind as a watch shows them, and who is told of changes."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.objects import JsonObject
from tests.controlplane.waiting import wait_until

Key = tuple[str, str]
"""Namespace and name."""

PAUSE_SECONDS = 0.2
"""Pause before a watch that broke off is begun again."""


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an object."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def version_of(item: Mapping[str, Any]) -> int:
    """Return the resource version of an object as a number."""
    return int(item["metadata"].get("resourceVersion", 0))


class Watched:
    """A thread's view of one kind; begun again, from a new list, whenever it breaks off."""

    def __init__(
        self,
        api: Api,
        api_version: str,
        kind: str,
        changed: Callable[[JsonObject], None],
        **query: str,
    ) -> None:
        """Start nothing yet.

        Args:
            api: the API server.
            api_version: group and version.
            kind: the kind.
            changed: function called with every object that has changed or is gone.
            query: parameters of the request, such as `labelSelector`.
        """
        self._api = api
        self._kind = (api_version, kind)
        self._changed = changed
        self._query = query
        self._items: dict[Key, JsonObject] = {}
        self._gone: set[str] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._synced = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"watch {kind}", daemon=True)

    def start(self) -> None:
        """Start, and wait for the first list."""
        self._thread.start()
        wait_until(self._synced.is_set, f"the first list of {self._kind[1]}s")

    def stop(self) -> None:
        """Say that nothing more is wanted; the thread ends with its open request."""
        self._stopped.set()

    def items(self) -> list[JsonObject]:
        """Return the objects that there are."""
        with self._lock:
            return list(self._items.values())

    def get(self, key: Key) -> JsonObject | None:
        """One object."""
        with self._lock:
            return self._items.get(key)

    def put(self, item: JsonObject) -> None:
        """Take over what the server has answered to a write, unless something newer is known."""
        with self._lock:
            old = self._items.get(key_of(item))
            newer = old is None or version_of(old) <= version_of(item)
            if newer and item["metadata"].get("uid") not in self._gone:
                self._items[key_of(item)] = item

    def _work(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(ApiError, ApiUnreachableError):
                # From the list's version on: what ends in between would never be seen to be gone.
                since = self._list()
                for kind, item in self._api.watch(
                    *self._kind, resourceVersion=since, **self._query
                ):
                    if self._stopped.is_set():
                        return
                    self._apply(kind, item)
            self._stopped.wait(PAUSE_SECONDS)

    def _list(self) -> str:
        """Take over what there is; returns the version of that."""
        items, version = self._api.list_with_version(*self._kind, **self._query)
        current = {key_of(item): item for item in items}
        with self._lock:
            gone = [item for key, item in self._items.items() if key not in current]
            self._items = current
            self._gone |= {item["metadata"].get("uid", "") for item in gone}
        self._synced.set()
        for item in [*gone, *current.values()]:
            self._changed(item)
        return version

    def _apply(self, kind: str, item: JsonObject) -> None:
        with self._lock:
            old = self._items.get(key_of(item))
            if old is not None and version_of(old) > version_of(item):
                return
            if kind == "DELETED":
                self._items.pop(key_of(item), None)
                self._gone.add(item["metadata"].get("uid", ""))
            else:
                self._items[key_of(item)] = item
        self._changed(item)


class Watching:
    """Watches several kinds while its block lasts."""

    def __init__(self, *watches: Watched) -> None:
        """Start nothing yet."""
        self._watches = watches

    def __enter__(self) -> Self:
        for watch in self._watches:
            watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.stop()
