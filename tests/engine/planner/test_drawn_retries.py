"""Attempts that fail in samples of a run."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from kfp_placement_engine import Cluster, Node, PlanOptions, RunGraph, Step, plan_runs
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.history import Observation, PastRun, Retried
from kfp_placement_engine.model.promise import TriedAgain
from kfp_placement_engine.planning.drawn_retries import _drawn, _MayFail
from kfp_placement_engine.planning.learned_times import with_history

CLUSTER = Cluster((Node("n1", {"cpu": 8000, "memory": 2**34, "pods": 110}),))
OPTIONS = PlanOptions(compare=(), quick=True)
SECONDS, FAILED_SECONDS = 100.0, 80.0

CHAIN = RunGraph(
    "p",
    "argo-workflow",
    (
        Step("flaky", "flaky", attempt_limit=3),
        Step("last", "last", depends_on=("flaky",)),
    ),
)


def learned(*failed, graph=CHAIN, longer=1.0):
    """From runs in which that many attempts at the first step failed.

    Beside these, runs take longer than their steps by a factor.
    """
    past = Past()
    for number, attempts in enumerate(failed):
        steps = tuple(Observation(step_identity("p", each), SECONDS, "n1") for each in graph.steps)
        whole, lost = 2 * SECONDS, attempts * FAILED_SECONDS
        run = PastRun(
            str(number),
            "p",
            datetime.fromtimestamp(number, UTC),
            steps,
            longer * whole + lost,
            played_seconds=whole,
            replayed_seconds=whole,
            failed_seconds=lost,
            retried=(Retried("flaky", attempts, lost),) if attempts else (),
        )
        past.observe(run)
    return with_history(graph, past)


def promised(run, progress=None, now=0.0):
    active = ActiveRun("run", run.graph, -now, progress=progress or {}, forecast=run.forecast)
    promise = plan_runs([active], CLUSTER, OPTIONS).plans["run"].promise
    assert promise is not None
    assert promise.ends is not None
    return promise


def high(run, progress=None, now=0.0):
    """The latest end that is promised."""
    return promised(run, progress, now).later(now).ends.high_seconds


ONE_IN_FIVE = [1, 0, 0, 0, 0] * 4
NEVER = [0] * 20
ALWAYS = [2] * 20


def running(seconds):
    return {"flaky": StepProgress(ProgressState.RUNNING, "n1", seconds, ran_seconds=seconds)}


def test_the_end_is_as_late_as_with_an_attempt_that_fails():
    often, never = promised(learned(*ONE_IN_FIVE)), promised(learned(*NEVER))
    assert often.ends.high_seconds > never.ends.high_seconds + 0.8 * FAILED_SECONDS
    assert often.ends.typical_seconds == pytest.approx(never.ends.typical_seconds, rel=0.02)


def test_what_was_late_by_attempts_that_failed_is_not_late_by_itself():
    """Once the step has ended, none fails any more, and the rest is as sure as ever."""
    after = {"flaky": StepProgress(ProgressState.DONE, "n1", ran_seconds=SECONDS)}
    often, never = learned(*ONE_IN_FIVE), learned(*NEVER)
    assert high(often, after, SECONDS) == pytest.approx(high(never, after, SECONDS), rel=0.02)


def test_how_much_longer_whole_runs_take_is_not_applied_to_attempts_that_fail():
    promise = promised(learned(*ALWAYS, longer=1.5))
    usual = 1.5 * 2 * SECONDS + 2 * FAILED_SECONDS
    assert promise.ends.typical_seconds == pytest.approx(usual, rel=0.02)


def test_steps_after_it_start_and_end_later():
    last = promised(learned(*ONE_IN_FIVE)).steps["last"]
    usual = promised(learned(*NEVER)).steps["last"]
    assert last.starts.high_seconds > usual.starts.high_seconds + 0.8 * FAILED_SECONDS
    assert last.ends.high_seconds > usual.ends.high_seconds + 0.8 * FAILED_SECONDS


def test_an_attempt_that_has_outlived_those_that_failed_does_not_fail():
    often = learned(*ONE_IN_FIVE)
    early, late = (high(often, running(ran), ran) for ran in (10.0, 95.0))
    assert early > 2 * SECONDS + 0.8 * FAILED_SECONDS
    assert late < 2 * SECONDS + 0.5 * FAILED_SECONDS


@pytest.mark.parametrize("failed", [(1,), (0, 1), (1, 1), ONE_IN_FIVE], ids=len)
def test_the_last_step_ends_with_its_run(failed):
    promise = promised(learned(*failed))
    last = promise.steps["last"].ends
    assert last.low_seconds == pytest.approx(promise.ends.low_seconds, rel=0.01)
    assert last.typical_seconds == pytest.approx(promise.ends.typical_seconds, rel=0.01)
    assert last.high_seconds == pytest.approx(promise.ends.high_seconds, rel=0.01)


def test_a_step_that_always_fails_first_is_as_late_as_it_always_was():
    promise = promised(learned(*ALWAYS))
    usual = 2 * SECONDS + 2 * FAILED_SECONDS
    assert promise.ends.low_seconds == pytest.approx(usual, rel=0.1)
    assert promise.ends.typical_seconds == pytest.approx(usual, rel=0.02)
    assert promise.ends.high_seconds == pytest.approx(usual, rel=0.1)


def test_a_step_is_tried_as_often_as_it_may_be():
    always = learned(*ALWAYS)
    once = replace(always.graph, steps=(replace(CHAIN.steps[0], attempt_limit=1), CHAIN.steps[1]))
    assert high(replace(always, graph=once)) < 2 * SECONDS + 0.5 * FAILED_SECONDS


def test_no_more_attempts_fail_than_the_step_has_before_its_last():
    """Two failed in all past runs; now it may be tried twice."""
    always = learned(*ALWAYS)
    twice = replace(always.graph, steps=(replace(CHAIN.steps[0], attempt_limit=2), CHAIN.steps[1]))
    typical = promised(replace(always, graph=twice)).ends.typical_seconds
    assert typical == pytest.approx(2 * SECONDS + FAILED_SECONDS, rel=0.1)


def test_an_attempt_that_is_half_way_to_where_others_failed_may_still_fail():
    """It has run for 45 s of what takes 100; others failed after 80."""
    often = learned(*ONE_IN_FIVE)
    assert high(often, running(45.0), 45.0) > 2 * SECONDS + 0.8 * FAILED_SECONDS


def test_a_step_that_waits_for_its_next_attempt_waits_as_long_as_it_did_before():
    """What an attempt took is up to the next one; the last began 30 s ago."""
    often = learned(*ONE_IN_FIVE)

    def typical(since):
        waiting = StepProgress(failed_attempts=1, since_attempt_seconds=since)
        return promised(often, {"flaky": waiting}).ends.typical_seconds

    at_once = typical(None)
    assert typical(30.0) - at_once == pytest.approx(FAILED_SECONDS - 30.0, rel=0.2)
    assert typical(10 * FAILED_SECONDS) == pytest.approx(at_once, rel=0.01)


def test_later_runs_count_more():
    """Of twenty runs the last five had a failed attempt, or the first five."""
    lately, before = (promised(learned(*each)) for each in ([0] * 15 + [1] * 5, [1] * 5 + [0] * 15))
    middle = 2 * SECONDS + 0.5 * FAILED_SECONDS
    assert lately.ends.typical_seconds > middle > before.ends.typical_seconds
    assert before.ends.high_seconds < middle < lately.ends.high_seconds


def test_of_the_steps_of_a_loop_some_fail():
    """One in four did, on average."""
    may_fail = _MayFail(0, (TriedAgain(0.25, 1.0),), 3, 0, 0.0)
    drawn = _drawn(may_fail, np.full(400, SECONDS), np.random.default_rng(0))
    assert np.mean(drawn > 0) == pytest.approx(0.25, abs=0.05)
    assert np.median(drawn[drawn > 0]) == pytest.approx(SECONDS, rel=0.1)


def test_attempts_that_have_failed_by_now_are_over():
    """Two always fail; in the third attempt none is left to fail."""
    always = learned(*ALWAYS)
    ends = [
        high(
            always,
            {"flaky": StepProgress(ProgressState.WAITING, failed_attempts=failed)},
            failed * FAILED_SECONDS,
        )
        for failed in range(3)
    ]
    assert ends == pytest.approx([2 * SECONDS + 2 * FAILED_SECONDS] * 3, rel=0.1)


def test_the_same_promise_each_time():
    assert promised(learned(*ONE_IN_FIVE)) == promised(learned(*ONE_IN_FIVE))
