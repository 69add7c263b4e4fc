"""The objective: its terms one after the other, and its kinds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import Placement, PlanOptions, simulate
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.planning.plan_parts import figures_of
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from kfp_placement_engine.search.fitness import OBJECTIVES, better
from tests.engine.planning.random_runs import DISPATCHES, cases
from tests.support.builders import (
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
    equal_steps,
    searched,
)

PLACE = "HOME-EDGE"


def terms(*values):
    return np.array(values, np.float64)


def nodes_of(problem, result):
    """Names of the nodes of all steps."""
    return [problem.node_names[node] for node in result.schedule.node]


def test_terms_are_compared_one_after_the_other():
    """Unplaced, latency, completion, balance."""
    assert better(terms(0, 9, 9, 9), terms(1, 0, 0, 0))
    assert better(terms(0, 1, 9, 9), terms(0, 2, 0, 0))
    assert better(terms(0, 1, 8, 9), terms(0, 1, 9, 0))
    assert better(terms(0, 1, 8, 0.1), terms(0, 1, 8, 0.2))
    assert not better(terms(0, 1, 8, 0.2), terms(0, 1, 8, 0.2))


def test_rounding_does_not_decide():
    """A difference of one in 10^9 is none; one of two in 10^9 is one."""
    assert not better(terms(0, 0, 1e6 - 1e-4, 1), terms(0, 0, 1e6, 1))
    assert better(terms(0, 0, 1e6 - 1e-4, 0), terms(0, 0, 1e6, 1))
    assert better(terms(0, 0, 1e6 - 3e-3, 1), terms(0, 0, 1e6, 0))


def test_a_shorter_round_trip_beats_a_shorter_run(dispatch):
    """The far node is four times as fast; the step goes near its users all the same."""
    run = a_run(
        a_step("train", seconds=100),
        a_step("predict", "train", seconds=100, type="Predict", location=PLACE),
    )
    cluster = a_cluster(
        a_node("far", speed=4.0),
        a_node("near", speed=1.0),
        latencies={PLACE: {"far": 80.0, "near": 2.0}},
    )
    problem = a_problem(run, cluster, dispatch=dispatch)
    result = searched(problem, 15)
    assert nodes_of(problem, result) == ["far", "near"]
    assert result.schedule.makespan_seconds == 125
    kube = kube_default(problem, 0)
    assert better(result.schedule.terms, kube.terms) or kube.terms[1] == 0


@settings(max_examples=80)
@given(case=cases(), dispatch=DISPATCHES, objective=st.sampled_from(OBJECTIVES))
def test_a_plan_is_never_worse_than_comparable_baselines(case, dispatch, objective):
    """In the objective's own order, whichever way ties fall.

    Baselines may part the users of a volume, a plan may not. Under
    `ready` dispatch nothing waits, so a plan cannot do what strict FIFO does. Under `ordered` a pod
    is there only when its data is, so that it cannot pull its image meanwhile; workflow formats
    have no images.
    """
    if case.run.direct_transfers and any(step.image for step in case.run.steps):
        return
    problem = case.lowered(dispatch=dispatch, objective=objective).problem
    result = searched(problem, 25, threads=1)
    comparable = ["heft", "random", "kube-default"] + (["fifo"] if dispatch == "ordered" else [])
    for name in comparable:
        for schedule in schedules_of(name, problem):
            if not figures_of(problem, schedule).moves_volumes:
                assert not better(schedule.terms, result.schedule.terms), name


def test_packing_uses_as_few_nodes_as_there_is_room_for():
    """And among those the shortest run."""
    run = a_run(*equal_steps(4, cpu=1, seconds=10))
    cluster = cluster_of(4, cpu=2)
    quick = searched(a_problem(run, cluster), 15)
    assert len(set(quick.schedule.node)) >= 2
    assert quick.schedule.makespan_seconds == 10
    for dispatch, used, seconds in (("ready", 2, 10), ("ordered", 1, 20)):
        problem = a_problem(run, cluster, objective="packing", dispatch=dispatch)
        packed = searched(problem, 20)
        assert len(set(packed.schedule.node)) == used
        assert packed.schedule.makespan_seconds == seconds
        assert packed.schedule.terms[2] == used


def test_the_paper_s_objective_prefers_the_node_that_holds_the_image():
    """Though it is slower."""
    run = a_run(a_step("a", image="tool:1", seconds=100))
    cluster = a_cluster(a_node("quick", speed=5.0), a_node("held", images={"tool:1": 10}))
    for objective, node in (("paper", "held"), ("completion", "quick")):
        problem = a_problem(run, cluster, objective=objective)
        result = searched(problem, 15)
        assert nodes_of(problem, result)[0] == node


def test_balance_decides_among_plans_that_end_at_once(dispatch):
    """Two equal steps on two equal nodes: one each, since the run ends at 10 either way."""
    run = a_run(a_step("a"), a_step("b"))
    problem = a_problem(run, cluster_of(2), dispatch=dispatch)
    result = searched(problem, 15)
    assert sorted(result.schedule.node.tolist()) == [0, 1]
    assert result.schedule.terms[3:].tolist() == pytest.approx([20, 0])
    together = simulate(problem, replace(result.placement, gene_nodes=np.zeros(2, np.int64)))
    assert together.makespan_seconds == result.schedule.makespan_seconds
    assert together.terms[4] > 0.01


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_slow_node_is_not_taken_where_the_end_is_the_same(dispatch, objective):
    """`side` ends long before `long` on either of two equal nodes but for their speed."""
    run = a_run(a_step("long", seconds=100), a_step("side", seconds=10))
    cluster = a_cluster(a_node("slow", speed=0.5), a_node("quick"))
    problem = a_problem(run, cluster, dispatch=dispatch, objective=objective)
    result = searched(problem, 15)
    assert set(nodes_of(problem, result)) == {"quick"}
    assert 110 in result.schedule.terms.tolist()


def test_pulls_decide_among_plans_that_end_at_once():
    """The small step need not pull its image: the node beside has it, and the long step decides."""
    run = a_run(a_step("long", seconds=500, cpu=4), a_step("small", seconds=5, image="tool:1"))
    cluster = a_cluster(
        a_node("n1", cpu=4), a_node("n2", cpu=4), a_node("n3", images={"tool:1": 100})
    )
    problem = a_problem(run, cluster)
    result = searched(problem, 15)
    assert nodes_of(problem, result)[1] == "n3"
    assert result.schedule.pull_seconds.tolist() == [0, 0]


def test_waiting_on_a_node_is_no_use_of_it():
    """The same steps on the same nodes are as balanced, whether or not a slot is held early."""
    reads = [("a", 1000)]
    run = a_workflow(a_step("a", seconds=10), a_step("b", "a", seconds=10, reads=reads))
    placement = Placement(np.array([0, 1]), np.array([0.0, 1.0]), np.empty(0))
    early = simulate(a_problem(run, cluster_of(2), dispatch="ready"), placement)
    late = simulate(a_problem(run, cluster_of(2), dispatch="ordered"), placement)
    assert early.start.tolist() == [0, 10]
    assert late.start.tolist() == [0, 20]
    assert early.end.tolist() == late.end.tolist() == [10, 30]
    assert early.terms.tolist() == late.terms.tolist()


def test_unknown_names_are_refused():
    """The message names the choices."""
    with pytest.raises(PlanningError, match="completion, makespan, packing, paper"):
        PlanOptions(objective="speed")
    with pytest.raises(PlanningError, match="auto, ready, ordered"):
        PlanOptions(dispatch="now")
    with pytest.raises(PlanningError, match="kube-default, heft, fifo, random, brute-force"):
        PlanOptions(compare=("kube",))
