"""Runs that have begun, and runs planned together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import (
    ActiveRun,
    LoweringOptions,
    Placement,
    PlanOptions,
    ProgressState,
    ReservedRoom,
    ReservedRun,
    StepProgress,
    plan_run,
    plan_runs,
    reserved_run,
    simulate,
)
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering import lower_runs, with_reservations
from kfp_placement_engine.model.reasons import reason
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.search.simulation import simulate_policy
from tests.engine.planning.begun_runs import DONE, OVERRUN, RUNNING, begun_cases
from tests.engine.planning.random_runs import DISPATCHES
from tests.engine.search.test_reference import allowed_nodes, by_step, differences
from tests.support.builders import (
    ONE_NODE,
    ROUND_NUMBERS,
    a_chain,
    a_cluster,
    a_kfp_run,
    a_node,
    a_run,
    a_step,
    cluster_of,
    nodes,
    sentence_of,
)
from tests.support.reference_simulation import Reference

OPTIONS = PlanOptions(generations=30, threads=1, assumptions=ROUND_NUMBERS, compare=())
QUICK = replace(OPTIONS, quick=True)
WITH_ALTERNATIVES = replace(OPTIONS, alternatives=True)


def running(node, seconds=0.0):
    return StepProgress(RUNNING, node, seconds)


def done(node="n1"):
    return StepProgress(DONE, node)


def planned(run, cluster=ONE_NODE, options=OPTIONS, **fields):
    """The plan of one run that has begun."""
    return plan_runs([ActiveRun("run", run, **fields)], cluster, options).plans["run"]


# Against the reference simulation ----------------------------------------------------------------


def lowered_begun(drawn, dispatch="ready", version=(1, 36)):
    case, begun = drawn
    options = LoweringOptions(
        assumptions=OVERRUN,
        latency_ruled_types=LATENCY_RULED_TYPES,
        dispatch=dispatch,
        kube_version=version,
    )
    reference = Reference(
        case.run, case.cluster, OVERRUN, LATENCY_RULED_TYPES, version, begun=begun
    )
    return lower_runs([begun], case.cluster, options), reference


@settings(max_examples=150)
@given(case=begun_cases(), version=st.sampled_from([(1, 35), (1, 36)]), fifo=st.booleans())
def test_the_default_scheduler_goes_on_as_in_the_reference(case, version, fifo):
    low, reference = lowered_begun(case, version=version)
    schedule = simulate_policy(low.problem, Policy.STRICT_FIFO if fifo else Policy.KUBE_DEFAULT)
    expected = reference.simulate("fifo" if fifo else "kube-default")
    assert differences(low, schedule, expected) == []


@settings(max_examples=150)
@given(data=st.data(), dispatch=DISPATCHES)
def test_a_plan_goes_on_as_in_the_reference(data, dispatch):
    """Running pods hold their room for the rest of their time, what has ended is gone."""
    low, reference = lowered_begun(data.draw(begun_cases()), dispatch=dispatch)
    problem = low.problem
    assert allowed_nodes(low) == reference.allowed()
    chosen = [
        data.draw(st.sampled_from(np.flatnonzero(row).tolist())) for row in problem.arrays.allowed
    ]
    order = np.empty(problem.activities)
    order[problem.topological] = np.arange(problem.activities)
    placement = Placement(np.array(chosen, np.int64), order, np.empty(0))
    schedule = simulate(problem, placement)
    expected = reference.simulate(dispatch, *by_step(low, placement))
    assert differences(low, schedule, expected) == []
    ends = [pod.end for pod in expected.values() if not pod.over]
    if all(map(math.isfinite, ends)):
        assert schedule.terms[2] == pytest.approx(max(ends, default=0.0), abs=1e-9)


@settings(max_examples=60)
@given(case=begun_cases(), dispatch=DISPATCHES, quick=st.booleans())
def test_every_plan_of_a_run_that_has_begun_adds_up(case, dispatch, quick):
    """What runs stays, what has ended has no times, nothing ends before the bound."""
    (case, begun), options = case, replace(OPTIONS, dispatch=dispatch, quick=quick)
    options = replace(options, assumptions=OVERRUN, generations=14, alternatives=not quick)
    plan = plan_runs([begun], case.cluster, options).plans["run"]
    assert [step.name for step in plan.steps] == [step.name for step in case.run.steps]
    for step in plan.steps:
        progress = begun.progress[step.name]
        assert step.progress is progress.state
        if step.progress is not ProgressState.WAITING:
            assert step.node == progress.node
            assert step.explanation.alternatives == ()
        if step.progress is DONE:
            assert step.start_seconds is step.finish_seconds is None
        elif step.progress is RUNNING:
            assert step.start_seconds == -progress.seconds_since_start
            assert step.finish_seconds is not None
            assert step.finish_seconds >= 0
        for other in step.explanation.alternatives:
            assert plan.cluster.nodes[other.node] != step.node
            assert other.loss_seconds >= 0
    if not plan.unschedulable and plan.figures.unplaced == 0:
        assert plan.comparison.lower_bound.seconds <= plan.figures.makespan_seconds + 1e-9


# What has happened -------------------------------------------------------------------------------


def test_a_running_step_keeps_its_node_and_its_time_so_far_counts():
    run = a_run(a_step("a", cpu=4, seconds=10), a_step("b", "a", cpu=4, seconds=5))
    cluster = a_cluster(*nodes(2), a_node("fast", speed=2))
    plan = planned(run, cluster, progress={"a": running("n2", 4)})
    first, second = plan.step("a"), plan.step("b")
    assert (first.node, first.start_seconds, first.finish_seconds) == ("n2", -4, 6)
    assert (first.progress, first.explanation.sentence) == (RUNNING, "runs there already")
    assert (second.node, second.start_seconds, second.finish_seconds) == ("fast", 6, 8.5)
    assert plan.figures.makespan_seconds == 8.5


@pytest.mark.parametrize(("since", "end"), [(9.5, 0.5), (3600, 1800.0)])
def test_a_step_needs_what_is_left_or_if_it_overran_a_share_of_its_time(since, end):
    run = a_run(a_step("a", seconds=10))
    plan = planned(run, progress={"a": running("n1", since)})
    assert plan.step("a").finish_seconds == pytest.approx(end)


def test_running_steps_hold_room_even_where_none_is_thought_to_be_left():
    run = a_run(a_step("a", cpu=3, seconds=10), a_step("b", cpu=3, seconds=1))
    full = a_node("n1", used={"cpu": 2000})
    plan = planned(run, a_cluster(full), progress={"a": running("n1")})
    assert plan.step("a").finish_seconds == 10
    assert plan.unschedulable[0][0] == "b"
    there = a_node("n1", used={"cpu": 1000})
    assert (
        planned(run, a_cluster(there), progress={"a": running("n1")}).step("b").start_seconds == 10
    )


def test_what_has_ended_costs_nothing():
    run = a_run(a_step("a", seconds=100), a_step("b", "a", seconds=5))
    plan = planned(run, progress={"a": done("gone-since")})
    assert plan.figures.makespan_seconds == plan.step("b").finish_seconds == 5
    ended = plan.step("a")
    assert (ended.node, ended.start_seconds, ended.explanation.sentence) == (
        "gone-since",
        None,
        "has ended",
    )
    assert plan.unschedulable == ()


def test_a_run_that_has_ended_is_an_empty_plan():
    run = a_kfp_run(a_step("a"), a_step("b", "a"))
    for options in (OPTIONS, QUICK, replace(OPTIONS, compare=("kube-default", "heft", "fifo"))):
        plan = planned(run, a_cluster(), options, progress={"a": done(), "b": done()})
        assert plan.figures.makespan_seconds == plan.comparison.lower_bound.seconds == 0
        assert plan.drivers == ()
    beside = ReservedRun("other", (ReservedRoom("n1", 0, 9, {"cpu": 1000}),))
    active = ActiveRun("run", run, progress={"a": done(), "b": done()})
    assert plan_runs([active], a_cluster(), OPTIONS, reserved=[beside]).completion_seconds == 9


def test_a_step_on_a_node_we_do_not_know_takes_time_but_no_room():
    run = a_run(a_step("a", cpu=4, seconds=10), a_step("b", "a", seconds=1))
    plan = planned(run, progress={"a": running("elsewhere", 4)})
    assert (plan.step("a").node, plan.step("a").finish_seconds) == ("elsewhere", 6)
    assert plan.step("b").start_seconds == 6


def test_drivers_have_ended_once_what_they_start_has_started():
    run = a_kfp_run(a_step("a"), a_step("b", "a"), a_step("c"))
    plan = planned(run, progress={"a": running("n1", 2)})
    assert {driver.name for driver in plan.drivers} == {"b", "c"}
    passed = StepProgress(driver=done())
    plan = planned(run, progress={"a": done(), "c": passed})
    assert [driver.name for driver in plan.drivers] == ["b"]


def test_a_volume_in_use_keeps_its_users_where_it_is(golden):
    run = a_run(a_step("a", claims=["disk"]), a_step("b", claims=["disk"]))
    plan = planned(
        run, a_cluster(*nodes(2), a_node("fast", speed=9)), progress={"a": running("n2")}
    )
    assert plan.step("b").node == "n2"
    golden(sentence_of(plan, "b"))


def test_a_held_step_keeps_its_node():
    run, cluster = a_run(a_step("a")), a_cluster(a_node("n1"), a_node("fast", speed=9))
    kept = planned(run, cluster, held={"a": "n1"}).step("a")
    assert (kept.node, kept.explanation.reason) == ("n1", reason("kept"))
    assert planned(run, cluster, held={"a": "lost"}).step("a").node == "fast"


# Several runs ------------------------------------------------------------------------------------


def chain(*seconds, **changes):
    return a_run(*a_chain(*seconds, **changes))


def test_runs_on_nodes_apart_are_planned_as_if_alone():
    cluster = a_cluster(
        *(a_node(f"{zone}{n}", speed=n, labels={"zone": zone}) for zone in "ab" for n in (1, 2))
    )
    runs = {zone: chain(10, 6, cpu=3, node_selector={"zone": zone}) for zone in ("a", "b")}
    joint = plan_runs([ActiveRun(key, run) for key, run in runs.items()], cluster, OPTIONS)
    for key, run in runs.items():
        alone = plan_run(run, cluster, OPTIONS)
        assert joint.plans[key].steps == alone.steps
        assert joint.plans[key].figures == alone.figures
    assert joint.completion_seconds == sum(
        plan.figures.makespan_seconds for plan in joint.plans.values()
    )


def test_the_heavier_run_goes_first():
    """One node, two equal runs: whoever weighs more has it first."""
    runs = [ActiveRun(key, chain(10, cpu=4), weight=weight) for key, weight in (("a", 1), ("b", 9))]
    joint = plan_runs(runs, a_cluster(), replace(OPTIONS, dispatch="ordered"))
    assert joint.plans["b"].step("s0").start_seconds == 0
    assert joint.plans["a"].step("s0").start_seconds == 10
    assert joint.completion_seconds == 1 * 20 + 9 * 10 == joint.terms[2]


def test_a_run_to_come_waits_for_its_release_and_one_that_began_tells_when():
    runs = [
        ActiveRun("later", chain(5), release_seconds=30),
        ActiveRun("begun", chain(5), release_seconds=-100),
    ]
    plans = plan_runs(runs, a_cluster(), OPTIONS).plans
    assert plans["later"].step("s0").start_seconds == 30
    assert plans["begun"].step("s0").start_seconds == 0
    assert plans["begun"].step("s0").finish_seconds == 5
    assert plans["begun"].run.release_seconds == -100


def test_claims_of_two_runs_are_one_only_if_they_are_the_same_object():
    cluster = cluster_of(2, cpu=2)

    def two_runs(**claims):
        run = a_run(a_step("a", cpu=2, claims=["work"]), namespace="team", **claims)
        return [ActiveRun(f"team/{number}", run) for number in range(2)]

    own = two_runs(claims=(RunClaim("work", ("ReadWriteOnce",), is_workspace=True),))
    apart = plan_runs(own, cluster, OPTIONS).plans.values()
    assert {plan.step("a").node for plan in apart} == {"n1", "n2"}
    shared = plan_runs(two_runs(), cluster, OPTIONS).plans.values()
    assert len({plan.step("a").node for plan in shared}) == 1
    assert {sentence_of(plan, "a") for plan in shared} == {"shares volume work with a"}


def test_reserved_room_is_left_alone_until_it_is_free():
    other = plan_run(chain(20, cpu=3), a_cluster(), OPTIONS)
    busy = reserved_run("other", other, elapsed_seconds=5)
    assert busy.rooms == (ReservedRoom("n1", -5, 15, other.steps[0].requests),)
    for options in (OPTIONS, QUICK):
        joint = plan_runs(
            [ActiveRun("new", chain(10, cpu=3))], a_cluster(), options, reserved=[busy]
        )
        assert joint.plans["new"].step("s0").start_seconds == 15
        assert joint.completion_seconds == 15 + 25


def test_room_reserved_for_later_is_planned_around():
    """A quick plan takes the slower node, since the faster one is promised to another run soon."""
    cluster = a_cluster(a_node("fast", speed=1.25), a_node("slow"))
    soon = ReservedRun("other", (ReservedRoom("fast", 4, 90, {"cpu": 3000}),))
    new = [ActiveRun("new", chain(10, cpu=3))]
    for options in (OPTIONS, QUICK):
        joint = plan_runs(new, cluster, options, reserved=[soon])
        assert joint.plans["new"].step("s0").node == "slow"
        assert joint.completion_seconds == 90 + 10
        alone = plan_runs(new, cluster, options)
        assert alone.plans["new"].step("s0").node == "fast"


@settings(max_examples=40)
@given(case=begun_cases(), other=begun_cases(), seed=st.integers(0, 3))
def test_plans_of_several_runs_are_reproducible_and_never_overfill(case, other, seed):
    (first, begun), (second, later) = case, other
    if first.run.direct_transfers != second.run.direct_transfers:
        return
    runs = [begun, replace(later, key="later", weight=2.0)]
    options = replace(OPTIONS, seed=seed, generations=16)
    plans = [
        plan_runs(runs, first.cluster, replace(options, threads=threads)) for threads in (1, 2)
    ]
    assert plans[0].terms == plans[1].terms
    for key in ("run", "later"):
        assert plans[0].plans[key].steps == plans[1].plans[key].steps
    ends = [plan.figures.makespan_seconds for plan in plans[0].plans.values()]
    assert plans[0].completion_seconds == pytest.approx(ends[0] + 2 * ends[1])
    for node in first.cluster.nodes:
        assert_room(node, [step for plan in plans[0].plans.values() for step in plan.steps])


def assert_room(node, steps):
    """Steps that start from now on find room beside all that are on the node."""
    here = [step for step in steps if step.node == node.name and step.start_seconds is not None]
    for started in here:
        if started.progress is RUNNING or started.finish_seconds == started.start_seconds:
            continue
        together = [
            step
            for step in here
            if step.start_seconds <= started.start_seconds < step.finish_seconds
        ]
        for name, amount in started.requests.items():
            taken = node.used.get(name, 0) + sum(step.requests.get(name, 0) for step in together)
            assert amount == 0 or taken <= node.allocatable.get(name, 0)


def test_the_search_starts_from_the_plan_it_is_given():
    """Without a search it keeps what no list schedule finds."""
    cluster = a_cluster(a_node("n1", cpu=2), a_node("n2", cpu=1, speed=1.5))
    run = a_run(a_step("short", seconds=3), a_step("long", seconds=9), a_step("wide", cpu=2))
    none = replace(OPTIONS, generations=0)
    best = plan_run(run, cluster, replace(OPTIONS, generations=400))
    warm = {("run", step.name): step.node for step in best.steps}
    active = [ActiveRun("run", run)]
    again = plan_runs(active, cluster, none, warm_start={**warm, ("run", "ghost"): "n1"})
    assert again.plans["run"].figures.makespan_seconds <= best.figures.makespan_seconds
    unknown = {("run", "short"): "lost", ("run", "long"): None}
    assert plan_runs(active, cluster, none, warm_start=unknown).plans["run"].unschedulable == ()


def test_heft_waits_for_running_pods_and_reserved_rooms():
    run = ActiveRun("run", a_run(a_step("a", cpu=3), a_step("b", cpu=3, seconds=2)))
    run = replace(run, progress={"a": running("n1", 6)})
    low = lower_runs([run], a_cluster(), LoweringOptions(assumptions=ROUND_NUMBERS))
    taken = ReservedRun("other", (ReservedRoom("n1", 5, 7, {"cpu": 2000}),))
    start, node = native.heft(with_reservations(low.problem, [taken]))
    assert (start.tolist(), node.tolist()) == ([0, 7, 5], [0, 0, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepProgress(seconds_since_start=-1), "a step started -1 s ago"),
        (lambda: ActiveRun("r", chain(1), weight=math.nan), "has weight nan"),
        (lambda: ActiveRun("r", chain(1), release_seconds=math.inf), "is released at inf s"),
        (lambda: plan_runs([], a_cluster()), "no run is given"),
        (lambda: plan_runs([ActiveRun("r", chain(1))] * 2, a_cluster()), "run 'r' appears 2 times"),
        (
            lambda: plan_runs(
                [
                    ActiveRun("r", chain(1)),
                    ActiveRun("s", replace(chain(1), direct_transfers=True)),
                ],
                a_cluster(),
            ),
            "plan them apart",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(make, message):
    with pytest.raises(PlanningError, match=message):
        make()


# Next best nodes ---------------------------------------------------------------------------------


def next_best(plan, name):
    """(node, how much later the run ends with the step there, round trip) of each alternative."""
    return [
        (plan.cluster.nodes[each.node], each.loss_seconds, each.latency_ms)
        for each in plan.step(name).explanation.alternatives
    ]


def test_next_best_nodes_come_with_what_they_cost():
    """The loss is how much later the run ends with that one step there."""
    cluster = a_cluster(a_node("slow", speed=0.5), a_node("best", speed=2), a_node("plain"))
    run = a_run(a_step("a", seconds=10), a_step("b", "a", seconds=4))
    plan = planned(run, cluster, WITH_ALTERNATIVES)
    assert next_best(plan, "a") == [("plain", 5, None), ("slow", 15, None)]
    assert next_best(plan, "b") == [("plain", 2, None), ("slow", 6, None)]
    assert next_best(planned(run, cluster), "a") == []


def test_next_best_nodes_of_ruled_steps_come_with_their_round_trip():
    trips = {"HOME": {"near": 10.0, "far": 42.5}}
    cluster = a_cluster(a_node("near"), a_node("far"), a_node("unknown"), latencies=trips)
    run = a_run(
        a_step("ruled", type="predict", location="HOME"),
        a_step("limited", type="train", location="HOME", max_latency_ms=50),
        a_step("free", type="train", location="HOME"),
    )
    plan = planned(run, cluster, WITH_ALTERNATIVES)
    assert plan.step("ruled").node == "near"
    ruled, limited, free = (
        {node: latency_ms for node, _, latency_ms in next_best(plan, name)}
        for name in ("ruled", "limited", "free")
    )
    assert ruled == {"far": 42.5, "unknown": None}
    assert set(limited.values()) <= {10.0, 42.5}
    assert set(free.values()) == {None}


def test_at_most_three_are_named_and_volume_sharers_have_none():
    sharers = (a_step("b", claims=["disk"]), a_step("c", claims=["disk"]))
    run = a_run(a_step("a"), *sharers)
    plan = planned(run, cluster_of(9), WITH_ALTERNATIVES)
    assert [len(next_best(plan, name)) for name in "abc"] == [3, 0, 0]


def test_where_trying_would_take_too_long_losses_are_estimated(monkeypatch):
    monkeypatch.setattr("kfp_placement_engine.planning.next_best.ALTERNATIVES_WORK", 0)
    cluster = a_cluster(a_node("best", speed=2), a_node("plain"))
    plan = planned(a_run(a_step("a")), cluster, WITH_ALTERNATIVES)
    assert next_best(plan, "a") == [("plain", 5, None)]
