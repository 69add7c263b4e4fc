"""A watch, and objects that go while it is not looking."""

import queue
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from tests.controlplane.argo.watching import Watched
from tests.controlplane.exceptions import ApiUnreachableError

if TYPE_CHECKING:
    from tests.controlplane.api import Api

Json = dict[str, Any]

LISTED_AT, DELETED_AT = 5, 6


class FakeApi:
    """A server on which a pod goes after each list and before the watch begins, as under load."""

    def __init__(self) -> None:
        self._items = {name: pod(name) for name in ("lasting", "short-lived")}

    def list_with_version(self, *_: str) -> tuple[list[Json], str]:
        return list(self._items.values()), str(LISTED_AT)

    def watch(self, *_: str, **query: str) -> Iterator[tuple[str, Json]]:
        """Without a version, what there is comes first, and nothing of what was before."""
        gone = self._items.pop("short-lived")
        since = query.get("resourceVersion")
        if since is None:
            yield from (("ADDED", item) for item in self._items.values())
        elif int(since) < DELETED_AT:
            gone["metadata"]["resourceVersion"] = str(DELETED_AT)
            yield "DELETED", gone
        raise ApiUnreachableError("nothing came for a while")


def pod(name: str) -> Json:
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def test_what_goes_between_list_and_watch_is_seen_to_be_gone():
    names: queue.Queue[str] = queue.Queue()
    api = cast("Api", FakeApi())
    watch = Watched(api, "v1", "Pod", lambda item: names.put(item["metadata"]["name"]))
    watch.start()
    heard = [names.get(timeout=5) for _ in range(3)]
    watch.stop()
    assert heard == ["lasting", "short-lived", "short-lived"]
    assert [item["metadata"]["name"] for item in watch.items()] == ["lasting"]
