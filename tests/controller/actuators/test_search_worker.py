"""The process that searches: it answers, it may die, and then there is another."""

import os
import queue
import time
from types import SimpleNamespace
from typing import Any

import pytest

from kfp_placement_controller.actuators.search_worker import SearchWorker, WorkerParams
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_engine.exceptions import PlanningError


def plan(asked):
    """What the process does, by the number of the round."""
    if asked.number == 13:
        os._exit(3)
    if asked.number == 14:
        raise PlanningError("cannot be planned")
    if asked.number == 15:
        time.sleep(600)
    if asked.number == 16:
        raise RuntimeError("a defect")
    return RoundResult(asked.number, {})


def a_round(number):
    return SimpleNamespace(number=number, options=SimpleNamespace(budget_seconds=0.0))


@pytest.fixture(scope="module")
def worker():
    answers: queue.Queue[Any] = queue.Queue()
    made = SearchWorker(answers.put, plan, WorkerParams(grace_seconds=20.0))
    made.start()
    yield made, answers
    made.stop()
    assert not made.alive()


def answer_to(worker, number):
    made, answers = worker
    made.submit(a_round(number))
    return answers.get(timeout=60)


def test_rounds_are_answered(worker):
    assert answer_to(worker, 1) == RoundResult(1, {})


def test_what_the_engine_refuses_is_no_death(worker):
    assert answer_to(worker, 14) == RoundFailure(14, "cannot be planned", died=False)


@pytest.mark.parametrize("number", [13, 16])
def test_after_a_death_there_is_another_process(worker, number):
    failure = answer_to(worker, number)
    assert (failure.number, failure.died) == (number, True)
    assert "exited (exit code" in failure.why
    assert answer_to(worker, 2) == RoundResult(2, {})


def test_a_process_that_does_not_start_is_a_failure(worker, monkeypatch):
    def refuse(_process):
        raise BlockingIOError

    answer_to(worker, 13)
    with monkeypatch.context() as patched:
        patched.setattr("multiprocessing.process.BaseProcess.start", refuse)
        assert answer_to(worker, 1).died
    assert answer_to(worker, 2) == RoundResult(2, {})


def test_a_search_that_overruns_is_killed():
    answers: queue.Queue[Any] = queue.Queue()
    worker = SearchWorker(answers.put, plan, WorkerParams(grace_seconds=0.5))
    worker.start()
    worker.submit(a_round(15))
    failure = answers.get(timeout=60)
    worker.stop()
    assert failure.died
    assert "the search was killed" in failure.why
