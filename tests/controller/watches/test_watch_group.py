"""Watches that start together, but for those that need what others report first."""

import threading
from functools import partial
from typing import Any

from kfp_placement_controller.connection import ApiMetrics
from kfp_placement_controller.watches import watch_group
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_kube.client import Listing
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS
from tests.controlplane.waiting import wait_until
from tests.support.scripted_api import ScriptedStream, an_object


class OneOfEach:
    """An API server with one object of each kind, whose lists wait until they are let go."""

    def __init__(self) -> None:
        self.observer = ApiMetrics("test")
        self.asked: list[str] = []
        self.let_go = {kind.kind: threading.Event() for kind in (NAMESPACES, NODES, PODS)}

    def list(self, kind: Any, **_: Any) -> Listing:
        """The object, once it may be known."""
        self.asked.append(kind.kind)
        self.let_go[kind.kind].wait(10)
        return Listing(iter([an_object("one", 1)]), "1")

    def stream(self, *_: Any, **__: Any) -> ScriptedStream:
        """Nothing happens."""
        return ScriptedStream([], ends=False)


def followed(api: Any) -> tuple[WatchGroup, list[str]]:
    """Pods are watched after namespaces and nodes."""
    group = WatchGroup(api)
    seen: list[str] = []
    for kind in (PODS, NAMESPACES, NODES):
        after = (NAMESPACES, NODES) if kind == PODS else ()
        group.add(kind, dict, partial(_note, seen, kind.kind), after=after)
    return group, seen


def _note(seen: list[str], kind: str, _change: object) -> None:
    seen.append(kind)


def test_what_comes_after_others_is_asked_for_when_all_of_them_are_known():
    api = OneOfEach()
    group, seen = followed(api)
    group.start()
    try:
        wait_until(lambda: len(api.asked) == 2, "two lists")
        api.let_go["Node"].set()
        wait_until(lambda: seen == ["Node"], "the node")
        assert "Pod" not in api.asked
        assert not group.is_synced()
        api.let_go["Pod"].set()
        api.let_go["Namespace"].set()
        wait_until(group.is_synced, "all of them")
        assert seen == ["Node", "Namespace", "Pod"]
    finally:
        group.stop()


def test_a_group_that_stops_before_all_of_it_has_started_ends():
    api = OneOfEach()
    group, seen = followed(api)
    group.start()
    for event in api.let_go.values():
        event.set()
    group.stop()
    assert set(seen) <= {"Node", "Namespace", "Pod"}


def test_what_can_be_done_without_is_not_awaited_for_long(monkeypatch):
    monkeypatch.setattr(watch_group, "OPTIONAL_WAIT_SECONDS", 0.1)
    api: Any = OneOfEach()
    group = WatchGroup(api)
    seen: list[str] = []
    readable: list[bool] = []
    group.add(NODES, dict, partial(_note, seen, "Node"), readable=readable.append)
    group.add(PODS, dict, partial(_note, seen, "Pod"), after=(NODES,))
    api.let_go["Pod"].set()
    monkeypatch.setattr(watch_group, "STALE_STREAM_SECONDS", -1.0)
    assert group.hanging() == []
    group.start()
    try:
        wait_until(lambda: seen == ["Pod"], "the pod")
        wait_until(group.is_synced, "what is awaited")
        assert readable == [False]
        assert [each.split(":")[0] for each in group.hanging()] == ["pods"]
        api.let_go["Node"].set()
        wait_until(lambda: readable == [False, True], "the node")
        assert seen == ["Pod", "Node"]
    finally:
        group.stop()
