"""Expected times of a run's steps: after what they wait for, and their slack."""

import math

import pytest

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunGraph, Step
from kfp_placement_engine.planning.starts.expected_times import (
    StepOrder,
    StepSpan,
    expected_times,
)

BEFORE = {"a": (), "b": ("a",), "long": ("a",), "end": ("b", "long")}
PLANNED = {
    "a": StepSpan(0.0, 10.0),
    "b": StepSpan(10.0, 20.0),
    "long": StepSpan(10.0, 50.0),
    "end": StepSpan(50.0, 60.0),
}


def a_run(before=BEFORE):
    """A run of steps that wait for others."""
    steps = tuple(Step(name, name, depends_on=waits) for name, waits in before.items())
    return RunGraph("run", "test", steps)


def expected(now, **changes):
    planned = {name: times for name, times in (PLANNED | changes).items() if times is not None}
    return expected_times(StepOrder.of(a_run()), planned, now)


def test_as_planned_the_critical_path_has_no_slack():
    times = expected(0.0)
    assert times.starts == {"a": 0.0, "b": 10.0, "long": 10.0, "end": 50.0}
    assert times.latest_starts == {"a": 0.0, "b": 40.0, "long": 10.0, "end": 50.0}


def test_what_waits_for_a_late_step_is_late():
    """`a` has run for its 10 s at 25 s: 5 s more are expected."""
    times = expected(25.0, a=StepSpan(15.0, 25.0, runs=True))
    assert times.starts == {"a": 15.0, "b": 30.0, "long": 30.0, "end": 70.0}
    assert times.latest_starts["b"] == 60.0


def test_steps_that_have_ended_hold_nobody_up():
    times = expected(12.0, a=None)
    assert times.starts == {"b": 12.0, "long": 12.0, "end": 52.0}


def test_nothing_is_expected_before_it_is_planned():
    assert expected(3.0, a=None).starts["b"] == 10.0


def test_a_run_of_which_a_time_is_unknown_has_no_slack():
    times = expected(0.0, long=StepSpan(10.0, math.inf))
    assert times.latest_starts == times.starts


def test_times_that_cannot_be_are_taken_as_none():
    times = expected(0.0, b=StepSpan(10.0, -50.0))
    assert times.starts["end"] == 50.0
    assert times.latest_starts["b"] == 50.0


def test_no_steps_expect_nothing():
    times = expected_times(StepOrder.of(a_run()), {}, 0.0)
    assert (times.starts, times.latest_starts) == ({}, {})


def test_steps_inside_a_group_wait_for_what_the_group_waits_for():
    groups = (
        Group("", GroupKind.ROOT),
        Group("inner", GroupKind.DAG, parent="", depends_on=("first",)),
    )
    steps = (Step("inner.work", "work", group="inner"), Step("first", "first"))
    order = StepOrder.of(RunGraph("run", "test", steps, groups))
    planned = {"first": StepSpan(0.0, 10.0), "inner.work": StepSpan(4.0, 6.0)}
    assert expected_times(order, planned, 0.0).starts["inner.work"] == 10.0


@pytest.mark.parametrize("before", [{"a": ("b",), "b": ("a",)}, {"a": ("gone",)}])
def test_a_run_without_an_order_is_refused(before):
    with pytest.raises(PlanningError, match=r"cycle|does not exist"):
        StepOrder.of(a_run(before))
