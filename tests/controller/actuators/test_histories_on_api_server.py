"""Writing PipelineHistories to a real API server."""

import pytest

from kfp_placement_controller.actuators.histories import HistoryTask, HistoryWriter
from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from tests.controller.planning.builders import a_past_run


@pytest.fixture
def outcome(client):
    writer = HistoryWriter(client, lambda: 1)

    def done(action: HistoryAction) -> HistoryOutcome:
        return writer.write(HistoryTask(action, 1)).outcome

    return done


def a_write(namespace: str, number: int) -> WriteHistory:
    return WriteHistory(namespace, "p", (a_past_run("p", number),), 90)


def test_a_kind_that_is_not_installed_is_tried_again_later(client, namespace, outcome):
    """This comes first: the kinds stay until all tests of the module have ended."""
    assert client.get(PIPELINE_HISTORIES, "p", namespace) is None
    assert outcome(a_write(namespace, 1)) is HistoryOutcome.FAILED


@pytest.mark.usefixtures("our_kinds")
def test_runs_are_added_and_an_object_is_removed(client, namespace, outcome):
    for number in range(3):
        assert outcome(a_write(namespace, number)) is HistoryOutcome.DONE
    stored = client.get(PIPELINE_HISTORIES, "p", namespace)
    runs = read_resource(PipelineHistory, stored).past_runs()
    assert [run.uid for run in runs] == ["uid-0", "uid-1", "uid-2"]
    for _ in range(2):
        assert outcome(DeleteHistory(namespace, "p")) is HistoryOutcome.DONE
    assert client.get(PIPELINE_HISTORIES, "p", namespace) is None


@pytest.mark.usefixtures("our_kinds")
def test_a_namespace_that_is_gone_is_known_by_its_answer(outcome):
    assert outcome(a_write("was-never-here", 1)) is HistoryOutcome.NAMESPACE_GONE
