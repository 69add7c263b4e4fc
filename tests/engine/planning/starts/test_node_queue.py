"""Which steps of a node's queue start: who may pass whom, and that nobody is passed forever."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.lowering.branches import AFTER_FAILURE
from kfp_placement_engine.model.concurrency import Branch
from kfp_placement_engine.planning.starts.node_queue import (
    MOST_KEPT,
    QueuedStep,
    RunningStep,
    expected_end,
    steps_to_start,
)

FOUR = {"cpu": 4, "pods": 4}
NOW = 100.0


def step(cpu: int = 1, start: float = NOW, seconds: float = 10.0, **fields) -> QueuedStep:
    """A step whose pod waits, unless the fields say otherwise."""
    values = {"expected_start_seconds": start, "latest_start_seconds": start, "is_ready": True}
    return QueuedStep({"cpu": cpu}, start, seconds, **values | fields)


def absent(cpu: int, start: float = NOW, seconds: float = 10.0, **fields) -> QueuedStep:
    """A step that has no pod yet."""
    return step(cpu, start, seconds, is_ready=False, **fields)


def running(cpu: int, end: float, start: float = 0.0) -> RunningStep:
    return RunningStep({"cpu": cpu}, start, end)


def started(queue, busy=(), free=4):
    return steps_to_start(queue, busy, {**FOUR, "cpu": free}, NOW)


def passes(first, seconds, busy=(), free=4):
    """Whether a step of one CPU starts although `first` stands before it, and does not."""
    positions = started([first, step(seconds=seconds)], busy, free)
    assert positions in ([], [1])
    return positions == [1]


def test_steps_start_in_the_plan_s_order_until_the_node_is_full():
    assert started([step(2), step(2), step(1)]) == [0, 1]


def test_one_that_decided_steps_leave_no_room_waits():
    assert started([absent(3, is_allowed=True), step(2), step(1)]) == [2]


def test_no_room_is_kept_for_a_branch_beside_one_whose_pod_is_made():
    if_path, else_path = ((Branch("c", name),) for name in ("if", "else"))
    assert started([absent(4, path=if_path), step(2, path=else_path)]) == [1]
    assert started([absent(4, path=if_path), step(2, path=if_path)]) == []
    assert started([absent(4, path=if_path), step(2)]) == []


def test_no_room_is_kept_for_what_runs_only_after_a_failure():
    assert started([absent(4, path=(AFTER_FAILURE,)), step(2)]) == [1]


# `first` needs the whole node in 20 s, as planned.
ON_TIME_FIRST = absent(4, NOW + 20)


def test_a_step_that_has_ended_by_then_passes():
    assert passes(ON_TIME_FIRST, 20)


def test_a_longer_one_does_not():
    assert not passes(ON_TIME_FIRST, 20.1)


def test_a_longer_one_passes_if_both_fit():
    assert passes(ON_TIME_FIRST._replace(requests={"cpu": 3}), 1e6)


def test_slack_of_its_run_is_not_taken_from_it():
    assert not passes(ON_TIME_FIRST._replace(latest_start_seconds=1e6), 21)


def test_a_time_that_nobody_knows_passes_only_beside_it():
    assert not passes(ON_TIME_FIRST, math.inf)
    assert passes(absent(3, NOW + 20), math.inf)


# `first` should have started; it waits for a step elsewhere that ends in 30 s.
LATE_FIRST = absent(4, NOW - 5, expected_start_seconds=NOW + 30, latest_start_seconds=NOW + 30)


def test_its_room_is_used_until_it_can_start():
    assert passes(LATE_FIRST, 30)
    assert not passes(LATE_FIRST, 31)


def test_it_is_delayed_by_no_more_than_its_slack():
    patient = LATE_FIRST._replace(latest_start_seconds=NOW + 40)
    assert passes(patient, 40)
    assert not passes(patient, 41)


# `first` is there and needs the node, of which one CPU is in use for 25 s more.
READY_FIRST = step(4, NOW - 5)
BUSY = (running(1, NOW + 25),)


def test_a_step_that_has_ended_when_it_gets_its_room_passes():
    assert passes(READY_FIRST, 25, BUSY, 3)
    assert not passes(READY_FIRST, 26, BUSY, 3)


def test_slack_that_lies_before_that_gives_nothing():
    first = READY_FIRST._replace(latest_start_seconds=NOW + 20)
    assert not passes(first, 26, BUSY, 3)


def test_nobody_passes_while_it_waits_for_what_has_no_known_end():
    assert not passes(READY_FIRST, 1, (), 3)
    assert not passes(READY_FIRST, 1, [running(1, math.inf)], 3)


def test_an_overrun_lasts_half_as_long_again():
    assert expected_end(0.0, 40.0, 39.0) == 40.0
    assert expected_end(0.0, 40.0, 40.0) == 60.0
    assert expected_end(0.0, 1.0, 40.0) == 60.0
    busy = [running(1, NOW - 10, NOW - 50)]
    assert started([step(4, NOW - 5), step(seconds=25.0)], busy, 3) == [1]
    assert started([step(4, NOW - 5), step(seconds=26.0)], busy, 3) == []


def test_no_more_is_kept_for_a_pod_than_its_step_was_planned_with():
    """Its owner chooses what it requests; it waits until all of that is there."""
    giant = step(1, NOW - 5)._replace(pod_requests={"cpu": 60})
    assert started([giant, step(3, seconds=1000.0)]) == [1]
    assert started([giant, step(4, seconds=1000.0)]) == []


def test_steps_between_keep_their_room_too():
    """The second may not be delayed either, though the first would bear it."""
    first = absent(1, NOW - 5, latest_start_seconds=NOW + 50)
    assert started([first, absent(4, NOW + 10), step(seconds=11)]) == []
    assert started([first, absent(3, NOW + 10), step(seconds=11)]) == [2]


def test_a_stream_of_short_steps_does_not_pass_one_forever():
    """One that needs the node starts by the time that its slack leaves, whatever comes."""
    latest = 100.0
    busy = [running(1, 10.0)]
    for now in range(200):
        busy = [each for each in busy if each.end_seconds > now]
        free = {"cpu": 4 - len(busy), "pods": 110}
        first = step(4, 0.0, 10.0, latest_start_seconds=latest)
        queue = [first, *(step(1, now, 30.0) for _ in range(4))]
        positions = steps_to_start(queue, busy, free, now)
        if 0 in positions:
            break
        busy += [running(1, now + 30.0, now) for _ in positions]
    assert 10 < now <= latest


steps = st.lists(
    st.builds(
        QueuedStep,
        st.builds(lambda cpu: {"cpu": cpu}, st.integers(0, 5)),
        *(st.floats(0, 200) | st.just(math.inf) for _ in range(4)),
        is_ready=st.booleans(),
        is_allowed=st.booleans(),
        pod_requests=st.none(),
    ),
    max_size=12,
)
busy_steps = st.lists(st.builds(running, st.integers(0, 2), st.floats(0, 200)), max_size=3)


@given(steps, busy_steps, st.integers(-2, 4))
def test_only_ready_steps_start_and_the_node_holds_them(queue, busy, free):
    positions = started(queue, busy, free)
    assert positions == sorted(set(positions))
    assert all(queue[each].is_ready and not queue[each].is_allowed for each in positions)
    in_use = sum(each.requests["cpu"] for each in queue if each.is_allowed)
    in_use += sum(queue[each].requests["cpu"] for each in positions)
    assert (
        not positions
        or in_use <= free
        or all(queue[each].requests["cpu"] == 0 for each in positions)
    )


@given(steps, busy_steps, st.integers(0, 4))
def test_the_first_that_is_ready_and_fits_starts(queue, busy, free):
    """The head of a queue never waits for those behind it."""
    queue = [each for each in queue if not each.is_allowed]
    if queue and queue[0].is_ready and queue[0].requests["cpu"] <= free:
        assert started(queue, busy, free)[:1] == [0]


def test_behind_very_many_steps_only_what_fits_beside_the_last_of_them_passes():
    """They follow each other on one CPU, or pod; the room of the last is kept from now on."""
    for cpu in (1, 0):
        for further, passes in ((2, True), (3, False)):
            queue = [absent(cpu, NOW + each, 1.0) for each in range(MOST_KEPT + further)]
            assert bool(started([*queue, step(cpu, seconds=1e6)])) == passes
