"""A watch of one kind: a thread that lists, follows changes, resumes and lists again.

It slims every object of the raw stream at once: with 5,000 pods that takes a tenth of the time and
half of the memory of a framework that keeps whole objects.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kfp_placement_kube.change import Change, Key
from kfp_placement_kube.client import PAGE_SIZE, KubeClient, Selection
from kfp_placement_kube.exceptions import ExpiredError, KubernetesError, NotFoundError
from kfp_placement_kube.kinds import JsonObject, Kind

if TYPE_CHECKING:
    from kfp_placement_kube.responses import Stream

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_DELAY_SECONDS = 0.2
"""Delay after the first failure; doubled after each further one in a row."""

_LONGEST_DELAY_SECONDS = 10.0
"""Longest delay; the API server restarts in seconds, and we want to be back soon."""

_JITTER = 0.5
"""Part of a delay that is left to chance, so that not all clients return at the same moment."""


@dataclass(frozen=True)
class WatchParams:
    """Sizes and times of a watch.

    Attributes:
        page_size: number of objects in a page of a list.
        stream_seconds: time after which a stream is ended and resumed. The server reports the
            progress of a quiet kind only where it has seen a change, so this bounds the age of a
            stream that works.
        settled_seconds: shortest life of a stream whose end does not count as a failure.
        most_objects: largest number of objects that are kept; None = any. More are skipped.
        missing_seconds: time after which the objects of a kind that is not served are gone. A
            gateway in front of an API server that restarts may answer so for a moment.
    """

    page_size: int = PAGE_SIZE
    stream_seconds: int = 60
    settled_seconds: float = 1.0
    most_objects: int | None = None
    missing_seconds: float = 0.0


class _KeptObject(NamedTuple):
    """An object as the watch keeps it: enough to recognise a change, and the value read from it."""

    uid: str
    resource_version: str
    value: Any


@dataclass(eq=False)
class Watcher(Generic[T]):
    """Follower of one kind, in a thread of its own.

    Every object is reported when it is first seen, when what is kept from it changes, and when it
    is gone, in order. An object that was deleted and made again under its name is reported gone,
    then new. One that cannot be read is counted and skipped; its last value holds until it is gone.

    Attributes:
        client: client of the API server.
        kind: kind of the objects.
        read: function that makes from an object the value that is kept; None = the object is of no
            interest.
        changed: function called with every change, in the thread of the watch.
        listed: function called after each list, in this thread, when all objects have been
            reported; None = nobody is interested.
        malformed: error of `read` for an object that cannot be understood; any other error is a
            defect, which goes into the log in full.
        params: sizes and times of the watch.
        seed: seed of the delays between tries; None = any.
        monotonic: function that returns seconds that only grow.
        selection: restriction to some of the objects.
    """

    client: KubeClient
    kind: Kind
    read: Callable[[JsonObject], T | None]
    changed: Callable[[Change[T]], None]
    listed: Callable[[], None] | None = None
    malformed: type[Exception] = ValueError
    params: WatchParams = WatchParams()
    seed: int | None = None
    monotonic: Callable[[], float] = time.monotonic
    selection: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        """Prepare the thread without starting it."""
        self.synced = threading.Event()
        self._kept: dict[Key, _KeptObject] = {}
        self._version = ""
        self._rng = random.Random(self.seed)
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._heard_at = self.monotonic()
        self._streaming_since = math.inf
        self._missing_since: float | None = None
        self._warned = ""
        self._thread = threading.Thread(
            target=self._work, name=f"watch-{self.kind.plural}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self.client.observer.watching(self.kind.kind, self.age_seconds)
        self._heard_at = self.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for its end."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def age_seconds(self) -> float:
        """Return the time since the server last answered; beyond `stream_seconds` it is lost."""
        return self.monotonic() - self._heard_at

    def _work(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._streaming_since = math.inf
            try:
                if not self._version:
                    self._list()
                self._watch()
            except ExpiredError:
                _LOG.info("%s: version %s is too old, listing again", self.kind.kind, self._version)
                self._version = ""
            except NotFoundError as error:
                self._miss_kind(error)
            except KubernetesError as error:
                self._warn(f"{error}; trying again")
            if self.monotonic() - self._streaming_since >= self.params.settled_seconds:
                failures = 0
            else:
                doubled = _FIRST_DELAY_SECONDS * 2.0 ** min(failures, 30)
                longest = min(doubled, _LONGEST_DELAY_SECONDS)
                self._stopping.wait(longest * (1 - _JITTER * self._rng.random()))
                failures += 1

    def _miss_kind(self, error: NotFoundError) -> None:
        """Drop every object once the server has not served the kind for long enough."""
        self._warn(f"{error}; is its definition installed? Trying again")
        self._version = ""
        monotonic_seconds = self.monotonic()
        if self._missing_since is None:
            self._missing_since = monotonic_seconds
        if monotonic_seconds - self._missing_since >= self.params.missing_seconds:
            for key in list(self._kept):
                self._drop(key)

    def _warn(self, text: str) -> None:
        """Log why the watch does not work; the same text again only after it has worked."""
        if text != self._warned:
            _LOG.warning("%s: %s", self.kind.kind, text)
        self._warned = text

    def _list(self) -> None:
        listing = self.client.list(self.kind, limit=self.params.page_size, **self.selection)
        self._missing_since = None
        seen: set[Key] = set()
        for item in listing.items:
            if self._stopping.is_set():
                return
            self._heard_at = self.monotonic()
            seen.add(self._take(item))
        for key in self._kept.keys() - seen:
            self._drop(key)
        self._version = listing.resource_version
        self._heard_at = self.monotonic()
        self.client.observer.listed(self.kind.kind)
        if self.listed is not None:
            self.listed()
        self.synced.set()

    def _watch(self) -> None:
        stream = self.client.stream(
            self.kind, self._version, timeout_seconds=self.params.stream_seconds, **self.selection
        )
        self._stream = stream
        if self._stopping.is_set():
            stream.close()
        self._heard_at = self._streaming_since = self.monotonic()
        self._warned = ""
        try:
            for event in stream:
                self._heard_at = self.monotonic()
                key, _, version = _identity(event.object)
                if event.type == "DELETED":
                    self._drop(key)
                elif event.type != "BOOKMARK":
                    self._take(event.object)
                self._version = version or self._version
        finally:
            stream.close()
            self._stream = None

    def _take(self, item: JsonObject) -> Key:
        key, uid, version = _identity(item)
        kept = self._kept.get(key)
        if kept is not None and kept.uid != uid:
            self._drop(key)
            kept = None
        if kept is not None and kept.resource_version == version:
            return key
        try:
            value = self.read(item)
        except Exception as error:
            # The work on one object. Anybody may have written it: a defect in reading it must not
            # hide all the others.
            if not isinstance(error, self.malformed):
                _LOG.exception("%s %s/%s: defect in reading", self.kind.kind, *key)
            self.client.observer.skipped(self.kind.kind)
            _LOG.warning("%s %s/%s is skipped: %.300s", self.kind.kind, *key, error)
            return key
        if value is None:
            self._drop(key)
            return key
        if kept is None and len(self._kept) == self.params.most_objects:
            self.client.observer.skipped(self.kind.kind)
            return key
        self._kept[key] = _KeptObject(uid, version, value)
        if kept is None or kept.value != value:
            self._report(Change(key, kept.value if kept is not None else None, value))
        return key

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._report(Change(key, kept.value, None))

    def _report(self, change: Change[T]) -> None:
        self.client.observer.changed(self.kind.kind)
        self.changed(change)


def _identity(item: JsonObject) -> tuple[Key, str, str]:
    """Return the key, the uid and the version of an object; "" = it does not say."""
    metadata = item.get("metadata") or {}
    key = metadata.get("namespace", ""), metadata.get("name", "")
    return key, metadata.get("uid", ""), metadata.get("resourceVersion", "")
