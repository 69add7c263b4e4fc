"""What a run needs at once: equal to a replay of its plan that looks at every moment."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.plan import Plan, PlannedDriver, PlannedStep
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.demand import DemandProfile, demand_of
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run, plan_runs
from kfp_placement_engine.readers import read_run_file
from tests.engine.planner.begun_runs import OVERRUN, begun_cases
from tests.engine.planner.random_runs import cases
from tests.support import plans
from tests.support.builders import GIBIBYTE, ROUND_NUMBERS, a_cluster, a_node, a_run, a_step, nodes
from tests.support.run_data import data_files

DRIVER = {"cpu": 100, "memory": 64 * 2**20}
"""What KFP's driver pods request."""

GPU = "nvidia.com/gpu"
RUNS = [
    *data_files("kfp-2.17.0/pipelines", "*.yaml"),
    *data_files("kfp-2.17.0/workflows", "*.yaml"),
    *data_files("labelled/pipelines", "*.yaml"),
    *data_files("labelled/workflows", "*.yaml"),
    *data_files("wfinstances", "*.json"),
]
WORKERS = st.builds(
    PodGroup,
    count=st.integers(1, 4),
    requests=st.sampled_from([{}, {"cpu": 500}, {"cpu": 500, GPU: 1}, {GPU: 1, "cpu": 500}]),
)


@dataclass(frozen=True)
class Held:
    """Pods, and from when to when they take their room."""

    start: float
    end: float
    count: int
    requests: Mapping[str, int]
    in_gang: bool

    def at(self, moment: float, since: float) -> int:
        """How many of them there are."""
        return self.count if max(self.start, since) <= moment < self.end else 0

    @property
    def taken(self) -> dict[str, int]:
        """What each takes."""
        return {name: amount for name, amount in self.requests.items() if amount} | {"pods": 1}


def held(plan: Plan, graph: RunGraph, since: float) -> Iterator[Held]:
    """All pods of a plan that are not over."""
    ends: dict[str, float] = {}
    found = [
        Held(each.start_seconds, each.finish_seconds, 1, DRIVER, False) for each in plan.drivers
    ]
    for step, planned in zip(graph.steps, plan.steps, strict=True):
        if planned.progress is ProgressState.DONE:
            continue
        start, end = planned.start_seconds, planned.finish_seconds
        if planned.progress is ProgressState.WAITING and planned.node is None:
            start = max([since, plan.release_seconds, *(ends.get(n, 0.0) for n in step.depends_on)])
            end = start + (0.0 if planned.cached else planned.duration_seconds)
        assert start is not None
        assert end is not None
        ends[step.name] = end
        if not planned.cached:
            found.append(Held(start, end, 1, planned.requests, step.workers is not None))
            if step.workers:
                found.append(Held(start, end, step.workers.count, step.workers.requests, True))
    return (each for each in found if each.end > since or each.start >= since)


def most(pods: list[Held], since: float) -> dict[str, int]:
    """The peak of each resource: at each moment the sum, at least what each group takes alone."""
    peak: Counter[str] = Counter()
    for each in pods:
        peak |= Counter({name: each.count * amount for name, amount in each.taken.items()})
    for moment in {max(each.start, since) for each in pods}:
        used: Counter[str] = Counter()
        for each in pods:
            if count := each.at(moment, since):
                used.update({name: count * amount for name, amount in each.taken.items()})
        peak |= used
    return dict(peak)


def replayed(plan: Plan, graph: RunGraph, since: float = 0.0) -> Demand:
    """The demand, by looking at every moment at which something starts."""
    pods = list(held(plan, graph, since))
    devices = {name for each in pods for name in each.taken if "/" in name}
    shapes = {tuple(sorted(each.taken.items())) for each in pods if each.in_gang}
    gangs = []
    for shape in shapes:
        same = [
            each for each in pods if each.in_gang and tuple(sorted(each.taken.items())) == shape
        ]
        requests = {name: amount for name, amount in shape if name != "pods"}
        gangs.append(PodGroup(most(same, since)["pods"], requests))
    return Demand(
        peak=most(pods, since),
        accelerator_shares={
            name: most([each for each in pods if name in each.taken], since) for name in devices
        },
        gangs=tuple(gangs),
    )


def comparable(demand: Demand) -> Any:
    """All of it, gangs in any order."""
    gangs = sorted((sorted(group.requests.items()), group.count) for group in demand.gangs)
    return dict(demand.peak), dict(demand.accelerator_shares), gangs


def quick(run: RunGraph, cluster: Any, **options: Any) -> Plan:
    """A plan without a search."""
    return plan_run(run, cluster, PlanOptions(quick=True, compare=(), **options))


def moments(plan: Plan) -> list[float]:
    """Now, and all times of a plan at which something happens."""
    ends = (step.finish_seconds for step in plan.steps)
    return [0.0, *sorted({end for end in ends if end is not None and 0 <= end < 1e9})]


def with_workers(run: RunGraph, made: Mapping[int, PodGroup | None]) -> RunGraph:
    """The run with workers of some of its steps."""
    steps = (replace(step, workers=made.get(at)) for at, step in enumerate(run.steps))
    return replace(run, steps=tuple(steps))


@settings(max_examples=150)
@given(case=cases(), data=st.data())
def test_the_demand_of_any_run_is_that_of_a_replay(case, data):
    """Now and later; with loops, cached steps, workers, devices, and steps that fit no node."""
    made = data.draw(st.dictionaries(st.integers(0, 5), WORKERS))
    run = with_workers(case.run, made)
    plan = quick(run, case.cluster, assumptions=ROUND_NUMBERS)
    since = data.draw(st.sampled_from(moments(plan)))
    assert comparable(demand_of(plan, run, since)) == comparable(replayed(plan, run, since))


@settings(max_examples=150)
@given(case=begun_cases(), made=st.dictionaries(st.integers(0, 5), WORKERS))
def test_the_demand_of_a_run_that_has_begun_is_that_of_a_replay(case, made):
    (case, begun), options = case, PlanOptions(quick=True, compare=(), assumptions=OVERRUN)
    run = with_workers(case.run, made)
    plan = plan_runs([replace(begun, graph=run)], case.cluster, options).plans["run"]
    assert comparable(demand_of(plan, run)) == comparable(replayed(plan, run))


@pytest.mark.parametrize(("steps", "count"), [(20, 5), (100, 20), (300, 50)])
@pytest.mark.parametrize("kind", ["kfp", "workflow"])
def test_the_demand_of_larger_runs_is_that_of_a_replay(kind, steps, count):
    """At the start, and when a half of the steps have ended; every seventh step makes workers."""
    shape = Shape(kind, steps, count)
    workers = PodGroup(3, {"cpu": 2000, GPU: 1})
    run = with_workers(made_up_run(shape), dict.fromkeys(range(0, steps, 7), workers))
    plan = quick(run, made_up_cluster(shape))
    for since in (0.0, moments(plan)[steps // 2]):
        assert comparable(demand_of(plan, run, since)) == comparable(replayed(plan, run, since))


@pytest.mark.parametrize("path", RUNS)
def test_the_demand_of_real_runs_is_that_of_a_replay(path: Path) -> None:
    run = read_run_file(path)
    plan = quick(run, a_cluster(*nodes(5, cpu=64, memory=512, extended={GPU: 8})))
    middle = moments(plan)[len(moments(plan)) // 2]
    for since in (0.0, middle):
        assert comparable(demand_of(plan, run, since)) == comparable(replayed(plan, run, since))


def test_steps_one_after_another_take_the_larger_not_the_sum():
    """What ends at a moment frees its room before what starts then."""
    run = a_run(a_step("small", cpu=1, memory=8), a_step("large", "small", cpu=3, memory=2))
    plan = quick(run, a_cluster(a_node(cpu=8)), assumptions=ROUND_NUMBERS)
    assert demand_of(plan, run).peak == {"cpu": 3000, "memory": 8 * GIBIBYTE, "pods": 1}


def planned(*steps: PlannedStep, **changes: Any) -> tuple[Plan, RunGraph]:
    """A plan of these rows, and its run."""
    run = a_run(*(a_step(step.name, *step.depends_on) for step in steps))
    return plans.a_plan(*steps, **changes), run


def test_drivers_count_beside_steps():
    driver = PlannedDriver("train", "node-0", 10.0, 20.0)
    plan, run = planned(plans.a_step(requests={"cpu": 1000}), drivers=(driver,))
    assert demand_of(plan, run).peak == {"cpu": 1100, "memory": 64 * 2**20, "pods": 2}


def test_a_running_step_counts_from_now_and_an_ended_one_no_more():
    ended = {"node": "node-0", "start_seconds": None, "finish_seconds": None}
    plan, run = planned(
        plans.a_step("ended", progress=ProgressState.DONE, **ended),
        plans.a_step("running", progress=ProgressState.RUNNING, start_seconds=-5.0),
        plans.a_step("cached", node=None, cached=True),
        plans.a_step("later", start_seconds=60.0, finish_seconds=70.0, requests={"cpu": 400}),
    )
    assert demand_of(plan, run).peak == {"cpu": 500, "memory": 2**30, "pods": 1}
    assert demand_of(plan, run, 60.0).peak == {"cpu": 400, "pods": 1}
    assert demand_of(plan, run, 70.0) == Demand()


def test_a_step_without_a_node_counts_when_it_could_run_with_a_node():
    """And those that wait for it, after it: here two at once, beside a step of the same time."""
    plan, run = planned(
        plans.a_step("first", finish_seconds=30.0, requests={"cpu": 9000}),
        plans.unplaced_step("stuck", depends_on=("first",), requests={"cpu": 100}),
        plans.unplaced_step("left", depends_on=("stuck",), requests={"cpu": 20}),
        plans.unplaced_step("right", depends_on=("stuck",), requests={"cpu": 3}),
    )
    assert demand_of(plan, run, 30.0).peak == {"cpu": 100, "pods": 2}
    assert demand_of(plan, run, 500.0).peak == {"cpu": 100, "pods": 2}
    assert demand_of(plan, run).peak == {"cpu": 9000, "pods": 2}


def test_a_pod_that_takes_no_time_counts_on_its_own():
    short = plans.a_step("short", start_seconds=5.0, finish_seconds=5.0, requests={"cpu": 700})
    plan, run = planned(short, plans.a_step("long", requests={"cpu": 100, "memory": 1}))
    assert demand_of(plan, run).peak == {"cpu": 700, "memory": 1, "pods": 1}


def test_steps_that_run_now_do_so_together_whatever_was_planned():
    """One after another by the plan, one of them in no time; then the last, as planned."""
    first = {"start_seconds": 0.0, "finish_seconds": 5.0}
    second = {"start_seconds": 5.0, "finish_seconds": 5.0}
    third = {"start_seconds": 5.0, "finish_seconds": 9.0}
    plan, run = planned(
        plans.a_step("first", requests={"cpu": 1}, **first),
        plans.a_step("second", requests={"cpu": 20}, **second),
        plans.a_step("third", requests={"cpu": 300}, **third),
    )
    profile = DemandProfile(plan, run)
    assert profile.left().peak == {"cpu": 300, "pods": 1}
    assert profile.left([], ["first", "second"]).peak == {"cpu": 300, "pods": 2}
    assert profile.left(["first"], ["second", "third"]).peak == {"cpu": 320, "pods": 2}
    assert profile.left([], ["first", "second", "third"]).peak == {"cpu": 321, "pods": 3}


def test_workers_are_held_from_the_start_to_the_end_of_their_step():
    run = a_run(
        a_step("launch", cpu=1, workers=PodGroup(3, {"cpu": 4000, GPU: 1})),
        a_step("evaluate", "launch", cpu=2),
    )
    plan = quick(run, a_cluster(a_node(cpu=8)), assumptions=ROUND_NUMBERS)
    workers = {"cpu": 12000, GPU: 3, "pods": 3}
    assert demand_of(plan, run) == Demand(
        peak={"cpu": 13000, GPU: 3, "pods": 4},
        accelerator_shares={GPU: workers},
        gangs=(PodGroup(1, {"cpu": 1000}), PodGroup(3, {"cpu": 4000, GPU: 1})),
    )
    after = plan.step("launch").finish_seconds
    assert after is not None
    assert demand_of(plan, run, after) == Demand(peak={"cpu": 2000, "pods": 1})


def test_gangs_of_one_shape_are_counted_at_their_peak():
    """Two at once and one later; resources of none, or in another order, are the same shape."""
    gpu, same = {"cpu": 1000, GPU: 1}, {GPU: 1, "memory": 0, "cpu": 1000}
    rows = [
        plans.a_step("a", requests=gpu),
        plans.a_step("b", requests=same),
        plans.a_step("c", requests=gpu, start_seconds=60.0, finish_seconds=70.0),
    ]
    plan = plans.a_plan(*rows)
    run = a_run(*(a_step(name, workers=PodGroup(2, same)) for name in "abc"))
    assert demand_of(plan, run).gangs == (PodGroup(6, gpu),)


def test_accelerators_of_two_kinds_have_a_share_each():
    other = "amd.com/gpu"
    plan, run = planned(
        plans.a_step("a", requests={"cpu": 1000, GPU: 2}),
        plans.a_step("b", requests={"cpu": 500, other: 1}),
        plans.a_step("c", requests={"cpu": 10}),
    )
    demand = demand_of(plan, run)
    assert demand.peak == {"cpu": 1510, GPU: 2, other: 1, "pods": 3}
    assert demand.accelerator_shares == {
        GPU: {"cpu": 1000, GPU: 2, "pods": 1},
        other: {"cpu": 500, other: 1, "pods": 1},
    }


def test_an_empty_plan_needs_nothing():
    plan = replace(plans.a_plan(), steps=())
    assert demand_of(plan, a_run()) == Demand()


def test_amounts_beyond_all_clusters_do_no_harm():
    """An annotation may say anything that Kubernetes can hold."""
    huge = {"memory": 2**63 - 1, "cpu": 2**63 - 1}
    plan = plans.a_plan(*(plans.a_step(name, requests=huge) for name in "ab"))
    run = a_run(*(a_step(name, workers=PodGroup(1000, huge)) for name in "ab"))
    peak = demand_of(plan, run).peak
    assert 2**60 < peak["memory"] < 2**63
    assert peak["pods"] == 2002
