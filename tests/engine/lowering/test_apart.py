"""Pods that may not share a node: required anti-affinity in plans, baselines and bounds."""

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from kfp_placement_engine import ActiveRun, RunGraph, Step, StepProgress, lower_bound, plan_runs
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.node_rules.constraints import holds
from kfp_placement_engine.model.pod_constraints import PodSelector, Requirement
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.search.baselines import schedules_of
from tests.support.builders import (
    a_cluster,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    codes_of_plan,
    equal_steps,
    nodes,
    notice_of,
    plan_of,
)

SELECTED = PodSelector((Requirement("app", "In", ("x",)),))
APART: dict[str, Any] = {"labels": {"app": "x"}, "apart_from": (SELECTED,), "cpu": 0.1}


def together(steps: Any) -> Iterator[tuple[Step, Step]]:
    """Pairs of planned steps that are on one node at the same time."""
    for one, other in combinations(steps, 2):
        start = max(one.start_seconds, other.start_seconds)
        end = min(one.finish_seconds, other.finish_seconds)
        if one.node == other.node is not None and start < end:
            yield one.spec, other.spec


def objects(one: Step, other: Step) -> bool:
    return any(
        all(holds(each, other.labels) for each in selector.requirements)
        for selector in one.apart_from
    )


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_each_pod_has_a_node_for_itself(dispatch: str):
    run = a_run(*equal_steps(6, **APART))
    plan = plan_of(run, cluster_of(3), dispatch=dispatch)
    assert not list(together(plan.steps))
    assert 20 <= plan.figures.makespan_seconds < 21
    assert {step.node for step in plan.steps} == {"n1", "n2", "n3"}


def test_the_default_scheduler_keeps_to_it_and_the_bound_knows_it():
    problem = a_problem(a_run(*equal_steps(6, **APART)), cluster_of(3))
    schedules = schedules_of("kube-default", problem, 0)
    assert {schedule.makespan_seconds for schedule in schedules} == {20}
    assert lower_bound(problem).seconds == pytest.approx(20)


def test_pods_that_only_match_may_share_a_node_with_each_other():
    matching = [a_step(f"m{number}", labels={"app": "x"}, cpu=0.1) for number in range(4)]
    run = a_run(a_step("alone", **APART), *matching, a_step("other", cpu=0.1))
    plan = plan_of(run, cluster_of(2))
    assert plan.figures.makespan_seconds < 11
    beside = [step.name for step in plan.steps if step.node == plan.step("alone").node]
    assert set(beside) <= {"alone", "other"}


def test_any_plan_keeps_to_the_rule_of_kubernetes():
    """Labels, selectors and times at random; every pod matches the selectors that it has."""
    draws = random.Random(7)
    for _ in range(30):
        selectors = [
            PodSelector((Requirement(key, "In", (value,)),)) for key in "ab" for value in "01"
        ]
        steps = []
        for number in range(9):
            labels = {key: draws.choice("01") for key in "ab" if draws.random() < 0.7}
            own = [each for each in selectors if holds(each.requirements[0], labels)]
            apart = tuple(each for each in own if draws.random() < 0.4)
            seconds = draws.randint(1, 5)
            steps.append(a_step(f"s{number}", labels=labels, apart_from=apart, seconds=seconds))
        plan = plan_of(a_run(*steps), cluster_of(3, cpu=3))
        pairs = list(together(plan.steps))
        assert not [pair for pair in pairs if objects(*pair) or objects(*reversed(pair))]
        assert codes_of_plan(plan) == []


def test_a_pod_that_runs_keeps_others_away():
    run = a_run(*equal_steps(2, **APART))
    running = {"s0": StepProgress(ProgressState.RUNNING, "n1", 1.0)}
    active = ActiveRun("", run, progress=running)
    plan = plan_runs([active], cluster_of(2), PlanOptions()).plans[""]
    assert plan.step("s1").node == "n2"


def planned_together(*runs: RunGraph) -> float:
    """The end of runs that are planned together on two nodes."""
    active = [ActiveRun(str(number), run) for number, run in enumerate(runs)]
    return plan_runs(active, a_cluster(*nodes(2)), PlanOptions()).makespan_seconds


def test_runs_of_a_namespace_keep_apart_unless_only_the_own_run_is_meant():
    shared = a_run(*equal_steps(2, **APART), namespace="team")
    assert planned_together(shared, shared) > 19
    assert planned_together(shared, a_run(*shared.steps, namespace="other")) < 11
    of_run = {**APART, "apart_from": (PodSelector(SELECTED.requirements, is_own_run=True),)}
    own = a_run(*equal_steps(2, **of_run), namespace="team")
    assert planned_together(own, own) < 11
    assert planned_together(own) < 11


def test_a_pod_that_does_not_match_its_own_selector_is_named():
    run = a_run(a_step("a", apart_from=(SELECTED,)), a_step("b", labels={"app": "x"}))
    plan = plan_of(run)
    assert notice_of(plan, "pod-affinity").step == "a"
    assert notice_of(plan, "pod-affinity").message.startswith(
        "its anti-affinity to pods with app=x is not in the plan"
    )
    assert plan.figures.makespan_seconds < 11


def test_no_figure_of_a_plan_counts_what_is_made_up():
    run = a_run(*equal_steps(6, **APART))
    plan = plan_of(run, cluster_of(3))
    assert all(step.requests == {"cpu": 100} for step in plan.steps)
    assert "anti-affinity" not in f"{plan.comparison}"
