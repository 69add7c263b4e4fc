"""The watcher on a real API server: what it tells, and how it comes back."""

import contextlib
from dataclasses import replace
from typing import Any

from kfp_placement_controller.observed.attach_failures import (
    ATTACH_FAILED,
    ATTACH_FAILED_SELECTOR,
    AttachFailure,
    observe_attach_failure,
)
from kfp_placement_kube.kinds import EVENTS, Kind
from kfp_placement_kube.watch import Watcher, WatchParams
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import TIMEOUT_SECONDS, wait_until
from tests.support.api_client import a_client, unreachable

CONFIG_MAPS = Kind("v1", "configmaps", "ConfigMap")


class Followed:
    """A watcher of one namespace's objects, what it told, and what there is by that."""

    def __init__(self, client, kind, read, namespace, params=None, listed=None, **selected):
        self.changes = []
        self.now = {}
        selection: Any = {"namespace": namespace, **selected}
        self.watcher = Watcher(
            client,
            kind,
            read,
            self.changed,
            listed,
            params=params or WatchParams(),
            selection=selection,
        )

    def changed(self, change):
        assert self.now.get(change.key) == change.old
        self.changes.append(change)
        if change.new is None:
            del self.now[change.key]
        else:
            self.now[change.key] = change.new

    def wait_now(self, expected):
        def as_expected():
            return {name: value for (_, name), value in self.now.items()} == expected

        wait_until(as_expected, f"{expected}", state=lambda: self.now)


@contextlib.contextmanager
def following(*arguments, **options):
    followed = Followed(*arguments, **options)
    followed.watcher.start()
    assert followed.watcher.synced.wait(TIMEOUT_SECONDS)
    try:
        yield followed
    finally:
        followed.watcher.stop()


def value_of(raw):
    return raw["data"]["value"]


def config_map(name, namespace, value="1", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def test_where_metadata_is_enough_nothing_else_is_sent(client, api, namespace):
    kind = replace(CONFIG_MAPS, metadata_only=True)
    assert list(client.list(kind, namespace=namespace, label_selector="x=y").items) == []
    for name in "abc":
        api.create(config_map(name, namespace, x="y"))
    read: list[frozenset[str]] = []

    def uid_of(raw):
        read.append(frozenset(raw))
        return raw["metadata"]["uid"]

    options = {"label_selector": "x=y", "params": WatchParams(page_size=2)}
    with following(client, kind, uid_of, namespace, **options) as followed:
        expected = {name: followed.now[namespace, name] for name in "abc"}
        del expected["b"]
        api.delete(config_map("b", namespace))
        created = api.create(config_map("d", namespace, x="y"))
        followed.wait_now(expected | {"d": created["metadata"]["uid"]})
    assert set(read) == {frozenset({"apiVersion", "kind", "metadata"})}


def test_of_events_only_volumes_that_are_not_attached_are_asked_for(client, api, namespace):
    def event(name, reason):
        about = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {**about, "uid": "u1"},
            "reason": reason,
            "message": "Multi-Attach error",
            "type": "Warning",
        }

    def reason_of(raw):
        assert raw["reason"] == ATTACH_FAILED
        return observe_attach_failure(raw)

    failure = AttachFailure(namespace, "u1", "Multi-Attach error")
    api.create(event("other", "FailedMount"))
    api.create(event("first", ATTACH_FAILED))
    selected = {"field_selector": ATTACH_FAILED_SELECTOR}
    with following(client, EVENTS, reason_of, namespace, **selected) as followed:
        assert followed.now == {(namespace, "first"): failure}
        api.create(event("another", "Pulled"))
        api.create(event("second", ATTACH_FAILED))
        followed.wait_now({"first": failure, "second": failure})


def test_changes_come_in_order(client, api, namespace):
    first = api.create(config_map("first", namespace, watched="yes"))
    api.create(config_map("other", namespace))
    selected = {"label_selector": "watched=yes"}
    with following(client, CONFIG_MAPS, value_of, namespace, **selected) as followed:
        assert followed.now == {(namespace, "first"): "1"}
        second = api.create(config_map("second", namespace, watched="yes"))
        api.patch(second, {"data": {"value": "2"}})
        api.delete(second)
        api.patch(first, {"metadata": {"labels": {"watched": None}}})
        followed.wait_now({})
        assert [change.new for change in followed.changes] == ["1", "1", "2", None, None]


def test_a_stream_that_the_server_ends_is_resumed_without_a_list(client, api, namespace):
    lists = []
    params = WatchParams(stream_seconds=1, settled_seconds=0.1)
    with following(
        client, CONFIG_MAPS, value_of, namespace,
        params=params, listed=lambda: lists.append(1), label_selector="watched=yes",
    ) as followed:  # fmt: skip
        opened = keep_streams(client)
        wait_until(lambda: len(opened) >= 2, "two more streams")
        api.create(config_map("late", namespace, watched="yes"))
        followed.wait_now({"late": "1"})
        assert len(lists) == 1


def test_what_happened_while_it_could_not_watch_is_told_after_a_restart(control_plane_programs):
    """The server begins with an empty memory: what the watcher knows is too old for it."""
    with (
        ControlPlane(PlaneOptions(scheduler=None)) as plane,
        temporary_namespace(plane.api, "restarted") as namespace,
    ):
        client, api = a_client(plane.kubeconfig), plane.api
        streams = keep_streams(client)
        stays, goes, again = (
            api.create(config_map(name, namespace, watched="yes")) for name in ("s", "g", "a")
        )
        lists = []
        options = {"label_selector": "watched=yes", "listed": lambda: lists.append(1)}
        with following(client, CONFIG_MAPS, value_of, namespace, **options) as followed:
            with cut_off(client, streams):
                api.patch(stays, {"data": {"value": "2"}})
                api.delete(goes)
                api.delete(again)
                api.create(config_map("a", namespace, "new", watched="yes"))
                plane.restart("kube-apiserver")
                followed.changes.clear()
            wait_until(lambda: len(lists) == 2, "another list", state=lambda: lists)
            followed.wait_now({"s": "2", "a": "new"})
            after_restart = {(change.key[1], change.old, change.new) for change in followed.changes}
            assert after_restart == {
                ("s", "1", "2"), ("g", "1", None), ("a", "1", None), ("a", None, "new")
            }  # fmt: skip
            api.create(config_map("later", namespace, watched="yes"))
            followed.wait_now({"s": "2", "a": "new", "later": "1"})


def keep_streams(client):
    """The streams that the client opens from now on."""
    streams = []
    opened = client.stream

    def keep(*arguments, **options):
        streams.append(opened(*arguments, **options))
        return streams[-1]

    client.stream = keep
    return streams


@contextlib.contextmanager
def cut_off(client, streams):
    """For this long the server is not to be reached by streams."""
    wait_until(lambda: streams, "a stream")
    opened = client.stream

    client.stream = unreachable
    streams[-1].close()
    try:
        yield
    finally:
        client.stream = opened
