"""Histories are written in a thread of their own, by the leader, whatever is wrong with one."""

import threading
from dataclasses import replace
from typing import Any, cast

import pytest

from kfp_placement_controller.actuators import histories
from kfp_placement_controller.actuators.histories import HistoryTask, HistoryWriter
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.history.status import history_status
from kfp_placement_kube.exceptions import NotFoundError
from tests.controller.planning.builders import START, a_past_run
from tests.controller.planning.simulated_cluster import StoredHistories
from tests.support.defects import fail, times_said

KEY = ("team", "p")
WRITE = WriteHistory("team", "p", (a_past_run("p", 1),), 90)
WAIT_SECONDS = 10


class Writing:
    """A worker, and who leads."""

    def __init__(self, server: StoredHistories) -> None:
        self.epoch: int | None = 1
        self.answers: list[HistoryAnswer] = []
        self.writer = HistoryWriter(cast("Any", server), lambda: self.epoch)
        self.worker = Worker(
            "histories", self.writer.write, self.answers.append, self.writer.failed
        )

    def answer(self, action: WriteHistory | DeleteHistory = WRITE) -> HistoryAnswer:
        return self.writer.write(HistoryTask(action, 1))


class HangingHistories(StoredHistories):
    """Answers nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.free = threading.Event(), threading.Event()

    def get(self, *arguments: Any) -> Any:
        """After a while."""
        self.began.set()
        assert self.free.wait(WAIT_SECONDS)
        return super().get(*arguments)


def test_a_server_that_hangs_keeps_nobody_waiting():
    server = HangingHistories()
    writing = Writing(server)
    nobody = cast("Any", None)
    runner = ActionRunner(
        nobody, nobody, nobody, lambda: START, nobody, nobody, writing.worker.submit, nobody
    )
    coordinator = Coordinator(DEFAULT_SOURCES, START.timestamp, epoch=1, history=True)
    writing.worker.start()
    for _ in range(5):
        runner.run(WRITE, coordinator)
    assert server.began.wait(WAIT_SECONDS)
    assert not writing.answers
    server.free.set()
    writing.worker.stop()
    assert writing.answers == [HistoryAnswer(WRITE, HistoryOutcome.DONE)] * 5
    assert list(server.stored) == [KEY]


@pytest.mark.parametrize("epoch", [None, 2])
def test_who_leads_no_more_writes_nothing(epoch):
    """Also where the Lease was lost and won again: what was due then is not due now."""
    server = StoredHistories()
    server.stored[KEY] = {}
    writing = Writing(server)
    writing.epoch = epoch
    for action in (replace(WRITE, pipeline="q"), DeleteHistory(*KEY)):
        assert writing.answer(action) == HistoryAnswer(action, HistoryOutcome.FAILED)
    assert server.stored == {KEY: {}}


def test_who_loses_the_lease_between_two_requests_writes_nothing_more():
    server = StoredHistories()
    writing = Writing(server)
    create = server.create

    def lost(*arguments: Any) -> Any:
        writing.epoch = None
        return create(*arguments)

    server.create = lost  # type: ignore[method-assign, assignment]
    assert writing.answer().outcome is HistoryOutcome.FAILED
    assert server.writes == 0


def test_a_defect_costs_one_write_and_is_said_once(monkeypatch, caplog):
    server = StoredHistories()
    writing = Writing(server)

    def broken(runs: Any, **options: Any) -> Any:
        if runs[0].pipeline == "bad":
            fail()
        return history_status(runs, **options)

    monkeypatch.setattr(f"{histories.__name__}.history_status", broken)
    bad = replace(WRITE, runs=(a_past_run("bad", 1),))
    writing.worker.start()
    for action in (bad, bad, bad, WRITE):
        writing.worker.submit(HistoryTask(action, 1))
    writing.worker.stop()
    refused = HistoryAnswer(bad, HistoryOutcome.REFUSED)
    assert writing.answers == [*3 * [refused], HistoryAnswer(WRITE, HistoryOutcome.DONE)]
    assert times_said(caplog) == 1


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ('namespaces "team" not found', HistoryOutcome.NAMESPACE_GONE),
        ("the server could not find the requested resource", HistoryOutcome.FAILED),
    ],
)
def test_a_namespace_that_is_gone_is_no_kind_that_is_not_installed(words, outcome):
    server = StoredHistories()

    def missing(*_arguments: Any) -> Any:
        raise NotFoundError(404, "NotFound", f"kfp-placement.dev: {words}", why=words)

    server.create = missing  # type: ignore[method-assign, assignment]
    assert Writing(server).answer().outcome is outcome
