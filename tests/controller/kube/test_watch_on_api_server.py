"""The watcher on a real API server."""

import threading
from typing import Any

import pytest

from kfp_placement_controller.kube.client import KubeClient
from kfp_placement_controller.kube.kinds import Kind
from kfp_placement_controller.kube.transport import Transport
from kfp_placement_controller.kube.watch import Change, Watcher
from tests.controlplane.waiting import wait_until

pytestmark = pytest.mark.cluster

CONFIG_MAPS = Kind("v1", "configmaps", "ConfigMap")


class Seen:
    """Collects changes."""

    def __init__(self) -> None:
        self.changes: list[Change[str]] = []
        self.now: dict[Any, str] = {}

    def __call__(self, change: Change[str]) -> None:
        assert self.now.get(change.key) == change.old
        self.changes.append(change)
        if change.new is None:
            del self.now[change.key]
        else:
            self.now[change.key] = change.new


@pytest.fixture
def client(control_plane):
    return KubeClient(Transport(control_plane.kubeconfig, 10.0))


def config_map(name, namespace, value="1"):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"watched": "yes"}},
        "data": {"value": value},
    }


def test_changes_come_in_order(client, api, namespace):
    api.create(config_map("first", namespace))
    seen = Seen()
    watcher = Watcher(
        client,
        CONFIG_MAPS,
        lambda raw: raw["data"]["value"],
        seen,
        namespace=namespace,
        label_selector="watched=yes",
    )
    watcher.start()
    assert watcher.synced.wait(10)
    assert seen.now == {(namespace, "first"): "1"}
    second = api.create(config_map("second", namespace))
    api.patch(second, {"data": {"value": "2"}})
    api.delete(second)
    wait_until(lambda: len(seen.changes) == 4, "four changes", state=lambda: seen.changes)
    assert [change.new for change in seen.changes[1:]] == ["1", "2", None]
    watcher.stop()
    assert not [each for each in threading.enumerate() if each.name == "watch-configmaps"]
