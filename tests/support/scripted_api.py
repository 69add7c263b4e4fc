"""An API server that lists and streams what a test has written down."""

import queue
import threading
from typing import Any

from kfp_placement_controller.connection import ApiMetrics
from kfp_placement_kube.client import Listing
from kfp_placement_kube.kinds import JsonObject
from kfp_placement_kube.responses import StreamEvent


def an_object(name: str, version: int, *, uid: str = "", **fields: Any) -> JsonObject:
    """An object of the namespace `ns`."""
    metadata = {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}"}
    return {"metadata": {**metadata, "resourceVersion": str(version)}, **fields}


class ScriptedStream:
    """Ends when closed, or after the last event if it is to end."""

    def __init__(self, events: list[StreamEvent | Exception], ends: bool) -> None:
        self._events = events
        self._ends = ends
        self._closed = threading.Event()

    def __iter__(self):
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event
        if not self._ends:
            self._closed.wait()

    def close(self) -> None:
        """End it."""
        self._closed.set()


class ScriptedApi:
    """Answers a watcher; the last stream stays open until it is closed.

    Attributes:
        asked: requests so far.
        observer: counts in the metrics of the controller.
    """

    def __init__(self, *steps: Any) -> None:
        """Take the answers in order: lists of objects, errors, or streams of events.

        Args:
            steps: answers; (version, objects) or an error answers a list, a list of (type, object)
                pairs and errors answers a stream.
        """
        self.asked: list[str] = []
        self.observer = ApiMetrics("test")
        self._steps: queue.Queue[Any] = queue.Queue()
        for step in steps:
            self._steps.put(step)

    def list(self, kind, **selection) -> Listing:
        """The next answer, which must be one to a list."""
        self.asked.append("list")
        step = self._steps.get_nowait()
        if isinstance(step, Exception):
            raise step
        version, objects = step
        return Listing(iter(objects), str(version))

    def stream(self, kind, resource_version, **selection) -> ScriptedStream:
        """The next answer, which must be one to a watch."""
        self.asked.append(f"watch from {resource_version}")
        step = self._steps.get_nowait() if self._steps.qsize() else []
        events = [each if isinstance(each, Exception) else StreamEvent(*each) for each in step]
        return ScriptedStream(events, ends=self._steps.qsize() > 0)
