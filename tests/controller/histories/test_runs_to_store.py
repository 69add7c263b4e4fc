"""Ended runs until they are written: bounded, each namespace in its turn, no try too often."""

from collections import defaultdict
from datetime import datetime, timedelta

import pytest

from kfp_placement_controller.histories.actions import HistoryOutcome, WriteHistory
from kfp_placement_controller.histories.runs_to_store import (
    MOST_STEPS,
    WRITE_PAUSE_SECONDS,
    RunsToStore,
)
from kfp_placement_controller.observed.histories import HistoryKey, observe_history
from kfp_placement_engine.contract.history.pipeline_history import MAX_RUNS
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from tests.controller.planning.builders import START, a_past_run
from tests.support.histories import a_history

WRITE_PAUSE = timedelta(seconds=WRITE_PAUSE_SECONDS)


@pytest.fixture
def to_store():
    return RunsToStore()


def tried(to_store: RunsToStore, now: datetime = START) -> WriteHistory | None:
    """What is to be written, if anything is."""
    return to_store.due(90, now.timestamp())


def written(to_store: RunsToStore) -> dict[str, list[PastRun]]:
    """Write all; the runs of each namespace in turn."""
    runs = defaultdict[str, list[PastRun]](list)
    while (write := tried(to_store)) is not None:
        runs[write.namespace] += write.runs
        done(to_store, write)
    return runs


def done(to_store: RunsToStore, write: WriteHistory) -> None:
    """The runs have been written."""
    to_store.answered(write, HistoryOutcome.DONE, START.timestamp())


def due(to_store: RunsToStore, now: datetime = START) -> WriteHistory:
    write = tried(to_store, now)
    assert write is not None
    return write


def test_a_tenant_with_ten_thousand_pipelines_takes_bounded_memory(to_store):
    for number in range(10_000):
        to_store.add("greedy", a_past_run(f"p{number}", number))
    runs = written(to_store)["greedy"]
    assert len(runs) == MOST_PIPELINES
    assert runs[-1].pipeline == "p9999"


def test_large_runs_of_a_namespace_take_bounded_memory(to_store):
    for number in range(100):
        to_store.add("greedy", a_past_run(f"p{number}", number, steps=5_000))
    assert sum(len(run.steps) for run in written(to_store)["greedy"]) <= MOST_STEPS


def test_runs_of_many_namespaces_take_bounded_memory(to_store, caplog):
    """The namespace that has most loses some, and not the others."""
    teams = [f"team-{number}" for number in range(20)]
    for number in range(8):
        for team in teams:
            to_store.add(team, a_past_run(f"p{number}", number, steps=2_000))
    to_store.add("small", a_past_run("p", 1, steps=10))
    assert len(caplog.records) == len(teams)
    runs = written(to_store)
    assert len(runs.pop("small")) == 1
    assert sum(len(run.steps) for own in runs.values() for run in own) <= MOST_STEPS - 10
    numbers = [len(runs[team]) for team in teams]
    assert max(numbers) - min(numbers) <= 1


def test_of_a_pipeline_the_last_runs_are_kept(to_store):
    for number in range(2 * MAX_RUNS):
        to_store.add("team", a_past_run("p", number))
    uids = [run.uid for run in written(to_store)["team"]]
    assert uids == [f"uid-{number}" for number in range(MAX_RUNS, 2 * MAX_RUNS)]


def test_a_greedy_namespace_does_not_keep_others_from_being_written(to_store):
    for number in range(1_000):
        to_store.add("greedy", a_past_run(f"p{number}", number))
    to_store.add("team", a_past_run("nightly", 1))
    namespaces = []
    for _ in range(3):
        write = due(to_store)
        namespaces.append(write.namespace)
        # It is answered before more is due.
        assert tried(to_store, START + 10 * WRITE_PAUSE) is None
        done(to_store, write)
    assert namespaces == ["greedy", "team", "greedy"]


def test_all_pipelines_have_their_turn(to_store):
    for number in range(MOST_PIPELINES):
        to_store.add("team", a_past_run(f"p{number}", number))
    pipelines = [run.pipeline for run in written(to_store)["team"]]
    assert sorted(pipelines) == sorted({f"p{number}" for number in range(MOST_PIPELINES)})


def test_what_fails_is_tried_again_after_pauses_that_double(to_store):
    to_store.add("team", a_past_run("p", 1))
    failed_at, pauses = START, list[float]()
    for number in range(1_000):
        now = START + number * WRITE_PAUSE
        write = tried(to_store, now)
        if write is not None:
            pauses.append((now - failed_at) / WRITE_PAUSE)
            failed_at = now
            to_store.answered(write, HistoryOutcome.FAILED, now.timestamp())
            to_store.add("team", write.runs[0])
    assert pauses[:5] == [0, 2, 4, 8, 16]
    assert set(pauses[5:]) == {16}


def test_what_works_again_is_written_as_often_as_ever():
    to_store, now = RunsToStore(), START
    for number, outcome in enumerate([HistoryOutcome.FAILED] * 5 + [HistoryOutcome.DONE] * 2):
        to_store.add("team", a_past_run("p", number))
        now += WRITE_PAUSE * 16
        write = due(to_store, now)
        to_store.answered(write, outcome, now.timestamp())
    to_store.add("team", a_past_run("p", 10))
    assert not tried(to_store, now + WRITE_PAUSE - timedelta(seconds=1))
    assert tried(to_store, now + WRITE_PAUSE)


def test_runs_of_a_namespace_that_is_gone_are_let_go(to_store):
    """One try, and no other."""
    for number in range(20):
        to_store.add("gone", a_past_run(f"p{number}", number))
    to_store.add("team", a_past_run("p", 1))
    for outcome in (HistoryOutcome.NAMESPACE_GONE, HistoryOutcome.DONE):
        to_store.answered(due(to_store), outcome, START.timestamp())
    assert to_store.ended_at(HistoryKey.of("team", "p"), "uid-1")
    assert not tried(to_store, START + timedelta(days=1))


def test_what_was_written_is_not_written_again_whatever_the_object_says(to_store):
    """A run that had no room in it is not in it, and never will be."""
    to_store.add("team", a_past_run("p", 1))
    done(to_store, due(to_store))
    assert not tried(to_store, START + WRITE_PAUSE)
    assert to_store.ended_at(HistoryKey("team", "p"), "uid-1") is not None
    to_store.seen(HistoryKey("team", "p"), observe_history(a_history("p", [])))
    assert to_store.ended_at(HistoryKey("team", "p"), "uid-1") is None


def test_what_ends_during_a_write_is_written_next(to_store):
    to_store.add("team", a_past_run("p", 1))
    write = due(to_store)
    to_store.add("team", a_past_run("p", 2))
    done(to_store, write)
    assert [run.uid for run in due(to_store, START + WRITE_PAUSE).runs] == ["uid-1", "uid-2"]


def test_what_ended_again_is_written_again(to_store):
    to_store.add("team", a_past_run("p", 1))
    done(to_store, due(to_store))
    again = a_past_run("p", 1, ended_at=START + timedelta(days=1))
    to_store.add("team", again)
    to_store.seen(HistoryKey("team", "p"), observe_history(a_history("p", [a_past_run("p", 1)])))
    write = due(to_store, START + WRITE_PAUSE)
    assert write.runs == (again,)


def test_what_is_written_makes_room(to_store, caplog):
    """As on a planner that only follows: nothing is lost."""
    to_store.add("team", a_past_run("waits", 0))
    for number in range(1, MOST_PIPELINES + 10):
        name, run = f"p{number}", a_past_run(f"p{number}", number)
        to_store.add("team", run)
        to_store.seen(HistoryKey("team", name), observe_history(a_history(name, [run])))
    assert not caplog.records
    assert [run.pipeline for run in written(to_store)["team"]] == ["waits"]


def test_names_that_objects_cannot_have_are_names_of_one_object(to_store):
    to_store.add("team", a_past_run("Ünïcode/…", 1))
    done(to_store, due(to_store))
    assert to_store.ended_at(HistoryKey.of("team", "Ünïcode/…"), "uid-1") is not None
    assert not tried(to_store, START + WRITE_PAUSE)
