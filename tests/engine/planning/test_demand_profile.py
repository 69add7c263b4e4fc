"""What a run needs at once: equal to a reference that looks at every moment of its plan."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import Plan, PlannedStep, PlanOptions, ProgressState, RunGraph, plan_runs
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.concurrency import Branch, ConcurrencyLimit
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.run_graph import Group, GroupKind
from kfp_placement_engine.planning.demand_profile import DemandProfile, _Table
from kfp_placement_engine.plans.planned_step import PlannedDriver
from tests.engine.planning.begun_runs import OVERRUN, begun_cases
from tests.engine.planning.random_runs import cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_node,
    a_run,
    a_step,
    plan_of,
)
from tests.support.plans import a_plan, unplaced_step
from tests.support.plans import a_step as a_row
from tests.support.reference_demand import comparable, reference_demand

GPU = "nvidia.com/gpu"
STATES = ("ended", "ended", "running", "waiting")
"""States that a step may be in; the first is twice as likely."""

WORKERS = st.lists(
    st.builds(
        PodGroup,
        count=st.integers(1, 4),
        requests=st.sampled_from(
            [{}, {"cpu": 500}, {"cpu": 500, GPU: 1}, {GPU: 1, "cpu": 500, "memory": 0}]
        ),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


def quick(run: RunGraph, cluster: Any, **options: Any) -> Plan:
    """A plan without a search."""
    return plan_of(run, cluster, quick=True, compare=(), **options)


def moments(plan: Plan) -> list[float]:
    """Now, and all times of a plan at which something happens."""
    ends = (step.finish_seconds for step in plan.steps)
    return [0.0, *sorted({end for end in ends if end is not None and 0 <= end < 1e9})]


Names = tuple[list[str], list[str]]
"""Steps that have ended, and those that run now."""


def names_at(plan: Plan, moment: float) -> Names:
    """What has ended and what runs at a moment, where all goes as planned."""
    times = [
        (step.name, step.start_seconds, step.finish_seconds)
        for step in plan.steps
        if step.start_seconds is not None and step.finish_seconds is not None
    ]
    ended = [name for name, _, end in times if end <= moment]
    running = [name for name, start, end in times if start <= moment < end]
    return ended, running


def any_names(run: RunGraph, choose: Callable[[], str]) -> Names:
    """What may have ended and may run while a run goes on, whatever was planned.

    Args:
        run: whose steps these are.
        choose: says what has become of a step that may have begun: one of `STATES`.
    """
    by_state: dict[str, list[str]] = {state: [] for state in STATES}
    groups = {group.name: group for group in run.groups}
    for step in run.steps:
        before, name = {*step.depends_on}, step.group
        while name:
            before |= {*groups[name].depends_on}
            name = groups[name].parent
        if before <= {*by_state["ended"]}:
            by_state[choose()].append(step.name)
    return by_state["ended"], by_state["running"]


def assert_as_reference(plan: Plan, run: RunGraph, *names: Names) -> None:
    """The demand of the whole run, and of what is left of it after each of these."""
    profile = DemandProfile(plan, run)
    assert comparable(profile.left()) == comparable(reference_demand(plan, run))
    for ended, running in names:
        left = profile.left(ended, running)
        assert comparable(left) == comparable(reference_demand(plan, run, ended, running))


def with_workers(run: RunGraph, made: Mapping[int, tuple[PodGroup, ...]]) -> RunGraph:
    """The run with workers of some of its steps."""
    steps = (replace(step, workers=made.get(at, ())) for at, step in enumerate(run.steps))
    return replace(run, steps=tuple(steps))


@settings(max_examples=150)
@given(case=cases(), data=st.data())
def test_the_demand_of_any_run_is_that_of_the_reference(case, data):
    """Whole and later; with loops, cached steps, workers, devices, and steps that fit no node."""
    made = data.draw(st.dictionaries(st.integers(0, 5), WORKERS))
    run = with_workers(case.run, made)
    plan = quick(run, case.cluster, assumptions=ROUND_NUMBERS)
    planned = names_at(plan, data.draw(st.sampled_from(moments(plan))))
    drawn = any_names(run, lambda: data.draw(st.sampled_from(STATES)))
    assert_as_reference(plan, run, planned, drawn)


@settings(max_examples=150)
@given(case=begun_cases(), made=st.dictionaries(st.integers(0, 5), WORKERS), data=st.data())
def test_the_demand_of_a_run_that_has_begun_is_that_of_the_reference(case, made, data):
    (case, begun), options = case, PlanOptions(quick=True, compare=(), assumptions=OVERRUN)
    run = with_workers(case.run, made)
    plan = plan_runs([replace(begun, graph=run)], case.cluster, options).plans["run"]
    progress = {step.name: step.progress for step in plan.steps}
    ended, running = (
        [name for name, each in progress.items() if each is state]
        for state in (ProgressState.DONE, ProgressState.RUNNING)
    )
    drawn = any_names(run, lambda: data.draw(st.sampled_from(STATES)))
    assert_as_reference(plan, run, (ended, running), drawn)


@pytest.mark.parametrize(("steps", "count"), [(20, 5), (100, 20), (300, 50)])
@pytest.mark.parametrize("kind", ["kfp", "workflow"])
def test_the_demand_of_larger_runs_is_that_of_the_reference(kind, steps, count):
    """Whole, when a half of the steps have ended, and at random; every seventh makes workers."""
    shape = Shape(kind, steps, count)
    workers = PodGroup(3, {"cpu": 2000, GPU: 1})
    run = with_workers(made_up_run(shape), dict.fromkeys(range(0, steps, 7), (workers,)))
    plan = quick(run, made_up_cluster(shape))
    rng = random.Random(steps)
    drawn = (any_names(run, lambda: rng.choice(STATES)) for _ in range(3))
    assert_as_reference(plan, run, names_at(plan, moments(plan)[steps // 2]), *drawn)


def planned(*steps: PlannedStep, **changes: Any) -> tuple[Plan, RunGraph]:
    """A plan of these rows, and its run."""
    run = a_run(*(a_step(step.name, *step.spec.depends_on) for step in steps))
    return a_plan(*steps, **changes), run


def test_drivers_count_beside_steps():
    driver = PlannedDriver("train", "node-0", 10.0, 20.0)
    plan, _ = planned(a_row(requests={"cpu": 1000}), drivers=(driver,))
    run = a_kfp_run(a_step("train"))
    assert DemandProfile(plan, run).left().peak == {"cpu": 1100, "memory": 64 * 2**20, "pods": 2}


def test_a_running_step_counts_from_now_and_an_ended_one_no_more():
    ended = {"node": "node-0", "start_seconds": None, "finish_seconds": None}
    plan, run = planned(
        a_row("ended", progress=ProgressState.DONE, **ended),
        a_row("running", progress=ProgressState.RUNNING, start_seconds=-5.0),
        a_row("cached", node=None, cached=True),
        a_row("later", start_seconds=60.0, finish_seconds=70.0, requests={"cpu": 400}),
    )
    profile = DemandProfile(plan, run)
    assert profile.left().peak == {"cpu": 500, "memory": 2**30, "pods": 1}
    assert profile.left(["ended"], ["running"]) == profile.left()
    over = ["ended", "running", "cached"]
    assert profile.left(over).peak == {"cpu": 400, "pods": 1}
    assert profile.left([*over, "later"]) == Demand()


def test_a_step_without_a_node_counts_when_it_could_run_with_a_node():
    """And those that wait for it, after it: here two at once, beside a step of the same time."""
    plan, run = planned(
        a_row("first", finish_seconds=30.0, requests={"cpu": 9000}),
        unplaced_step("stuck", depends_on=("first",), requests={"cpu": 100}),
        unplaced_step("left", depends_on=("stuck",), requests={"cpu": 20}),
        unplaced_step("right", depends_on=("stuck",), requests={"cpu": 3}),
    )
    profile = DemandProfile(plan, run)
    assert profile.left(["first"]).peak == {"cpu": 100, "pods": 2}
    assert profile.left(["first"], ["stuck"]).peak == {"cpu": 100, "pods": 2}
    assert profile.left(["first", "stuck"]).peak == {"cpu": 23, "pods": 2}
    assert profile.left().peak == {"cpu": 9000, "pods": 2}


def test_steps_that_run_now_do_so_together_whatever_was_planned():
    """One after another by the plan, one of them in no time; then the last, as planned."""
    first = {"start_seconds": 0.0, "finish_seconds": 5.0}
    second = {"start_seconds": 5.0, "finish_seconds": 5.0}
    third = {"start_seconds": 5.0, "finish_seconds": 9.0}
    plan, run = planned(
        a_row("first", requests={"cpu": 1}, **first),
        a_row("second", requests={"cpu": 20}, **second),
        a_row("third", requests={"cpu": 300}, **third),
    )
    profile = DemandProfile(plan, run)
    assert profile.left().peak == {"cpu": 300, "pods": 1}
    assert profile.left([], ["first", "second"]).peak == {"cpu": 300, "pods": 2}
    assert profile.left(["first"], ["second", "third"]).peak == {"cpu": 320, "pods": 2}
    assert profile.left([], ["first", "second", "third"]).peak == {"cpu": 321, "pods": 3}


def test_a_driver_counts_until_its_step_or_a_step_of_its_group_begins():
    """Those of the root, a loop, an iteration and the step, all at once; then another's."""
    names = ("root", "loop", "loop[0]", "loop[0].train", "loop[1]")
    drivers = tuple(PlannedDriver(name, "node-0", 0.0, 60.0) for name in names)
    plan, _ = planned(
        a_row("loop[0].train", requests={"cpu": 7}),
        a_row("loop[1].train", requests={"cpu": 7}),
        drivers=drivers,
    )
    iterations = [Group(f"loop[{n}]", GroupKind.ITERATION, "loop") for n in range(2)]
    run = a_kfp_run(
        *(a_step(f"{each.name}.train", group=each.name) for each in iterations),
        groups=[Group("loop", GroupKind.LOOP, ""), *iterations],
    )
    profile = DemandProfile(plan, run)
    assert profile.left().peak["cpu"] == 514
    assert profile.left([], ["loop[0].train"]).peak["cpu"] == 114
    assert profile.left(["loop[0].train"]).peak["cpu"] == 107
    assert profile.left(["loop[0].train"], ["loop[1].train"]).peak["cpu"] == 7


def test_workers_are_held_from_the_start_to_the_end_of_their_step():
    run = a_run(
        a_step("launch", cpu=1, workers=(PodGroup(3, {"cpu": 4000, GPU: 1}),)),
        a_step("evaluate", "launch", cpu=2),
    )
    plan = quick(run, a_cluster(a_node(cpu=8)), assumptions=ROUND_NUMBERS)
    workers = {"cpu": 12000, GPU: 3, "pods": 3}
    assert DemandProfile(plan, run).left() == Demand(
        peak={"cpu": 13000, GPU: 3, "pods": 4},
        accelerator_shares={GPU: workers},
        gangs=(PodGroup(1, {"cpu": 1000}), PodGroup(3, {"cpu": 4000, GPU: 1})),
    )
    assert DemandProfile(plan, run).left(["launch"]) == Demand(peak={"cpu": 2000, "pods": 1})


def test_what_runs_only_after_a_failure_counts_as_if_it_ran():
    """Whoever writes a run decides whether it fails."""
    run = a_run(
        a_step("train", cpu=1),
        a_step("again", "train", cpu=3, after_failure=True),
        a_step("report", "train", cpu=2),
    )
    plan = quick(run, a_cluster(a_node(cpu=8)), assumptions=ROUND_NUMBERS)
    profile = DemandProfile(plan, run)
    assert profile.left().peak == {"cpu": 5000, "pods": 2}
    assert profile.left(["train", "again"]).peak == {"cpu": 2000, "pods": 1}


def test_the_most_at_once_counts_no_times():
    """Four steps after steps that their author says take longer and longer."""
    firsts = [a_step(f"first-{n}", seconds=100.0 * n or 1, cpu=0.1) for n in range(4)]
    run = a_run(*firsts, *(a_step(f"then-{n}", f"first-{n}", cpu=1) for n in range(4)))
    plan = quick(run, a_cluster(a_node(cpu=64)), assumptions=ROUND_NUMBERS)
    demand = DemandProfile(plan, run).left()
    assert demand.peak["cpu"] < 4000
    assert demand.of_quota == {**demand.peak, "cpu": 4000}
    ended = ["first-0", "then-0", "first-1"]
    assert DemandProfile(plan, run).left(ended).of_quota["cpu"] == 3000


@pytest.mark.parametrize("by_kfp", [True, False])
def test_conditions_exclude_steps_from_the_most_at_once_only_where_kfp_decides_them(by_kfp):
    """A tenant supplies values for which several conditions of Argo are true."""
    branches = [(Branch("coin", name),) for name in "ab"]
    steps = [a_step(each.name, branches=(each,), cpu=2) for (each,) in branches]
    run = a_kfp_run(*steps) if by_kfp else a_run(*steps)
    plan = quick(run, a_cluster(a_node(cpu=64)), assumptions=ROUND_NUMBERS)
    demand = DemandProfile(plan, run).left()
    assert (demand.peak["cpu"], demand.of_quota["cpu"]) == (2000, 2000 if by_kfp else 4000)


def test_a_limit_of_the_run_limits_the_most_at_once():
    names = [f"s{n}" for n in range(6)]
    limit = ConcurrencyLimit("parallelism", 2, tuple((name,) for name in names))
    run = a_run(*(a_step(name, cpu=1) for name in names), limits=(limit,))
    plan = quick(run, a_cluster(a_node(cpu=64)), assumptions=ROUND_NUMBERS)
    assert DemandProfile(plan, run).left().of_quota["cpu"] == 2000


def test_an_empty_plan_needs_nothing():
    plan = replace(a_plan(), steps=())
    assert DemandProfile(plan, a_run()).left() == Demand()


def test_amounts_beyond_all_clusters_do_no_harm():
    """An annotation may say anything that Kubernetes can hold."""
    huge = {"memory": 2**63 - 1, "cpu": 2**63 - 1}
    plan = a_plan(*(a_row(name, requests=huge) for name in "ab"))
    run = a_run(*(a_step(name, workers=(PodGroup(1000, huge),)) for name in "ab"))
    peak = DemandProfile(plan, run).left().peak
    assert 2**60 < peak["memory"] < 2**63
    assert peak["pods"] == 2002


def test_more_resources_than_a_run_request_holds_are_refused_before_any_peak(monkeypatch):
    """The peaks of R resources over P pods take P x R x R: a file of 70 kB kept planners busy."""
    many = {f"example.com/r{number}": 1 for number in range(33)}
    run = a_run(a_step("a", extended=many))
    profile = DemandProfile(quick(run, a_cluster(a_node(extended=many))), run)
    monkeypatch.setattr(_Table, "_peaks", Mock(side_effect=AssertionError))
    with pytest.raises(LimitError, match="more than 32 resources"):
        profile.left()
