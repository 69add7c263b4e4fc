"""Latency rules: who is ruled, which nodes are best, what is hard, what switches a rule off."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine import PlanOptions, plan_run, read_cluster_file, read_run_file
from kfp_placement_engine.lowering.tables import UNKNOWN_EXCESS_MS
from kfp_placement_engine.model.node_rules.latency import (
    UNKNOWN_MS,
    LatencyTolerance,
    band_limit_ms,
    excess_ms,
    is_within,
)
from tests.support.builders import (
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    codes_of_plan,
    equal_steps,
    nodes,
    notice_of,
    plan_of,
    sentence_of,
    unplaced,
)
from tests.support.checkout import ROOT
from tests.support.renderings import plan_table

TAXI = ROOT / "samples" / "06_taxi"
PLACE = "HOME-EDGE"


def predicting(name="predict", **changes):
    """A prediction step with users at `PLACE`."""
    return a_step(name, **{"type": "Predict", "location": PLACE} | changes)


def near_users(*members, **trips):
    """A cluster with round trips to `PLACE`, of the nodes that have one unless others are given."""
    return a_cluster(*(members or map(a_node, trips)), latencies={PLACE: trips})


def node_of(plan):
    """Where the prediction goes."""
    return plan.step("predict").node


def excess_of(step, cluster):
    """[N] round trip beyond the band for the step."""
    problem = a_problem(a_run(step), cluster)
    return problem.arrays.latency_excess_ms[problem.arrays.class_of[0]].tolist()


@pytest.mark.parametrize(
    ("best", "second", "excess"),
    [(1.0, 1.5, 0.0), (9.0, 10.0, 0.5), (100.0, 105.0, 0.0), (100.0, 106.0, 1.0)],
)
def test_nodes_within_the_band_count_as_best(best, second, excess):
    """Half a millisecond or 5 %, whichever is more."""
    assert excess_of(predicting(), near_users(n1=best, n2=second)) == [0.0, pytest.approx(excess)]


ROUND_TRIPS = st.floats(min_value=0.0, max_value=1_000.0)


@given(
    trips=st.lists(st.none() | ROUND_TRIPS, min_size=1, max_size=6).filter(
        lambda trips: any(each is not None for each in trips)
    ),
    limit=st.none() | ROUND_TRIPS,
    is_ruled=st.booleans(),
    tolerance=st.builds(LatencyTolerance, ROUND_TRIPS, st.floats(min_value=0.0, max_value=2.0)),
)
def test_tables_of_rules_hold_what_is_decided_of_each_node(trips, limit, is_ruled, tolerance):
    members = nodes(len(trips))
    measured = {
        node.name: trip for node, trip in zip(members, trips, strict=True) if trip is not None
    }
    step = predicting(type="Predict" if is_ruled else "Train", max_latency_ms=limit)
    cluster = a_cluster(*members, latencies={PLACE: measured})
    arrays = a_problem(a_run(step), cluster, latency_tolerance=tolerance).arrays
    round_trips = [measured.get(node.name, UNKNOWN_MS) for node in members]
    limits = [] if limit is None else [limit]
    if is_ruled:
        limits.append(band_limit_ms(round_trips, tolerance))
    expected = [
        max((excess_ms(trip, each) for each in limits), default=0.0) for trip in round_trips
    ]
    row = arrays.latency_excess_ms[arrays.class_of[0]].tolist()
    assert row == [min(each, UNKNOWN_EXCESS_MS) for each in expected]
    within = [limit is None or is_within(trip, limit) for trip in round_trips]
    if any(within):
        assert arrays.allowed[arrays.gene[0]].tolist() == within


def test_the_band_hangs_on_the_best_node_with_room():
    """A near node that never has room does not count, be it small or taken by others' pods."""
    full = a_node("n1", used={"cpu": 3500, "memory": 0, "pods": 1})
    small = a_node("n2", cpu=0.5)
    members = (full, small, a_node("n3"), a_node("n4"))
    excess = excess_of(predicting(), near_users(*members, n1=1.0, n2=2.0, n3=30.0, n4=31.0))
    assert excess[2:] == [0.0, 0.0]


def test_an_unknown_node_is_taken_only_when_the_known_ones_cannot_take_the_step(golden):
    """`n1` is unknown and quick, `n2` is far and slow."""
    members = (a_node("n1", speed=9.0), a_node("n2", cpu=1, speed=0.5))
    cluster = near_users(*members, n2=400.0)
    plan = plan_run(a_run(predicting()), cluster)
    assert node_of(plan) == "n2"
    plan = plan_run(a_run(predicting(cpu=2)), cluster)
    assert node_of(plan) == "n1"
    assert plan.step("predict").latency_ms is None
    golden(sentence_of(plan, "predict"))


@pytest.mark.parametrize(
    ("ruled", "changes"),
    [
        (True, {"type": "predict"}),
        (True, {"type": "PREDICTING"}),
        (True, {"type": "Inference"}),
        (True, {"type": "Serving"}),
        (False, {"type": "Training"}),
        (False, {"type": ""}),
        (False, {"location": ""}),
    ],
)
def test_some_types_are_ruled_whatever_their_case_where_there_is_a_location(ruled, changes):
    assert (excess_of(predicting(**changes), near_users(n1=50.0, n2=1.0)) != [0, 0]) == ruled


def test_a_guessed_type_is_ruled_too():
    """And shown as guessed."""
    cluster = near_users(n1=50.0, n2=1.0)
    plan = plan_run(a_run(predicting(type_guessed=True)), cluster)
    assert node_of(plan) == "n2"
    assert plan.step("predict").spec.type_guessed


def test_the_types_of_the_policy_are_ruled():
    """`PlanOptions` names them."""
    run = a_run(predicting(type="Scoring"))
    cluster = near_users(n1=50.0, n2=1.0)
    plan = plan_of(run, cluster, latency_ruled_types=("scoring",))
    assert node_of(plan) == "n2"
    assert plan.step("predict").latency_ms == 1.0


def test_a_plan_shows_the_locations_of_the_types_in_force(golden):
    """Also where nobody states a round trip; of other types it says that nothing follows."""
    run = a_run(predicting(type="Scoring"), predicting("usual"))
    cluster = a_cluster(*nodes(2), latencies={"CLOUD": {"n1": 1.0}})
    plan = plan_of(run, cluster, latency_ruled_types=("scoring",))
    assert plan.step("predict").is_latency_ruled
    assert not plan.step("usual").is_latency_ruled
    unused = notice_of(plan, "location-unused")
    golden(unused.message)
    assert unused.step == "usual"


def test_locations_are_found_whatever_their_case():
    """An exact match comes first."""
    trips = {PLACE: {"n1": 1.0, "n2": 50.0}, "home-edge": {"n1": 50.0, "n2": 1.0}}
    for location, node in (("HOME-EDGE", "n1"), ("home-edge", "n2"), ("Home-Edge", "n1")):
        plan = plan_run(a_run(predicting(location=location)), a_cluster(*nodes(2), latencies=trips))
        assert node_of(plan) == node
        assert not plan.notices or {notice.code for notice in plan.notices} == {"unmarked-steps"}


def test_an_unknown_location_switches_the_rule_off_and_says_so():
    """Once a task, naming what is known."""
    cluster = a_cluster(*nodes(2), latencies={"CLOUD": {"n1": 1.0}})
    loop = [replace(predicting(f"predict-{n}"), task="predict") for n in range(3)]
    plan = plan_run(a_run(*loop), cluster)
    notice = notice_of(plan, "unknown-location")
    assert notice.step == "predict"
    assert PLACE in notice.message
    assert "CLOUD" in notice.message
    assert plan.figures.latency_ms == plan.figures.latency_excess_ms == 0


def test_no_latency_anywhere_switches_the_rule_off_and_says_so():
    """A location without a single measurement is an unknown one."""
    nowhere: list[dict[str, dict[str, float]]] = [{}, {PLACE: {}}]
    for latencies in nowhere:
        plan = plan_run(a_run(predicting()), a_cluster(latencies=latencies))
        assert codes_of_plan(plan) == ["unknown-location"]
        assert node_of(plan) == "n1"


def test_a_hard_limit_is_never_broken(dispatch):
    """The only node within 20 ms is slow and busy; the step waits for it even when ready."""
    run = a_run(
        a_step("hog", seconds=30, node_selector={"zone": "near"}), predicting(max_latency_ms=20.0)
    )
    near = a_node("near", cpu=1, speed=0.1, labels={"zone": "near"})
    cluster = near_users(near, a_node("far"), near=20.0, far=20.1)
    plan = plan_of(run, cluster, dispatch=dispatch)
    assert node_of(plan) == "near"
    assert plan.step("predict").finish_seconds == pytest.approx(400)


def test_a_hard_limit_that_no_node_keeps_is_unschedulable_with_the_reason(golden):
    """Nodes of unknown latency may not take it either."""
    cluster = near_users(*nodes(3), n1=25.0, n2=90.0)
    plan = plan_run(a_run(predicting(max_latency_ms=20.0), a_step("other")), cluster)
    ((name, reason),) = plan.unschedulable
    golden(reason)
    assert name == "predict"
    assert plan.figures.unplaced == 1
    assert plan.step("other").node is not None


def test_a_hard_limit_of_zero_is_a_limit():
    """Not the absence of one."""
    cluster = near_users(n1=0.0, n2=0.1)
    assert node_of(plan_run(a_run(predicting(max_latency_ms=0.0)), cluster)) == "n1"
    cluster = near_users(n1=0.2, n2=0.1)
    plan = plan_run(a_run(predicting(max_latency_ms=0.0)), cluster)
    assert unplaced(plan) == ["predict"]
    assert "beyond 0 ms" in plan.unschedulable[0][1]


def test_a_hard_limit_holds_for_any_type():
    """But a step of another type need not go to the nearest node."""
    cluster = near_users(
        a_node("near", speed=0.5),
        a_node("middle", speed=2.0),
        a_node("far", speed=8.0),
        near=1.0,
        middle=15.0,
        far=80.0,
    )
    plan = plan_run(a_run(predicting(type="Training", max_latency_ms=20.0)), cluster)
    assert node_of(plan) == "middle"
    assert plan.figures.latency_excess_ms == 0


def test_a_baseline_that_breaks_a_hard_limit_is_seen_to_break_a_rule():
    """Though the step's type follows no rule: it ends earlier on the quick node, 30 ms too far."""
    step = a_step("show", location=PLACE, max_latency_ms=20.0, type="Evaluate", seconds=100)
    members = [a_node("near", cpu=8), a_node("far", cpu=16, speed=4.0)]
    cluster = near_users(*members, near=5.0, far=50.0)
    plan = plan_of(a_run(step), cluster, generations=5, compare=("kube-default",))
    baseline = plan.comparison.baselines["kube-default"]
    assert plan.steps[0].node == "near"
    assert plan.figures.latency_excess_ms == 0.0
    assert baseline.makespan_seconds < plan.figures.makespan_seconds
    assert baseline.latency_excess_ms == pytest.approx(30.0)


def test_a_sum_with_an_unknown_round_trip_is_unknown():
    """Else the baseline that breaks the rule would look as if it were nearest."""
    cluster = near_users(a_node("near", cpu=8), a_node("unknown", cpu=32), near=9.0)
    options = PlanOptions(generations=5, compare=("kube-default",))
    plan = plan_run(a_run(predicting(max_latency_ms=20.0)), cluster, options)
    baseline = plan.comparison.baselines["kube-default"]
    assert (plan.figures.latency_ms, plan.figures.latency_excess_ms) == (9.0, 0.0)
    assert baseline.latency_ms == baseline.latency_excess_ms == math.inf
    shown = plan_table(plan)
    assert "unknown" in shown
    assert "e+0" not in shown


def test_an_unknown_location_switches_a_hard_limit_off_too():
    """Better a plan and a warning than none."""
    plan = plan_run(a_run(predicting(max_latency_ms=5.0)), a_cluster())
    assert codes_of_plan(plan) == ["unknown-location"]
    assert plan.unschedulable == ()


def test_limits_and_shared_volumes_meet_on_one_node():
    """The group goes where the limit of one of them allows."""
    run = a_run(
        a_step("prepare", claims=["disk"]), predicting(max_latency_ms=20.0, claims=["disk"])
    )
    cluster = near_users(a_node("far", speed=9.0), a_node("near"), near=5.0, far=50.0)
    plan = plan_run(run, cluster)
    assert {step.node for step in plan.steps} == {"near"}


def test_a_busy_near_node_is_named_under_ready_dispatch(golden):
    """Where the step went and why not there."""
    run = a_run(predicting("first", seconds=50), predicting("second", seconds=50))
    cluster = near_users(a_node("near", cpu=1), a_node("far"), near=9.8, far=42.55)
    plan = plan_of(run, cluster, dispatch="ready")
    assert sorted(step.node or "" for step in plan.steps) == ["far", "near"]
    reasons = {step.node: step.explanation.sentence for step in plan.steps}
    golden(reasons["near"], "near")
    golden(reasons["far"], "far")
    assert plan.figures.latency_excess_ms == pytest.approx(42.55 - 10.3)
    assert plan.figures.latency_ms == pytest.approx(42.55 + 9.8)
    plan = plan_of(run, cluster, dispatch="ordered")
    assert [step.node for step in plan.steps] == ["near", "near"]
    assert plan.figures.latency_excess_ms == 0


def test_the_first_plan_knows_the_rule(dispatch):
    """With no time to search at all."""
    members = (a_node("far", cpu=64, memory=256), a_node("near", cpu=2))
    cluster = near_users(*members, near=5.0, far=50.0)
    run = a_run(*equal_steps(30), predicting())
    options = PlanOptions(budget_seconds=0, dispatch=dispatch)
    plan = plan_run(run, cluster, options)
    assert plan.search.generations == 0
    assert node_of(plan) == "near"


def test_a_latency_within_the_band_is_said_to_be(golden):
    """Not the lowest, but as good."""
    members = (a_node("n1"), a_node("n2", speed=4.0))
    cluster = near_users(*members, n1=10.0, n2=10.4)
    step = plan_run(a_run(predicting()), cluster).step("predict")
    assert step.node == "n2"
    golden(step.explanation.sentence)


@pytest.mark.parametrize(
    ("location", "node"),
    [
        ("HOME-EDGE", "home-edge-node"),
        ("NITLAB-EDGE", "nitlab-edge-node"),
        ("NITOS-CLOUD", "nitos-cloud-node"),
    ],
)
def test_the_taxi_pipeline_on_the_thesis_cluster(location, node, dispatch, golden):
    """Predict runs near its users, training in the cloud, as the thesis verified."""
    run = read_run_file(TAXI / "pipeline.yaml")
    steps = tuple(
        replace(step, location=location) if step.type.lower().startswith("predict") else step
        for step in run.steps
    )
    assert any(step.location == location for step in steps)
    cluster = read_cluster_file(TAXI / "cluster.yaml")
    plan = plan_of(replace(run, steps=steps), cluster, generations=14, dispatch=dispatch)
    assert node_of(plan) == node
    assert plan.step("train").node == "nitos-cloud-node"
    assert plan.step("predict").latency_ms == cluster.latencies[location][node]
    assert plan.figures.latency_excess_ms == 0
    golden(sentence_of(plan, "predict"))
