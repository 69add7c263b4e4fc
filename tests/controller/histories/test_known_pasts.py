"""What is known of namespaces: built in parts, from objects whatever is in them."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.histories import known_pasts
from kfp_placement_controller.histories.actions import (
    DeleteHistory,
    HistoryAction,
    HistoryAnswer,
    HistoryOutcome,
    WriteHistory,
)
from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.histories.known_pasts import STEPS_AT_ONCE, KnownPast
from kfp_placement_controller.observed.histories import MAX_OBJECT_BYTES, observe_history
from kfp_placement_engine.contract.custom_resources import PipelineHistory, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun
from kfp_placement_engine.model.policy import KEEP_DAYS
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.planning.past_runs.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.past_runs.stored_past import past_of
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import JsonObject
from tests.controller.planning.builders import START, a_past_run
from tests.support.defects import DEFECT, fail
from tests.support.histories import a_history


def store(histories: Histories, raw: JsonObject) -> None:
    metadata = raw["metadata"]
    key = (metadata["namespace"], metadata["name"])
    histories.changed(Change(key, None, observe_history(raw)))


def due(histories: Histories, at: datetime = START) -> list[HistoryAction]:
    return histories.due(at.timestamp())


def with_runs(*runs: PastRun, namespace: str = "team", pipeline: str = "p") -> Histories:
    histories = Histories(enabled=True)
    store(histories, a_history(pipeline, runs, namespace))
    return histories


def built(histories: Histories, namespace: str = "team", pipeline: str = "p") -> KnownPast:
    for _ in range(10_000):
        past = histories.past(namespace, pipeline)
        if past is not None:
            return past
        histories.pasts.build()
    raise AssertionError("it is not built")


def one_step(pipeline: str = "p", component: str = "") -> RunGraph:
    """A run with the first step of each past run."""
    return RunGraph(pipeline, "made up", (Step("step-0", task="step-0", component=component),))


def forecast_seconds(past: KnownPast, pipeline: str = "p") -> float | None:
    """Median of its only step."""
    learned = past.learned_run(one_step(pipeline), CONFIDENCE)
    return None if learned is None else learned.graph.steps[0].duration_seconds


def many_histories() -> Iterator[dict[str, Any]]:
    """More runs than a namespace is known by; their steps are of one component."""
    for pipeline in range(20):
        runs = [
            a_past_run(
                f"p{pipeline}",
                100 * pipeline + number,
                ended_at=START + timedelta(hours=number, minutes=pipeline),
                seconds=50 + pipeline + number % 7,
                steps=5,
                component="c" * 8,
                node=f"n{(number + pipeline) % 3}",
            )
            for number in range(30)
        ]
        yield a_history(f"p{pipeline}", runs)


def many_pipelines() -> Histories:
    """The planner knows them."""
    histories = Histories(enabled=True)
    for each in many_histories():
        store(histories, each)
    return histories


def full_namespace() -> Histories:
    """There are as many histories as there may be."""
    histories = Histories(enabled=True)
    for number in range(MOST_PIPELINES):
        store(histories, a_history(f"p{number}", [a_past_run(f"p{number}", number)]))
    return histories


def next_run(pipeline: str) -> RunGraph:
    """A step that its pipeline knows, and one that only others do."""
    steps = (
        Step("step-0", task="step-0", component="c" * 16),
        Step("new", task="new", component="c" * 16),
    )
    return RunGraph(pipeline, "made up", steps)


def learned(histories: Histories, pipeline: str) -> LearnedRun:
    """What its planner knows of it."""
    learned_run = built(histories, pipeline=pipeline).learned_run(next_run(pipeline), CONFIDENCE)
    assert learned_run is not None
    return learned_run


def test_what_is_known_of_a_pipeline_does_not_depend_on_what_was_asked_for_before():
    histories, other = many_pipelines(), many_pipelines()
    names = [f"p{number}" for number in range(10)]
    asked = {name: learned(histories, name) for name in names}
    assert asked == {name: learned(other, name) for name in reversed(names)}
    step, new = asked["p3"].graph.steps
    assert (step.duration_basis, new.duration_basis) == (
        Basis(Level.ITERATION, 20),
        Basis(Level.COMPONENT, 10),
    )


@pytest.mark.parametrize("pipeline", ["p3", "p17", "new"])
def test_a_plan_before_submission_knows_what_the_planner_does(pipeline):
    histories = [read_resource(PipelineHistory, each) for each in many_histories()]
    past = past_of(histories, pipeline, KEEP_DAYS)
    before = with_history(next_run(pipeline), past, CONFIDENCE)
    assert before == learned(many_pipelines(), pipeline)


def test_a_run_teaches_its_pipeline_what_a_new_planner_would_know():
    histories, restarted = many_pipelines(), many_pipelines()
    learned(histories, "p3")
    run = a_past_run("p3", 5_000, seconds=500, steps=5, component="c" * 8)
    runs = [*read_resource(PipelineHistory, list(many_histories())[3]).past_runs(), run]
    for each in (histories, restarted):
        store(each, a_history("p3", runs))
    after, anew = (learned(each, "p3").graph.steps[0] for each in (histories, restarted))
    assert after.duration_seconds == pytest.approx(anew.duration_seconds, rel=0.01)


LARGE_RUNS = [a_past_run("p", number, steps=200) for number in range(20)]
"""A past of these is built in parts."""


@pytest.mark.parametrize("kind", ["MOST_NAMESPACES_KEPT", "MOST_PIPELINES_KEPT"])
def test_only_so_many_pasts_are_kept_and_those_asked_for_last(monkeypatch, kind):
    monkeypatch.setattr(known_pasts, kind, 2)
    histories = Histories(enabled=True)
    keys = [("team", name) if kind == "MOST_PIPELINES_KEPT" else (name, "p") for name in "abc"]
    for namespace, pipeline in keys:
        store(histories, a_history(pipeline, [a_past_run(pipeline, 1)], namespace))
    pasts = [built(histories, *key) for key in keys]
    assert [past.runs for past in pasts] == [1, 1, 1]
    # From the last on: the first is built again, which lets another go.
    kept = [
        built(histories, *key) is past for key, past in reversed([*zip(keys, pasts, strict=True)])
    ]
    assert kept == [True, True, False]
    assert forecast_seconds(built(histories, *keys[0]), keys[0][1]) == pytest.approx(60, rel=0.01)


def test_a_past_is_built_in_parts_and_its_namespace_is_planned_without_it_meanwhile():
    histories = with_runs(*LARGE_RUNS)
    assert histories.past("team", "p") is None
    assert histories.pasts.is_building
    parts = 0
    while histories.past("team", "p") is None:
        histories.pasts.build()
        parts += 1
    assert parts >= 20 * 200 / STEPS_AT_ONCE - 1
    assert not histories.pasts.is_building


def test_a_run_that_ends_while_a_past_is_built_does_not_begin_it_again():
    """Otherwise a namespace in which runs end often would never be known."""
    histories = with_runs(*LARGE_RUNS)
    runs = [a_past_run("q", number, seconds=600) for number in range(100, 200)]
    for number in range(100):
        if histories.past("team", "p") is not None:
            break
        histories.pasts.build()
        store(histories, a_history("q", runs[max(0, number - 20) : number]))
    past = built(histories)
    assert forecast_seconds(past, "q") == pytest.approx(600, rel=0.01)


def test_a_namespace_that_changes_all_the_time_keeps_no_other_from_being_built():
    histories = with_runs(*LARGE_RUNS)
    store(
        histories, a_history("q", [a_past_run("q", each, steps=200) for each in range(20)], "other")
    )
    for number in range(100):
        histories.past("team", "p")
        if histories.past("other", "p") is not None:
            return
        histories.pasts.build()
        edited = [a_past_run("p", 1000 + number, steps=2_000)]
        store(histories, a_history("p", edited))
    raise AssertionError("the other namespace is never built")


def test_nothing_is_learned_twice():
    histories = with_runs(a_past_run("p", 1))
    assert not histories.run_ended("team", a_past_run("p", 1))
    assert not due(histories)
    assert histories.run_ended("team", a_past_run("p", 2))
    assert not histories.run_ended("team", a_past_run("p", 2))
    (write,) = due(histories)
    assert isinstance(write, WriteHistory)
    assert [run.uid for run in write.runs] == ["uid-2"]


def test_a_run_that_was_tried_again_counts_once_and_its_end_does_not():
    histories = with_runs(a_past_run("p", 1))
    again = a_past_run("p", 1, ended_at=START + timedelta(days=1), seconds=600)
    assert not histories.run_ended("team", again)
    (write,) = due(histories)
    assert isinstance(write, WriteHistory)
    assert (write.runs[0].seconds, write.runs[0].planned_seconds) == (None, None)
    assert write.runs[0].steps == again.steps
    built(histories)
    store(histories, a_history("p", write.runs))
    assert forecast_seconds(built(histories)) == pytest.approx(600, rel=0.01)


def test_runs_that_were_cut_off_a_full_history_are_not_learned_again():
    runs = [a_past_run("p", number) for number in range(100)]
    histories = with_runs(*runs)
    raw = a_history("p", runs)
    raw["status"]["runsSeen"] = 100
    store(histories, raw)
    assert not histories.run_ended("team", runs[0])
    assert not due(histories)


def test_what_was_forgotten_is_not_learned_again_from_what_is_still_there():
    histories = Histories(enabled=True)
    before = START + timedelta(days=1)
    store(histories, a_history("p", [], forget_before=before))
    assert not histories.run_ended("team", a_past_run("p", 1))
    assert not due(histories)


def test_a_namespace_has_at_most_two_hundred_histories():
    """Every name a new one: the oldest go, as those of each decision are written."""
    histories = Histories(enabled=True)
    stored: dict[str, PastRun] = {}
    most = 0
    for number in range(MOST_PIPELINES + 50):
        histories.run_ended("greedy", a_past_run(f"p{number}", number))
        if number % 10:
            continue
        while actions := due(histories):
            for action in actions:
                if isinstance(action, DeleteHistory):
                    del stored[action.name]
                    histories.changed(Change((action.namespace, action.name), None, None))
                else:
                    stored[action.pipeline] = action.runs[-1]
                    store(histories, a_history(action.pipeline, action.runs, "greedy"))
                histories.answered(HistoryAnswer(action, HistoryOutcome.DONE), START.timestamp())
                most = max(most, len(stored))
    assert most == MOST_PIPELINES
    assert histories.objects == MOST_PIPELINES
    assert "p0" not in stored
    assert f"p{MOST_PIPELINES + 40}" in stored


def test_an_object_is_removed_once_and_again_if_that_failed():
    histories = full_namespace()
    histories.run_ended("team", a_past_run("new", 1000))
    delete, write = due(histories)
    assert delete == DeleteHistory("team", "p0")
    later = START + timedelta(minutes=1)
    assert not [each for each in due(histories, later) if isinstance(each, DeleteHistory)]
    for action in (delete, write):
        histories.answered(
            HistoryAnswer(action, HistoryOutcome.FAILED, "not now"), later.timestamp()
        )
    assert delete in due(histories, later + timedelta(minutes=1))


def test_an_object_that_a_finalizer_holds_is_not_removed_again():
    histories = full_namespace()
    histories.run_ended("team", a_past_run("new", 1000))
    for action in due(histories):
        histories.answered(HistoryAnswer(action, HistoryOutcome.DONE), START.timestamp())
    held = a_history("p0", [a_past_run("p0", 0)])
    held["metadata"]["deletionTimestamp"] = "2026-01-05T08:00:00Z"
    store(histories, held)
    store(histories, a_history("new", [a_past_run("new", 1000)]))
    histories.run_ended("team", a_past_run("newer", 1001))
    assert due(histories) == [DeleteHistory("team", "p1")]
    histories.changed(Change(("team", "p1"), None, None))
    for hours in range(1, 4):
        histories.run_ended("team", a_past_run(f"more{hours}", 1001 + hours))
        assert due(histories, START + timedelta(hours=hours)) == []
    assert histories.objects == MOST_PIPELINES
    histories.changed(Change(("team", "p0"), None, None))
    later = START + timedelta(hours=4)
    assert [type(each) for each in due(histories, later)] == [WriteHistory]


def test_an_object_with_a_row_that_cannot_be_true_does_not_count_and_that_is_said_once(caplog):
    raw = a_history("p", [a_past_run("p", number) for number in range(5)])
    raw["status"]["runs"][2]["steps"][0][1][0][0] = 1e300
    histories = with_runs(a_past_run("q", 10, seconds=30), pipeline="q")
    for _ in range(3):
        store(histories, raw)
        histories.pasts.outdated("team")
        past = built(histories)
    assert forecast_seconds(past) == forecast_seconds(built(histories, pipeline="q"), "p")
    (message,) = caplog.messages
    assert "team: PipelineHistory 'p': status.runs.2.steps.0.1.0.0: must be" in message


def test_a_run_that_leaves_an_object_and_comes_again_is_learned_from_once():
    runs = [a_past_run("p", number) for number in range(2)]
    histories = with_runs(*runs)
    built(histories)
    for _ in range(3):
        store(histories, a_history("p", runs[:1]))
        store(histories, a_history("p", runs))
    assert built(histories).runs == 2


def test_components_that_change_daily_keep_a_step_known():
    runs = [a_past_run("p", number, component=f"{number:08x}") for number in range(200)]
    past = built(with_runs(*runs))
    learned: Any = past.learned_run(one_step(component="f" * 16), CONFIDENCE)
    basis = learned.graph.steps[0].duration_basis
    assert (str(basis.level), basis.runs) == ("iteration", 20)


def test_an_object_that_others_have_made_too_large_is_not_read():
    raw = a_history("p", [a_past_run("p", number, steps=100) for number in range(30)])
    raw["status"]["runs"] *= 30
    assert len(json.dumps(raw)) > MAX_OBJECT_BYTES
    with pytest.raises(InputError, match="are read: delete it"):
        observe_history(raw)


@pytest.mark.parametrize("bad", [10**30, "\ud800"])
def test_what_is_no_json_is_not_read(bad):
    raw = a_history("p", [a_past_run("p", 1)])
    raw["status"]["steps"][0][0] = bad
    with pytest.raises(InputError, match="cannot be written as JSON"):
        observe_history(raw)


def test_a_hand_edited_year_does_not_keep_others_from_counting():
    future = a_past_run("p", 0, ended_at=START + timedelta(days=365_000), seconds=10)
    histories = with_runs(future, *(a_past_run("p", number) for number in range(1, 10)))
    assert forecast_seconds(built(histories)) == pytest.approx(60, rel=0.05)


def test_a_learner_with_a_defect_is_left_alone_and_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(Past, "observe", fail)
    runs = [a_past_run("p", number) for number in range(10)]
    histories = with_runs(*runs[:5])
    past = built(histories)
    store(histories, a_history("p", runs))
    assert forecast_seconds(past) is None
    assert len(caplog.messages) == 1
    assert DEFECT in caplog.messages[0]


def test_sizes_of_all_objects_are_known():
    histories = with_runs(a_past_run("p", 1))
    store(histories, a_history("q", [a_past_run("q", 1)]))
    assert histories.objects == 2
    assert histories.json_bytes > 0
    for name in "pq":
        histories.changed(Change(("team", name), None, None))
    assert (histories.objects, histories.json_bytes) == (0, 0)


def test_while_histories_cannot_be_read_runs_are_remembered_and_nothing_is_known(caplog):
    histories = Histories(enabled=True)
    for _ in range(2):
        histories.readable(False)
    assert histories.run_ended("team", a_past_run("p", 1, seconds=600))
    store(histories, a_history("p", [a_past_run("p", 0, seconds=600)]))
    assert histories.past("team", "p") is None
    assert not due(histories)
    histories.readable(True)
    assert forecast_seconds(built(histories)) == pytest.approx(600, rel=0.01)
    assert len(due(histories)) == 1
    assert len(caplog.messages) == 1
