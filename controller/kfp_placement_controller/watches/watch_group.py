"""Group of the watches of one process: those that need what others report start later."""

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, Unpack

from kfp_placement_controller.observed.liveness import HeldLease, observe_held_lease
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.units.durations import whole_seconds_text
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient, Selection
from kfp_placement_kube.kinds import LEASES, JsonObject, Kind
from kfp_placement_kube.watch import Watcher, WatchParams

STALE_STREAM_SECONDS = 180.0
"""A stream is resumed every minute; one that brought nothing for this long hangs."""

OPTIONAL_WAIT_SECONDS = 30.0
"""Longest wait after the start for kinds that a process can do without."""

USUAL_PARAMS = WatchParams()
"""Sizes and times of a watch that needs no others."""

T = TypeVar("T")


@dataclass
class WatchGroup:
    """Watches that start and stop together; an object that is malformed is skipped.

    Attributes:
        client: the API server.
        listed: function called when all objects of a kind have been reported, in the thread of
            that kind's watch.
    """

    client: KubeClient
    listed: Callable[[], None] | None = None
    _watchers: list[Watcher[Any]] = field(default_factory=list)
    _after: dict[Watcher[Any], frozenset[Kind]] = field(default_factory=dict)
    _optional: dict[Kind, Callable[[bool], None]] = field(default_factory=dict)
    _timers: list[threading.Timer] = field(default_factory=list)
    _settled: set[Kind] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        kind: Kind,
        read: Callable[[JsonObject], T | None],
        changed: Callable[[Change[T]], None],
        *,
        params: WatchParams = USUAL_PARAMS,
        after: Collection[Kind] = (),
        readable: Callable[[bool], None] | None = None,
        **selection: Unpack[Selection],
    ) -> None:
        """Watch a kind, from the start of the group on.

        Args:
            kind: kind to watch.
            read: function that returns the part of an object that is kept; None = nothing of it.
            changed: function called with every change, in a thread of this watch.
            params: sizes and times of the watch.
            after: kinds of which everything must have been reported before; each has one watch.
            readable: the process can do without this kind, which has one watch: nothing waits for
                it for long, and nobody restarts the process if it hangs. It is called with False
                if not everything has been reported in time, and with True when it has.
            selection: restriction to some objects of the kind.
        """
        watcher = Watcher(
            self.client,
            kind,
            read,
            changed,
            listed=partial(self._go_on, kind, reported=True),
            malformed=InputError,
            params=params,
            selection=selection,
        )
        self._watchers.append(watcher)
        if after:
            self._after[watcher] = frozenset(after)
        if readable is not None:
            self._optional[kind] = readable

    def add_lease(
        self, namespace: str, name: str, changed: Callable[[HeldLease | None], None]
    ) -> None:
        """Watch one Lease, from the start of the group on.

        Args:
            namespace: namespace of the Lease.
            name: name of the Lease.
            changed: function called with every change of the Lease; None = nobody holds it.
        """
        self.add(
            LEASES,
            observe_held_lease,
            lambda change: changed(change.new),
            namespace=namespace,
            field_selector=f"metadata.name={name}",
        )

    def start(self) -> None:
        """Start all, those that come after others as soon as they may; returns at once."""
        for watcher in [each for each in self._watchers if each not in self._after]:
            watcher.start()
        for kind in self._optional:
            wait_is_over = partial(self._go_on, kind, reported=False)
            timer = threading.Timer(OPTIONAL_WAIT_SECONDS, wait_is_over)
            timer.daemon = True
            timer.start()
            self._timers.append(timer)

    def stop(self) -> None:
        """End all, the last one first; returns when they have ended."""
        for timer in self._timers:
            timer.cancel()
        for watcher in reversed(self._watchers):
            watcher.stop()

    def unseen(self) -> list[str]:
        """Return the kinds that are awaited: not all of their objects have been reported yet."""
        return [
            each.kind.plural
            for each in self._watchers
            if not each.synced.is_set()
            and not (each.kind in self._optional and each.kind in self._settled)
        ]

    def is_synced(self) -> bool:
        """Return whether everything that is awaited has been reported."""
        return not self.unseen()

    def unready(self) -> str:
        """Return what has not been reported yet, in words, or "" once everything has."""
        unseen = self.unseen()
        return f"not seen yet: {', '.join(unseen)}" if unseen else ""

    def hanging(self) -> list[str]:
        """Return the watches of which nothing was heard for too long, in words."""
        return [
            f"{each.kind.plural}: nothing heard for {whole_seconds_text(age)}"
            for each in self._watchers
            if each.kind not in self._optional
            and each not in self._after
            and (age := each.age_seconds()) > STALE_STREAM_SECONDS
        ]

    def ages_seconds(self) -> list[tuple[str, float]]:
        """Return the kind of each watch, and the time since the server last answered it."""
        return [(each.kind.plural, each.age_seconds()) for each in self._watchers]

    def _go_on(self, kind: Kind, *, reported: bool) -> None:
        """Start what was waiting for a kind.

        Args:
            kind: kind of the objects.
            reported: whether all of them have been reported; else the wait for them is over.
        """
        with self._lock:
            if kind in self._optional and (reported or kind not in self._settled):
                self._optional[kind](reported)
            self._settled.add(kind)
            due = [each for each, kinds in self._after.items() if kinds <= self._settled]
            for watcher in due:
                del self._after[watcher]
                watcher.start()
        if self.listed is not None:
            self.listed()
