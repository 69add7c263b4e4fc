"""What steps use is asked of a source, and learned; whatever is wrong with it, plans go on."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from kfp_placement_controller.planning import memory_watch
from kfp_placement_controller.planning.actions import Action, AskMemory
from kfp_placement_controller.planning.memory_watch import (
    OVERDUE,
    PATIENCE,
    PAUSE,
    PAUSE_AFTER_FAILURE,
    MemoryAnswer,
    MemoryQuestion,
)
from tests.controller.planning.builders import a_policy
from tests.controller.planning.noisy_cluster import NoisyCluster, a_coordinator
from tests.controller.planning.played_cluster import NO_PULLS

GIB = 2**30
METRICS = {"memory": "metrics"}
PROMETHEUS = {"memory": "prometheus", "prometheusURL": "http://prometheus.test:9090"}
SOURCES = pytest.mark.parametrize("history", [METRICS, PROMETHEUS], ids=["metrics", "prometheus"])

Answering = Callable[[MemoryQuestion], MemoryAnswer | None]


def knowing(question: MemoryQuestion) -> MemoryAnswer:
    """Every pod uses 1.5 GiB."""
    return MemoryAnswer(question, {each.uid: 1.5 * GIB for each in question.pods})


class MeasuredCluster(NoisyCluster):
    """One whose policy names a source of memory.

    Attributes:
        questions: all that were asked, and when.
        answering: what the source says; None = nothing.
    """

    def __init__(self, history: Mapping[str, Any], answering: Answering = knowing) -> None:
        coordinator = a_coordinator()
        coordinator.policy.spec = a_policy(**NO_PULLS, history=dict(history))
        super().__init__(coordinator=coordinator)
        self.questions: list[tuple[Any, MemoryQuestion]] = []
        self.answering = answering

    def _carry_out(self, action: Action) -> None:
        if not isinstance(action, AskMemory):
            return super()._carry_out(action)
        self.questions.append((self.now, action.question))
        answer = self.answering(action.question)
        if answer is not None:
            self.coordinator.memory_answered(answer)
        return None

    def played(self, number: int = 0, wait: timedelta = timedelta(minutes=2)) -> str:
        """A run is played, and what is learned of it is written."""
        run = self.play(number, iterations=2)
        until = self.now + wait
        self.run(lambda: self.now >= until)
        return run

    def uses(self) -> dict[str, list[float | None]]:
        """Peaks of each step, by run."""
        found: dict[str, list[float | None]] = {}
        for run in self.history().past_runs():
            for use in run.memory:
                found.setdefault(use.identity.step, []).append(use.peak_bytes)
        return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = (each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING)
    return [each for each in said if "memory" in each]


@SOURCES
def test_what_steps_use_is_learned(history, caplog):
    cluster = MeasuredCluster(history)
    cluster.played()
    peaks = [peak for uses in cluster.uses().values() for peak in uses]
    assert peaks == [1.5 * GIB] * 4
    assert len(cluster.history().past_runs()[0].steps) == 4
    assert not warnings(caplog)


def test_metrics_are_asked_of_pods_that_run_and_every_15_seconds():
    cluster = MeasuredCluster(METRICS)
    cluster.played()
    moments = [moment for moment, _ in cluster.questions]
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert min(pauses) >= PAUSE
    assert 15 < len(cluster.questions) < 60
    assert all(each.pods for _, each in cluster.questions)


def test_the_largest_sample_counts():
    samples = iter(range(1, 10**6))

    def growing(question: MemoryQuestion) -> MemoryAnswer:
        amount = next(samples) * 2.0**20
        return MemoryAnswer(question, {each.uid: amount for each in question.pods})

    cluster = MeasuredCluster(METRICS, growing)
    cluster.played()
    asked = len(cluster.questions)
    peaks = [peak for uses in cluster.uses().values() for peak in uses if peak is not None]
    assert max(peaks) >= (asked - 1) * 2**20


def test_prometheus_is_asked_once_when_a_step_has_ended():
    cluster = MeasuredCluster(PROMETHEUS)
    run = cluster.played()
    asked = [each.uid for _, question in cluster.questions for each in question.pods]
    assert len(asked) == len(set(asked)) == 4
    assert {question.url for _, question in cluster.questions} == {"http://prometheus.test:9090"}
    assert all(0 < each.ran_seconds < 600 for _, q in cluster.questions for each in q.pods)
    assert cluster.states(run)


def test_without_a_source_nothing_is_asked():
    cluster = MeasuredCluster({"memory": "off"})
    cluster.played()
    assert cluster.questions == []
    assert cluster.uses() == {}


def refusing(question: MemoryQuestion) -> MemoryAnswer:
    return MemoryAnswer(question, failure="pods.metrics.k8s.io is forbidden")


def silent(_question: MemoryQuestion) -> None:
    return None


def empty(question: MemoryQuestion) -> MemoryAnswer:
    return MemoryAnswer(question)


def lying(question: MemoryQuestion) -> MemoryAnswer:
    """Nothing that can be true, nor what was asked for."""
    bad = [0.0, -1.0, float("nan"), float("inf"), 2.0**60]
    peaks = {each.uid: bad[index % 5] for index, each in enumerate(question.pods)}
    return MemoryAnswer(question, {**peaks, "another": 1.0 * GIB})


def beyond_the_node(question: MemoryQuestion) -> MemoryAnswer:
    """Each step uses ten times what its node has."""
    return MemoryAnswer(question, {each.uid: 160.0 * GIB for each in question.pods})


@SOURCES
@pytest.mark.parametrize("answering", [refusing, silent, lying, empty])
def test_a_source_that_is_of_no_use_is_warned_of_once(history, answering, caplog):
    cluster = MeasuredCluster(history, answering)
    for number in range(7):
        cluster.played(number)
    assert set(cluster.uses()) == set()
    assert [len(each.steps) for each in cluster.history().past_runs()] == [4] * 7
    (only,) = warnings(caplog)
    assert only.startswith("peak memory is not learned, and no request is advised on")


def test_no_step_uses_more_than_its_node_has():
    cluster = MeasuredCluster(METRICS, beyond_the_node)
    cluster.played()
    assert cluster.uses() == {}


def test_a_source_that_fails_is_left_alone_for_minutes():
    cluster = MeasuredCluster(METRICS, refusing)
    cluster.played()
    moments = [moment for moment, _ in cluster.questions]
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert all(each >= PAUSE_AFTER_FAILURE for each in pauses)


def test_another_policy_is_warned_of_again_and_another_confidence_is_not(caplog):
    cluster = MeasuredCluster(METRICS, refusing)
    cluster.played()
    for history in ({**METRICS, "confidence": "80%"}, PROMETHEUS):
        cluster.coordinator.policy.spec = a_policy(**NO_PULLS, history=history)
        cluster.played(len(cluster.players))
    assert len(warnings(caplog)) == 2


def test_a_source_that_hangs_is_asked_no_more_until_it_answers():
    cluster = MeasuredCluster(METRICS, silent)
    cluster.played()
    (only,) = cluster.questions
    cluster.answering = knowing
    cluster.coordinator.memory_answered(knowing(only[1]))
    cluster.played(1)
    assert any(cluster.uses().values())


def test_a_run_teaches_soon_though_prometheus_hangs():
    cluster = MeasuredCluster(PROMETHEUS, silent)
    cluster.play(0, iterations=2)
    until = cluster.now + max(PATIENCE, OVERDUE) + timedelta(seconds=10)
    cluster.run(lambda: cluster.now >= until)
    assert len(cluster.history().past_runs()) == 1


def test_a_defect_in_it_stops_neither_plans_nor_learning(monkeypatch, caplog):
    def fail(*_arguments: Any) -> Any:
        raise ZeroDivisionError("made up")

    cluster = MeasuredCluster(METRICS)
    monkeypatch.setattr(cluster.coordinator.learning.memory, "due", fail)
    monkeypatch.setattr(cluster.coordinator.learning.memory, "awaits", fail)
    cluster.played()
    assert len(cluster.history().past_runs()[0].steps) == 4
    assert len([each for each in caplog.messages if "made up" in each]) == 1


def test_a_run_that_is_gone_teaches_before_it_is_forgotten():
    cluster = MeasuredCluster(PROMETHEUS, silent)
    run = cluster.play(0, iterations=2)
    del cluster.players[run]
    cluster.tell()
    until = cluster.now + timedelta(seconds=5)
    cluster.run(lambda: cluster.now >= until)
    assert len(cluster.history().past_runs()) == 1


def test_with_more_pods_than_a_question_names_all_have_their_turn(monkeypatch):
    """Pods of a wide run that are all there must not keep those of others from being asked for."""
    monkeypatch.setattr(memory_watch, "MOST_PODS", 2)
    cluster = MeasuredCluster(METRICS)
    cluster.play(0, iterations=6)
    assert max(len(question.pods) for _, question in cluster.questions) == 2
    assert [len(peaks) for peaks in cluster.uses().values()] == [1, 6, 1]
