"""What is said of when waiting runs start, and what queues learn from what became of that."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.start_ranges import (
    RangeParams,
    StartOutcome,
    StartRanges,
    start_outcome,
)
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION
from kfp_placement_engine.contract.run_queue import MAX_WAIT_RATIO, MAX_WAITS
from kfp_placement_engine.contract.run_request import StartRange
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.times import time_text
from tests.controller.queueing.builders import QUEUE, START, admitted, after, nodes, rules, waiting
from tests.controller.queueing.scene import SimulatedScene, a_queue

RUN = RunKey("team", "next")
HALVES = [0.5] * 10 + [2.0] * 10
"""Ratios of a queue whose runs begin after half of the forecast, or after twice of it."""


def ranges_of(ratios=(), ends_at=None, **params):
    """Those of a queue whose next run begins when the one that runs has ended."""
    ranges = StartRanges(RangeParams(**params))
    ranges.observe_queues([a_queue(status={"waitRatios": [*ratios]})])
    ranges.forecast([queues(ends_at or after(1))], START, START.timestamp())
    return ranges


def said_by(ranges, before=None, now=START):
    """What they say of when the next run begins, after what they have said before."""
    return ranges.starts(RUN, QUEUE, before, START, now)


def queues(ends_at):
    running = [admitted("old", ends_at=ends_at)]
    return QueueSimulation([waiting("next")], running, rules(max_runs=1), nodes(cpu=8))


def test_before_it_has_seen_enough_waits_a_queue_says_only_when_the_earliest_is():
    start = said_by(ranges_of(HALVES[:19]))
    assert start == StartRange(earliest=after(0.2), forecast=after(1), said_at=START)


def test_then_it_says_in_what_range_four_of_five_of_its_last_runs_would_have_been():
    start = said_by(ranges_of(HALVES))
    assert start == StartRange(
        earliest=after(0.5), latest=after(2), forecast=after(1), said_at=START
    )


def test_a_range_leaves_out_a_tenth_of_the_last_runs_at_either_end():
    """Of twenty that waited for a tenth to twice of their forecasts, evenly."""
    start = said_by(ranges_of([n / 10 for n in range(1, 21)]))
    # The quantiles of Hyndman and Fan's sixth definition, at 2.1 and 18.9 of 20.
    assert (start.earliest - START) / timedelta(hours=1) == pytest.approx(0.21, abs=0.001)
    assert (start.latest - START) / timedelta(hours=1) == pytest.approx(1.89, abs=0.001)


def test_a_range_is_of_what_is_left_of_the_wait():
    now = START + timedelta(minutes=30)
    start = said_by(ranges_of(HALVES), now=now)
    assert (start.earliest, start.latest) == (after(0.75), after(1.5))


def test_what_was_said_stays_while_it_is_about_right():
    ranges = ranges_of(HALVES)
    start = said_by(ranges)
    for seconds, is_new in ((60.0, False), (-60.0, False), (600.0, True), (-600.0, True)):
        moved = ranges_of(HALVES, ends_at=after(1) + timedelta(seconds=seconds))
        assert (said_by(moved, start) != start) is is_new


def test_the_end_of_a_range_is_said_as_soon_as_there_is_one():
    early = said_by(ranges_of())
    assert early.latest is None
    assert said_by(ranges_of(HALVES), early).latest == after(2)


def test_what_became_of_a_forecast_is_learned_once():
    ranges = ranges_of()
    first = StartRange(earliest=START, forecast=after(2), said_at=START)
    for _ in range(3):
        ranges.started("uid", QUEUE, first, after(3))
    assert ranges.ratios(QUEUE) == (1.5,)
    again = StartRange(earliest=START, forecast=after(5), said_at=after(4))
    ranges.started("uid", QUEUE, again, after(5))
    assert ranges.ratios(QUEUE) == (1.5, 1.0)


def test_a_forecast_of_a_moment_and_a_clock_that_jumps_teach_bounded_ratios():
    ranges = ranges_of()
    now = StartRange(earliest=START, forecast=START, said_at=START)
    ranges.started("a", QUEUE, now, after(10_000))
    ranges.started("b", QUEUE, now, after(-1))
    assert ranges.ratios(QUEUE) == (MAX_WAIT_RATIO, 0.0)


def test_the_last_waits_count():
    ranges = ranges_of([1.0] * MAX_WAITS)
    first = StartRange(earliest=START, forecast=after(1), said_at=START)
    ranges.started("uid", QUEUE, first, after(3))
    assert ranges.ratios(QUEUE) == (*[1.0] * (MAX_WAITS - 1), 3.0)


def test_a_queue_that_is_gone_is_forgotten_and_one_that_comes_back_says_what_it_has_learned():
    ranges = ranges_of(HALVES)
    ranges.observe_queues([])
    assert ranges.ratios(QUEUE) == ()
    ranges.observe_queues([a_queue(status={"waitRatios": [3.0]})])
    assert ranges.ratios(QUEUE) == (3.0,)


@pytest.mark.parametrize(
    ("latest", "hours", "outcome"),
    [
        (after(2), 0.9, StartOutcome.EARLY),
        (after(2), 1.0, StartOutcome.KEPT),
        (after(2), 2.0, StartOutcome.KEPT),
        (after(2), 2.1, StartOutcome.LATE),
        (None, 0.0, None),
    ],
)
def test_a_start_is_early_kept_or_late_if_an_end_was_promised(latest, hours, outcome):
    assert start_outcome(StartRange(earliest=after(1), latest=latest), after(hours)) is outcome


# In the whole queue.


def a_waiting_one(ratios=(), **queue):
    """A queue of one run at a time, in which one goes on for an hour and one waits."""
    status = {"waitRatios": [*ratios]}
    scene = SimulatedScene(runs=1, status=status, **queue)
    scene.submit("old", 0.9, makespan="1h")
    scene.submit("next", 1.0, makespan="1h")
    assert scene.settle() == ["old begins: admitted"]
    return scene


def hours_until(scene, run, moment, field="starts"):
    """How long it is to a moment that is said of a run."""
    at = datetime.fromisoformat(scene.written[run][field][moment])
    return (at - scene.now) / timedelta(hours=1)


def test_a_waiting_run_s_request_says_when_it_starts_and_keeps_what_was_first_said():
    scene = a_waiting_one(HALVES)
    starts, first = scene.written["next"]["starts"], scene.written["next"]["firstStarts"]
    assert starts == first
    assert hours_until(scene, "next", "earliest") == pytest.approx(0.5, abs=0.001)
    assert hours_until(scene, "next", "latest") == pytest.approx(2.0, abs=0.001)
    assert "starts" not in scene.written["old"]
    # By its plan in force, the one that goes on ends later.
    scene.pass_time(60)
    scene.say("old", finishesAt=time_text(scene.now + timedelta(hours=2)))
    scene.settle()
    assert hours_until(scene, "next", "earliest") == pytest.approx(1.0, abs=0.01)
    assert scene.written["next"]["firstStarts"] == first
    scene.end("old")
    assert scene.settle_after(1) == ["next begins: admitted"]
    assert "starts" not in scene.written["next"]
    assert scene.written["next"]["firstStarts"] == first


def test_a_queue_s_status_keeps_what_it_has_learned_for_the_next_that_leads():
    scene = a_waiting_one()
    scene.pass_time(1800)
    scene.end("old")
    scene.settle()
    assert scene.queue().status.wait_ratios == pytest.approx((0.5,), abs=0.01)
    scene.lead_again()
    scene.submit_and_settle("third", 1.4, makespan="1h")
    scene.pass_time(3600)
    scene.end("next")
    scene.settle()
    assert scene.queue().status.wait_ratios == pytest.approx((0.5, 1.0), abs=0.4)
    assert len(scene.queue().status.wait_ratios) == 2


def test_what_others_write_of_that_is_put_right():
    scene = a_waiting_one([1.0])
    queue = scene.queue()
    status = queue.status.model_copy(update={"wait_ratios": (9.0, 9.0)})
    scene.set_queue(replace(queue, version="99", status=status))
    scene.settle_after(5)
    assert scene.queue().status.wait_ratios == (1.0,)


def test_a_run_that_somebody_lets_begin_teaches_nothing():
    scene = a_waiting_one()
    scene.ask("next", ADMIT_ANNOTATION)
    assert scene.settle() == ["next begins: requested"]
    scene.settle_after(5)
    assert scene.queue().status.wait_ratios == ()


def test_a_preempted_run_gets_a_new_forecast_which_counts_from_then():
    scene = a_waiting_one(priorities={"max": 10})
    scene.submit("urgent", 1.1, priority=5, makespan="30m")
    pod = scene.pod("old", cpu=1000)
    outcomes = scene.settle()
    assert outcomes == ["old stops for uid-urgent"]
    scene.pass_time(30)
    scene.end_pod(pod)
    assert scene.settle() == ["urgent begins: admitted"]
    scene.settle_after(15)
    # It was submitted first, so it is next.
    assert hours_until(scene, "old", "forecast", "firstStarts") == pytest.approx(0.5, abs=0.02)


def test_a_run_that_never_begins_as_things_are_gets_no_range():
    scene = a_waiting_one()
    scene.submit_and_settle("large", 1.2, gpu="1", makespan="1h")
    assert "starts" not in scene.written["large"]


def test_a_new_run_is_given_a_range_at_once_and_others_now_and_then():
    scene = a_waiting_one()
    before = scene.written["next"]["starts"]
    scene.submit("third", 1.2, makespan="1h")
    scene.settle_after(1)
    assert hours_until(scene, "third", "forecast") == pytest.approx(2.0, abs=0.01)
    assert scene.written["next"]["starts"] == before
