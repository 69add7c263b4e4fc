"""Runs that wait in a queue: Workflows of KFP's size, created by the hundred, and what they say."""

import copy
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.readers.argo.holds import HELD_SELECTOR
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.watching import Watched

_CREATORS = 8
_STEP_SECONDS = 600.0
_TOUCHED = "example.com/touched"


def waiting_run() -> JsonObject:
    """The Workflow of a run of two marked steps, as KFP submits it: 10 kB."""
    return chain("waiting", _STEP_SECONDS, _STEP_SECONDS)


def numbered(workflow: JsonObject, prefix: str, count: int, namespace: str) -> list[JsonObject]:
    """So many Workflows that differ in their names."""
    made = []
    for number in range(count):
        item = copy.deepcopy(workflow)
        name = f"{prefix}-{number:04d}"
        labels = item["metadata"].get("labels", {})
        item["metadata"] = {"name": name, "namespace": namespace, "labels": dict(labels)}
        made.append(item)
    return made


def create_at_once(api: Api, items: Sequence[JsonObject]) -> float:
    """Create objects, eight at a time; returns how many seconds it took."""
    began = time.monotonic()
    with ThreadPoolExecutor(_CREATORS) as pool:
        for _ in pool.map(api.create, items):
            pass
    return time.monotonic() - began


def create_in_turn(api: Api, items: Sequence[JsonObject]) -> float:
    """Create objects, each after the one before; returns how many seconds it took."""
    began = time.monotonic()
    for item in items:
        api.create(item)
    return time.monotonic() - began


def held_count(api: Api, namespace: str) -> int:
    """How many Workflows of a namespace are held."""
    return len(api.list(ARGO_VERSION, "Workflow", namespace, labelSelector=HELD_SELECTOR))


def delete_runs(api: Api, namespace: str) -> None:
    """Delete all Workflows of a namespace."""
    api.request("DELETE", api.path(ARGO_VERSION, "Workflow", namespace))


def touch(api: Api, items: Sequence[JsonObject], per_second: float) -> None:
    """Change something in each object that matters to nobody, at a steady rate."""
    began = time.monotonic()
    pause = threading.Event()
    for number, item in enumerate(items):
        pause.wait(max(0.0, began + number / per_second - time.monotonic()))
        api.patch(item, {"metadata": {"annotations": {_TOUCHED: str(number)}}})


class WaitingRequests:
    """The RunRequests of a namespace, as a watch shows them."""

    def __init__(self, api: Api, namespace: str) -> None:
        """Start nothing yet."""
        self._namespace = namespace
        self._watch = Watched(api, API_VERSION, "RunRequest", lambda _item: None)

    def start(self) -> None:
        """Start, and wait for the first list."""
        self._watch.start()

    def stop(self) -> None:
        """Say that nothing more is wanted."""
        self._watch.stop()

    def items(self) -> list[JsonObject]:
        """All of them."""
        items = self._watch.items()
        return [item for item in items if item["metadata"]["namespace"] == self._namespace]

    def decided(self) -> int:
        """Of how many it is known what they need, and said what they lack."""
        return sum(is_decided(item) for item in self.items())

    def counted(self, waiting: int) -> int:
        """How many say that so many runs wait."""
        return sum(item.get("status", {}).get("waiting") == waiting for item in self.items())


def is_decided(request: JsonObject) -> bool:
    """Whether the planner has said what a run needs, and its queue what it lacks."""
    has_demand = request["spec"].get("demand") is not None
    return has_demand and bool(request.get("status", {}).get("missing"))
