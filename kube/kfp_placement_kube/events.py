"""Kubernetes events about objects, which a separate thread writes; repetitions are counted."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import NAMESPACE_OID, uuid4, uuid5

from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError, WriteConflictError
from kfp_placement_kube.in_turn import InTurn
from kfp_placement_kube.kinds import EVENTS, JsonObject, Kind
from kfp_placement_kube.times import micro_time_text

_LOG = logging.getLogger(__name__)

MAX_NOTE_BYTES = 1024
"""Longest note that the API server accepts, in bytes."""

_MOST_REMEMBERED = 4096
"""Largest number of events that are remembered, so that repetitions add to their count."""

_REPEAT_SECONDS = 30.0
"""Shortest time between two writes of an event; the next write counts repetitions in between."""

_SERIES_SECONDS = 360.0
"""Time after which a repetition is written as a new event, as in Kubernetes."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about.

    Attributes:
        kind: kind of the object.
        name: name of the object.
        namespace: namespace of the object; "" for kinds without namespaces.
        uid: uid of the object, which tells it from others of the same name; "" = unknown.
    """

    kind: Kind
    name: str
    namespace: str = ""
    uid: str = ""


class _Recorded(NamedTuple):
    event: JsonObject
    at_seconds: float
    once: bool


@dataclass(slots=True)
class _Written:
    metadata: JsonObject
    written_seconds: float
    count: int = 1


@dataclass(eq=False)
class EventRecorder:
    """Recorder of events, which writes them in its own thread, those of all namespaces in turn.

    Attributes:
        client: client of the API server.
        component: name of the reporting program, such as `example.com/controller`.
        identity: name of this replica.
        clock: function that returns the time.
        most_waiting: largest number of events that wait for their write; if there are more, the
            last of the namespace that has most is dropped.
        monotonic: function that returns seconds that only grow.
    """

    client: KubeClient
    component: str
    identity: str
    clock: Callable[[], datetime]
    most_waiting: int = 1000
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Prepare the thread without starting it."""
        self._waiting: InTurn[_Recorded] = InTurn(self.most_waiting)
        self._changed = threading.Condition()
        self._stopping = False
        self._written: OrderedDict[tuple[str, ...], _Written] = OrderedDict()
        self._thread = threading.Thread(target=self._work, name="events", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Write the waiting events until the timeout, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        if unwritten := len(self._waiting) + self._thread.is_alive():
            _LOG.warning("%d events are not written: no answer", unwritten)

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        *,
        action: str,
        type: Literal["Normal", "Warning"] = "Normal",
        once: bool = False,
    ) -> None:
        """Record an event about an object; never waits, never fails.

        Args:
            regarding: the object.
            reason: one word, such as `FailedMount`.
            note: text for people.
            action: action that led to the event, in one word.
            type: Normal or Warning.
            once: whether only one is written in the object's life, whatever note or replica.
        """
        # Events about cluster-scoped objects go to the namespace `default`, as in Kubernetes.
        namespace = regarding.namespace or "default"
        # With `once`, the name is always the same, so the API server refuses a second event.
        number = uuid5(NAMESPACE_OID, f"{regarding.uid} {reason}") if once else uuid4()
        # What is cut may end in a character that no part of a name may end in.
        name = f"{regarding.name[:230].rstrip('.-')}.{number.hex[:16]}"
        event = {
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time_text(self.clock()),
            "reportingController": self.component,
            "reportingInstance": self.identity[:128],
            "action": action,
            "reason": reason,
            "note": note.encode(errors="replace")[:MAX_NOTE_BYTES].decode(errors="ignore"),
            "type": type,
            "regarding": {
                "apiVersion": regarding.kind.api_version,
                "kind": regarding.kind.kind,
                "name": regarding.name,
                "namespace": regarding.namespace,
                "uid": regarding.uid,
            },
        }
        with self._changed:
            dropped = self._waiting.put(namespace, _Recorded(event, self.monotonic(), once))
            self._changed.notify()
        if dropped is not None:
            self.client.observer.event_dropped()

    def _next(self) -> _Recorded | None:
        """Wait for an event; None = the end has come, and none waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or len(self._waiting))
            return self._waiting.take()

    def _work(self) -> None:
        while (recorded := self._next()) is not None:
            try:
                self._write(recorded)
            except KubernetesError as error:
                self.client.observer.event_dropped()
                _LOG.warning("event %s is not written: %s", recorded.event["reason"], error)

    def _write(self, recorded: _Recorded) -> None:
        event = recorded.event
        key = (*event["regarding"].values(), event["reason"], event["note"])
        before = self._written.get(key)
        since = 0.0 if before is None else recorded.at_seconds - before.written_seconds
        if before is None or since > _SERIES_SECONDS:
            self._create(recorded, key)
            return
        before.count += 1
        if recorded.once or since < _REPEAT_SECONDS:
            return
        series = {"count": before.count, "lastObservedTime": event["eventTime"]}
        name, namespace = before.metadata["name"], before.metadata["namespace"]
        self.client.patch(EVENTS, name, namespace, {"series": series})
        before.written_seconds = recorded.at_seconds

    def _create(self, recorded: _Recorded, key: tuple[str, ...]) -> None:
        try:
            self.client.create(EVENTS, recorded.event)
        except WriteConflictError:
            if not recorded.once:
                raise
            return
        self._written[key] = _Written(recorded.event["metadata"], recorded.at_seconds)
        self._written.move_to_end(key)
        if len(self._written) > _MOST_REMEMBERED:
            self._written.popitem(last=False)
