"""The process `plan` against an API server that shows one kind only when it is told to."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kfp_placement_controller import plan_process
from kfp_placement_controller.actuators.histories import HistoryTask, HistoryWriter
from kfp_placement_controller.connection import connect
from kfp_placement_controller.histories.actions import DeleteHistory, WriteHistory
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.plan_process import PlanProcess, learning_needs, needs
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.watches import watch_group
from kfp_placement_kube.access import Need
from kfp_placement_kube.exceptions import AccessError
from tests.controller.planning.builders import a_past_run
from tests.controller.planning.simulated_cluster import StoredHistories
from tests.controlplane.waiting import wait_until
from tests.support.small_api_server import SmallApiServer

NODES = "/api/v1/nodes"


@pytest.fixture
def server():
    """An API server that does not know PipelineHistories."""
    with SmallApiServer(refused={PIPELINE_HISTORIES.path(): 404}) as serving:
        yield serving


@contextlib.contextmanager
def at_work(
    server: SmallApiServer, folder: Path, *, history: bool = False
) -> Iterator[PlanProcess]:
    path = folder / "kubeconfig"
    path.write_text(server.kubeconfig())
    settings = PlanSettings(kubeconfig=path, port=0, address="127.0.0.1", history=history)
    process = PlanProcess(settings, connect(settings))
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        yield process
    finally:
        server.closing.set()
        process.stop()
        thread.join()


def test_a_planner_stands_for_election_once_it_has_seen_everything(server, tmp_path):
    server.refused[NODES] = 500
    with at_work(server, tmp_path) as process:
        wait_until(lambda: process.watches.unready() == "not seen yet: nodes", "all but nodes")
        taken = threading.Semaphore(0)
        # With the second message, the loop is through with all that it does after the first.
        for _ in range(2):
            process.loop.inbox.put(lambda *_: taken.release())
            assert taken.acquire(timeout=30)
        assert not process.election.alive()
        assert process.unhealthy() == ""
        del server.refused[NODES]
        wait_until(lambda: process.coordinator.epoch == 0, "to lead")
        assert process.watches.unready() == process.unhealthy() == ""


def test_a_planner_leads_where_histories_cannot_be_read(server, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(watch_group, "OPTIONAL_WAIT_SECONDS", 0.5)
    with at_work(server, tmp_path, history=True) as process:
        wait_until(lambda: process.coordinator.epoch == 0, "to lead")
        assert process.watches.unready() == ""
        monkeypatch.setattr(watch_group, "STALE_STREAM_SECONDS", -1.0)
        assert "nodes" in process.unhealthy()
        assert "pipelinehistories" not in process.unhealthy()
    missing, without = sorted(each for each in caplog.messages if "PipelineHistor" in each)
    assert "no past run counts for a plan" in missing
    assert "is its definition installed?" in without


def test_a_planner_without_the_right_to_histories_says_so_and_starts(monkeypatch, caplog):
    def refuse(_client: object, wanted: tuple[Need, ...]) -> None:
        if any(need.kind == PIPELINE_HISTORIES for need in wanted):
            raise AccessError("this account may not list pipelinehistories")

    monkeypatch.setattr(plan_process, "check_access", refuse)
    monkeypatch.setattr(plan_process, "connect", lambda _settings: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    ran: list[str] = []
    process = SimpleNamespace(run=lambda: ran.append("ran"))
    monkeypatch.setattr(plan_process, "PlanProcess", lambda *_: process)
    assert (plan_process.run(PlanSettings(history=True)), ran) == (0, ["ran"])
    (message,) = caplog.messages
    assert message.startswith("plans do not use past runs until this is changed: this account may")


def rights_to_histories(*, history: bool) -> set[tuple[str, str]]:
    """Subresources and verbs that the planner must be allowed."""
    asked = learning_needs(PlanSettings(history=history))
    return {
        (need.subresource, verb)
        for need in asked
        if need.kind == PIPELINE_HISTORIES
        for verb in need.verbs
    }


def test_a_planner_asks_for_what_it_does_with_histories_and_no_more():
    server = StoredHistories()
    for action in (
        WriteHistory("team", "p", (a_past_run("p", 1),), 90),
        DeleteHistory("team", "p"),
    ):
        HistoryWriter(cast("Any", server), lambda: 1).write(HistoryTask(action, 1))
    assert rights_to_histories(history=True) == server.asked | {("", "list"), ("", "watch")}


def test_a_planner_asks_for_histories_only_where_they_are_installed():
    assert rights_to_histories(history=False) == set()
    needed = needs(PlanSettings(history=True))
    assert PIPELINE_HISTORIES not in {need.kind for need in needed}
