"""Large runs whose steps have no choice: one volume for all, one node that fits, none that does."""

import re

import pytest

from kfp_placement_engine import MaxRuntime, plan_run, solve
from kfp_placement_engine.model.run_graph import RunClaim
from tests.support.builders import (
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    nodes,
    plan_of,
    sentence_of,
)
from tests.support.effort import growth

MANY = 100


def sharing_run(count, **changes):
    """Independent steps that all mount one workspace; every third one a second volume as well."""
    claims = [
        RunClaim(name, ("ReadWriteOnce",), is_workspace=True) for name in ("workspace", "data")
    ]
    steps = [
        a_step(f"s{n}", seconds=1, claims=("workspace", "data") if n % 3 == 0 else ("workspace",))
        for n in range(count)
    ]
    return a_run(*steps, claims=tuple(claims), **changes)


def test_one_volume_for_more_steps_than_can_be_ordered(dispatch):
    problem = a_problem(sharing_run(MANY), cluster_of(3), dispatch=dispatch)
    assert problem.genes == 1
    result = solve(problem, MaxRuntime(0.05))
    assert result.schedule.makespan_seconds == pytest.approx(MANY / 4)
    assert len(set(result.schedule.node)) == 1


def test_few_plans_are_all_tried_where_nothing_is_ordered():
    """The best of the nodes is found although it is the last."""
    cluster = a_cluster(*nodes(5), a_node("fast", speed=2.0))
    result = solve(a_problem(sharing_run(MANY), cluster), MaxRuntime(0.0))
    assert result.exact
    assert set(result.schedule.node) == {5}


def test_few_plans_of_a_run_that_takes_long_to_simulate_are_searched_within_the_budget():
    problem = a_problem(sharing_run(20_000), cluster_of(3))
    assert not solve(problem, MaxRuntime(0.0)).exact


def test_every_sharer_is_told_with_whom_it_shares(golden):
    plan = plan_of(sharing_run(4), cluster_of(2), budget_seconds=0.01)
    golden(step.explanation.sentence for step in plan.steps)
    others = [re.findall(r"\bs\d and 2 more", step.explanation.sentence) for step in plan.steps]
    assert others == [["s1 and 2 more"], *[["s0 and 2 more"]] * 3]


def test_a_volume_of_some_is_named_where_nothing_is_shared_by_all(golden):
    """a and b share one volume, b and c another: all on one node."""
    steps = (a_step("a", claims=("x",)), a_step("b", claims=("x", "y")), a_step("c", claims=("y",)))
    plan = plan_run(a_run(*steps), cluster_of(2))
    golden(step.explanation.sentence for step in plan.steps)
    volumes = [re.findall(r"volume (\w)", step.explanation.sentence) for step in plan.steps]
    assert volumes == [["x"], ["x"], ["y"]]


def test_the_only_node_for_many_steps(golden):
    """One plan alone, more steps than brute force could order."""
    steps = equal_steps(MANY, node_selector={"pool": "gpu"})
    cluster = a_cluster(a_node("gpu", labels={"pool": "gpu"}), *nodes(3))
    plan = plan_of(a_kfp_run(*steps), cluster, budget_seconds=0.01)
    assert {step.node for step in plan.steps} == {"gpu"}
    (reason,) = {step.explanation.sentence for step in plan.steps}
    golden(reason)
    assert "only node" in reason


def test_many_steps_that_fit_nowhere_are_explained_soon(golden):
    """Each asks for another amount, so each has its own reason, and looks at every node for it."""

    def plan(size):
        steps = [a_step(f"s{n}", cpu=100 + n) for n in range(size)]
        plan = plan_of(a_run(*steps), cluster_of(size), budget_seconds=0.01)
        golden(sentence_of(plan, "s7"), f"of {size} nodes")
        assert f"{size} nodes: " in sentence_of(plan, "s7")
        assert " 107, " in sentence_of(plan, "s7")

    # The square of the size is 16 times as much, its cube 64 times.
    assert growth(plan, 100, 400) < 32
