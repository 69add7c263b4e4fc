"""What holds of every schedule of every way of deciding."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kfp_placement_engine import BASELINES, Assumptions, GeneticParams, lower_bound, plan_run
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.tables import UNKNOWN_EXCESS_MS
from kfp_placement_engine.model.run_graph import Group, GroupKind
from kfp_placement_engine.planning.plan_parts import figures_of
from kfp_placement_engine.search.baselines.brute_force import count_plans
from kfp_placement_engine.search.genetic import seeds_of
from kfp_placement_engine.search.priorities import priority_rules
from kfp_placement_engine.search.simulation import simulate_fullest, simulate_list, simulate_planned
from tests.engine.planning.invariants import Checker
from tests.engine.planning.mixed_runs import LOCATION
from tests.engine.planning.random_runs import DISPATCHES, Case, cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    plan_of,
    searched,
    sentence_of,
    unplaced,
)
from tests.support.reference_simulation import Reference

OURS = ("memetic", "paper", "heft", "random", "brute-force", "list", "backfill", "fullest")
THEIRS = ("kube-default", "fifo")
# Two sums of the same few numbers, added in different orders.
ROUNDING = 1e-14
QUICK = GeneticParams(exact_below=0, population_size=4, restart_after=20)

uneven_assumptions = st.builds(
    Assumptions,
    duration_seconds=st.floats(0, 1e4),
    output_bytes=st.integers(0, 10**12),
    image_bytes=st.integers(0, 10**10),
    store_bytes_per_second=st.floats(1e5, 1e9),
    pull_bytes_per_second=st.floats(1e5, 1e9),
    driver_seconds=st.floats(0, 10),
    link_bytes_per_second=st.floats(1e5, 1e9),
)


def predicting(name):
    """A step that belongs near its users."""
    return a_step(name, type="Predict", location=LOCATION)


# kube-scheduler takes the larger node, of which nobody states a round trip.
UNKNOWN_ROUND_TRIP = Case(
    a_run(predicting("s0")),
    a_cluster(a_node("n1", cpu=2), a_node("n2", cpu=8), latencies={LOCATION: {"n1": 9.0}}),
)
# Eighteen steps, some of them 0.1 ms beyond the band, some more: where so many numbers are added,
# the order in which this is done shows in the last bit.
MANY_ROUND_TRIPS = Case(
    a_run(*(predicting(f"s{number}") for number in range(18))),
    a_cluster(
        *(a_node(f"n{number}", cpu=5) for number in range(1, 5)),
        latencies={LOCATION: {"n1": 9.4, "n2": 10.0, "n3": 20.0, "n4": 90.0}},
    ),
)


def under_kube_scheduler(case):
    """A case for the first test below that need not be drawn."""
    return example(
        case=case,
        way="kube-default",
        dispatch="ready",
        objective="completion",
        marked_only=False,
        assumptions=ROUND_NUMBERS,
    )


def decided(problem, way):
    """The schedule that a way of deciding leads to."""
    if way in ("memetic", "paper"):
        params = QUICK if way == "memetic" else replace(GeneticParams.paper(), population_size=4)
        # Each plan to start from is a generation of the default search.
        starts = len(list(seeds_of(problem, 1))) if way == "memetic" else 0
        return searched(problem, starts + 2, 1, params, threads=1).schedule
    if way == "list":
        return simulate_list(problem, priority_rules(problem)["longest-path"])
    if way == "fullest":
        return simulate_fullest(problem, priority_rules(problem)["longest-path"])
    if way == "backfill":
        nodes = problem.arrays.allowed.argmax(axis=1).astype(np.int64)
        return simulate_planned(problem, nodes, priority_rules(problem)["largest-area"])
    if way == "brute-force" and count_plans(problem) > 3000:
        way = "random"
    return BASELINES[way](problem, 1)


@settings(max_examples=200)
@given(
    case=cases(),
    way=st.sampled_from([*OURS, *THEIRS]),
    dispatch=DISPATCHES,
    objective=st.sampled_from(["completion", "makespan", "paper", "packing"]),
    marked_only=st.booleans(),
    assumptions=uneven_assumptions,
)
@under_kube_scheduler(UNKNOWN_ROUND_TRIP)
@under_kube_scheduler(MANY_ROUND_TRIPS)
def test_a_schedule_keeps_every_rule_and_no_schedule_beats_the_bound(
    case, way, dispatch, objective, marked_only, assumptions
):
    """Room, order, filters, volumes, loops, latency limits, times, bound, figures."""
    low = case.lowered(
        assumptions=assumptions, dispatch=dispatch, objective=objective, marked_only=marked_only
    )
    reference = Reference(
        case.run, case.cluster, assumptions, LATENCY_RULED_TYPES, marked_only=marked_only
    )
    schedule = decided(low.problem, way)
    checker = Checker(reference, low, schedule, ours=way in OURS)
    assert checker.faults() == []
    assert schedule.makespan_seconds >= lower_bound(low.problem).seconds
    figures = figures_of(low.problem, schedule)
    assert figures.makespan_seconds == schedule.makespan_seconds
    # The search charges a finite number for what nobody knows; people are told that it is unknown.
    if checker.has_unknown_round_trip():
        assert figures.latency_excess_ms == math.inf
        assert schedule.terms[1] >= UNKNOWN_EXCESS_MS
    else:
        assert figures.latency_excess_ms == pytest.approx(schedule.terms[1], rel=ROUNDING, abs=0)
    assert np.isfinite(schedule.terms).all()


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 3), dispatch=DISPATCHES)
def test_figures_count_the_steps_that_no_node_takes(case, seed, dispatch):
    """Steps, not driver pods; the same for the plan and for every baseline."""
    plan = plan_of(
        case.run,
        case.cluster,
        generations=1,
        seed=seed,
        dispatch=dispatch,
        params=QUICK,
        compare=("kube-default", "heft", "fifo", "random"),
        threads=1,
    )
    assert plan.figures.unplaced == len(plan.unschedulable)
    assert {figures.unplaced for figures in plan.comparison.baselines.values()} == {
        plan.figures.unplaced
    }
    for figures in (plan.figures, *plan.comparison.baselines.values()):
        assert figures.makespan_seconds >= plan.comparison.lower_bound.seconds


def test_a_step_larger_than_any_node_leaves_the_others_planned(golden):
    """It is unplaced, says why, and what comes after it is still shown."""
    run = a_run(
        a_step("small", seconds=5),
        a_step("huge", "small", cpu=99, seconds=7),
        a_step("after", "huge", seconds=3),
        a_step("beside", seconds=20),
    )
    plan = plan_of(run, generations=1)
    assert plan.figures.unplaced == 1
    assert unplaced(plan) == ["huge"]
    golden(sentence_of(plan, "huge"))
    assert "asks 99" in sentence_of(plan, "huge")
    huge = plan.step("huge")
    assert (huge.node, huge.start_seconds, huge.finish_seconds) == (None, None, None)
    for name in ("small", "after", "beside"):
        assert plan.step(name).node == "n1"
    assert plan.step("after").start_seconds == 12.0


def test_no_nodes_no_steps_no_plan():
    """The message says what is missing."""
    with pytest.raises(PlanningError, match="no nodes"):
        plan_run(a_run(a_step("a")), replace(a_cluster(), nodes=()))
    with pytest.raises(PlanningError, match="no steps"):
        plan_run(a_run(), a_cluster())


LOOP_OF_ITSELF = Group("loop", GroupKind.LOOP, depends_on=("inside",))
LOOP_AFTER_A_GHOST = Group("loop", GroupKind.LOOP, depends_on=("ghost",))
ORPHAN = Group("inner", GroupKind.DAG, parent="outer")
REFUSED = {
    "a cycle": (a_run(a_step("a", "b"), a_step("b", "a")), r"cycle, or .*a.*b"),
    "a cycle of one step": (a_run(a_step("a", "a")), "cycle"),
    "a cycle that only groups make": (
        a_kfp_run(a_step("inside", group="loop"), groups=(LOOP_OF_ITSELF,)),
        "cycle",
    ),
    "a step after one that does not exist": (a_run(a_step("a", "ghost")), "'a' depends on 'ghost'"),
    "a group after a step that does not exist": (
        a_kfp_run(a_step("a"), groups=(LOOP_AFTER_A_GHOST,)),
        "'loop' depends on 'ghost'",
    ),
    # One of them would disappear from the plan.
    "two steps of one name": (a_run(a_step("a"), a_step("a")), "'a'"),
    "a group inside one that does not exist": (
        a_kfp_run(a_step("a", group="inner"), groups=(ORPHAN,)),
        "'outer'",
    ),
}


@pytest.mark.parametrize(("run", "message"), REFUSED.values(), ids=REFUSED)
def test_graphs_that_cannot_be_planned_are_refused_by_name(run, message):
    with pytest.raises(PlanningError, match=message):
        a_problem(run)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_run_time_that_is_none_is_refused(seconds):
    """Readers refuse it too; a graph made by hand has no reader."""
    with pytest.raises(PlanningError, match="'a'"):
        a_problem(a_run(a_step("a", seconds=seconds)))


@pytest.mark.parametrize("field", ["speed", "store_bytes_per_second", "pull_bytes_per_second"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_node_that_can_do_nothing_is_refused(field, value):
    """Nothing would ever end there."""
    with pytest.raises(PlanningError, match="'n1'"):
        a_problem(a_run(a_step("a")), a_cluster(a_node(**{field: value})))


def test_a_driver_that_fits_nowhere_does_not_count_as_a_step():
    """Full nodes: drivers pass without a node and only steps are reported."""
    full = a_node(cpu=1, used={"cpu": 950, "memory": 0, "pods": 1})
    plan = plan_of(a_kfp_run(a_step("a")), a_cluster(full), generations=1)
    assert plan.figures.unplaced == 1
    assert unplaced(plan) == ["a"]
