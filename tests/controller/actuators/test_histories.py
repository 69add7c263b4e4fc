"""What becomes of a PipelineHistory when runs are added to it, whatever it holds."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from kfp_placement_controller.actuators.histories import HistoryTask, HistoryWriter
from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import (
    MAX_HISTORY_BYTES,
    PipelineHistory,
)
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.policy import KEEP_DAYS
from tests.controller.planning.builders import START, a_past_run
from tests.controller.planning.simulated_cluster import StoredHistories
from tests.support.histories import a_history

KEY = ("team", "p")
KEPT = timedelta(days=KEEP_DAYS)
WRITE = WriteHistory("team", "p", (a_past_run("p", 1),), KEEP_DAYS)


def answer(
    server: StoredHistories, action: HistoryAction, epoch: Callable[[], int] = lambda: 1
) -> HistoryAnswer:
    """The leader's answer."""
    return HistoryWriter(cast("Any", server), epoch).write(HistoryTask(action, 1))


def a_server(*histories: dict[str, Any]) -> StoredHistories:
    """One that has these."""
    server = StoredHistories()
    for each in histories:
        server.put(each)
    return server


def written(stored: dict[str, Any] | None, *runs: PastRun) -> PipelineHistory:
    """The object after a write."""
    server = a_server() if stored is None else a_server(stored)
    answer(server, WriteHistory("team", "p", runs, KEEP_DAYS))
    return read_resource(PipelineHistory, server.stored[KEY])


def uids(history: PipelineHistory) -> list[str]:
    return [run.uid for run in history.past_runs()]


@pytest.mark.parametrize(
    "stored", [None, {key: each for key, each in a_history("p", []).items() if key != "status"}]
)
def test_a_new_pipeline_has_its_object_and_one_without_a_status_gets_it(stored):
    assert uids(written(stored, a_past_run("p", 1))) == ["uid-1"]


def test_another_leader_may_have_written_the_same_runs():
    history = written(a_history("p", [a_past_run("p", 1)]), a_past_run("p", 1), a_past_run("p", 2))
    assert uids(history) == ["uid-1", "uid-2"]
    assert history.status.runs_seen == 2


def test_of_a_run_the_end_that_came_last_counts_whoever_writes_last():
    later = a_past_run("p", 1, ended_at=START + timedelta(days=1), seconds=99)
    history = written(a_history("p", [later]), a_past_run("p", 1), a_past_run("p", 2))
    assert {run.uid: run.seconds for run in history.past_runs()} == {"uid-1": 99, "uid-2": 60}


@pytest.mark.parametrize("far", [KEPT * 2, -KEPT * 2])
def test_runs_long_before_or_after_go(far):
    """Whoever has set a clock: it does not decide what is forgotten."""
    odd, new = a_past_run("p", 0, ended_at=START + far), [a_past_run("p", 1), a_past_run("p", 2)]
    assert uids(written(a_history("p", [odd]), *new)) == ["uid-1", "uid-2"]


def test_one_run_with_a_wrong_date_costs_no_others():
    """Its clock was a year ahead; the next run comes in its place, and nothing else is lost."""
    normal = [a_past_run("p", number) for number in range(10)]
    odd = a_past_run("p", 10, ended_at=START + timedelta(days=365))
    history = written(a_history("p", normal), odd)
    assert len(uids(history)) == 11
    later = a_past_run("p", 11)
    assert not observe_history(history.to_object()).is_older(later)
    assert uids(written(history.to_object(), later)) == [*(run.uid for run in normal), later.uid]


def test_runs_that_all_had_a_wrong_date_do_not_keep_out_later_ones():
    ahead = [
        a_past_run("p", number, ended_at=START + timedelta(days=365 + number)) for number in (1, 2)
    ]
    history = written(a_history("p", [a_past_run("p", 0)]), *ahead)
    assert uids(history) == ["uid-1", "uid-2"]
    later = a_past_run("p", 3)
    assert not observe_history(history.to_object()).is_older(later)
    assert uids(written(history.to_object(), later)) == ["uid-3"]


MALFORMED = {
    "status": {"status": {"runs": [{"uid": "u", "endedAt": "yesterday"}]}},
    "foreign version": {"spec": {"pipelines": ["p"]}, "status": {"samples": {"a": [1]}}},
    "a row": {
        "status": {"runs": [{"uid": "u", "endedAt": "2026-01-05T08:00:00Z", "steps": [[0, 1]]}]}
    },
    "a run of negative time": {
        "status": {"runs": [{"uid": "u", "endedAt": "2026-01-05T08:00:00Z", "seconds": -1}]}
    },
}


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=MALFORMED)
def test_what_cannot_be_read_is_left_as_it_is(changes):
    """A later version may have written it, and may be installed again."""
    server = a_server({**a_history("p", []), **changes})
    stored = server.stored[KEY]
    assert "it is left as it is: delete it" in answer(server, WRITE).why
    assert server.stored[KEY] == stored


def test_an_oversized_object_shrinks():
    raw = a_history("p", [a_past_run("p", number) for number in range(30)])
    raw["status"]["steps"] = [[f"step-{each}"] for each in range(1_000)]
    for run in raw["status"]["runs"]:
        run["steps"] = [[each, [[60.5]]] for each in range(1_000)]
    assert json_bytes(raw) > MAX_HISTORY_BYTES
    history = written(raw, a_past_run("p", 100))
    assert json_bytes(history.to_object()) <= MAX_HISTORY_BYTES
    assert uids(history)[-1] == "uid-100"
    assert 10 < len(uids(history)) < 30


def test_an_object_of_another_pipeline_is_left_alone():
    server = a_server({**a_history("q", []), "metadata": a_history("p", [])["metadata"]})
    assert "is of pipeline 'q', not of 'p'" in answer(server, WRITE).why
    assert server.writes == 0


def test_one_that_is_written_meanwhile_does_not_go():
    """Another leader may have begun, and have written a run."""
    server = a_server(a_history("p", []))

    def leads_until_now() -> int:
        another = {**server.stored[KEY]["metadata"], "resourceVersion": "99"}
        server.stored[KEY] = {**server.stored[KEY], "metadata": another}
        return 1

    assert answer(server, DeleteHistory(*KEY), leads_until_now).outcome is HistoryOutcome.FAILED
    assert list(server.stored) == [KEY]


def test_one_that_must_go_goes_and_what_is_gone_already_is_no_failure():
    server = a_server(a_history("p", []), a_history("q", []))
    for _ in range(2):
        assert answer(server, DeleteHistory("team", "p")).outcome is HistoryOutcome.DONE
        assert list(server.stored) == [("team", "q")]
