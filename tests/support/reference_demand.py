"""Demand of the rest of a run, computed again by looking at every moment and outcome of its plan.

It shares nothing with the product, which sorts arrays of starts and ends.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.concurrency import Branch
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.plans.plan import Plan

DRIVER = {"cpu": 100, "memory": 64 * 2**20}
"""Amounts that KFP's driver pods request."""


@dataclass(frozen=True)
class Held:
    """Pods, and from when to when they take their room by the plan; whether they run now."""

    start: float
    end: float
    count: int
    requests: Mapping[str, int]
    in_gang: bool = False
    running: bool = False
    branches: tuple[Branch, ...] = ()

    def at(self, moment: float, first: float) -> int:
        """Return how many of the pods there are; running ones are there from the first moment."""
        if self.running:
            return self.count if moment == first or moment < self.end else 0
        return self.count if self.start <= moment < self.end else 0

    @property
    def taken(self) -> dict[str, int]:
        """Amounts that each pod takes."""
        return {name: amount for name, amount in self.requests.items() if amount} | {"pods": 1}


def begun(graph: RunGraph, names: Collection[str]) -> set[str]:
    """The steps of these names, and all groups around them."""
    steps = {step.name: step for step in graph.steps}
    parents = {group.name: group.parent for group in graph.groups}
    groups = set(names)
    for name in names:
        group = steps[name].group
        while group:
            groups.add(group)
            group = parents[group]
        groups.add("root")
    return groups


def branches_of_drivers(graph: RunGraph) -> dict[str, tuple[Branch, ...]]:
    """The branches of each driver: its step's, or those that all steps around its group share."""
    shared: dict[str, set[Branch]] = {}
    parents = {group.name: group.parent for group in graph.groups}
    for step in graph.steps:
        group = step.group
        while True:
            shared.setdefault(group, set(step.branches)).intersection_update(step.branches)
            if not group:
                break
            group = parents[group]
    around = {name: tuple(shared.get(parent, ())) for name, parent in parents.items()}
    return around | {step.name: step.branches for step in graph.steps}


def outcomes(pods: list[Held]) -> Iterator[list[Held]]:
    """Yield the pods of each way in which a run can go on, one branch of each choice."""
    names: dict[str, set[str]] = {}
    for each in pods:
        for branch in each.branches:
            names.setdefault(branch.choice, set()).add(branch.name)
    for taken in product(*names.values()):
        chosen = {Branch(*each) for each in zip(names, taken, strict=True)}
        yield [each for each in pods if chosen.issuperset(each.branches)]


def held(
    plan: Plan, graph: RunGraph, ended: Collection[str], running: Collection[str]
) -> Iterator[Held]:
    """Yield all pods of a plan that are not over."""
    over = begun(graph, {*ended, *running})
    around = branches_of_drivers(graph)
    for driver in plan.drivers:
        if driver.name not in over:
            branches = around.get(driver.name, ())
            yield Held(driver.start_seconds, driver.finish_seconds, 1, DRIVER, branches=branches)
    ends: dict[str, float] = {}
    for step, planned in zip(graph.steps, plan.steps, strict=True):
        if planned.progress is ProgressState.DONE:
            continue
        start, end = planned.start_seconds, planned.finish_seconds
        if planned.progress is ProgressState.WAITING and planned.node is None:
            before = (ends[name] for name in step.depends_on if name in ends)
            start = max([plan.run.release_seconds, *before])
            end = start + (0.0 if planned.is_cached else planned.phases.duration_seconds)
        assert start is not None
        assert end is not None
        ends[step.name] = end
        if planned.is_cached or step.name in ended:
            continue
        runs = step.name in running
        inside = step.branches
        yield Held(start, end, 1, planned.requests, bool(step.workers), runs, inside)
        for group in step.workers:
            yield Held(start, end, group.count, group.requests, True, runs, inside)


def most(pods: list[Held], first: float) -> dict[str, int]:
    """The peak of each resource in any outcome."""
    peak: Counter[str] = Counter()
    for outcome in outcomes(pods):
        peak |= Counter(most_of_outcome(outcome, first))
    return dict(peak)


def most_of_outcome(pods: list[Held], first: float) -> dict[str, int]:
    """The peak of each resource: at each moment the sum, at least what each group takes alone."""
    peak: Counter[str] = Counter()
    for each in pods:
        peak |= Counter({name: each.count * amount for name, amount in each.taken.items()})
    for moment in {first, *(each.start for each in pods)}:
        used: Counter[str] = Counter()
        for each in pods:
            if count := each.at(moment, first):
                used.update({name: count * amount for name, amount in each.taken.items()})
        peak |= used
    return dict(peak)


def reference_demand(
    plan: Plan, graph: RunGraph, ended: Collection[str] = (), running: Collection[str] = ()
) -> Demand:
    """The demand, by looking at every moment at which something starts."""
    pods = list(held(plan, graph, ended, running))
    first = min((each.start for each in pods), default=0.0)
    devices = {name for each in pods for name in each.taken if "/" in name}
    shapes = {tuple(sorted(each.taken.items())) for each in pods if each.in_gang}
    gangs = []
    for shape in shapes:
        same = [
            each for each in pods if each.in_gang and tuple(sorted(each.taken.items())) == shape
        ]
        requests = {name: amount for name, amount in shape if name != "pods"}
        gangs.append(PodGroup(most(same, first)["pods"], requests))
    return Demand(
        peak=most(pods, first),
        accelerator_shares={
            name: most([each for each in pods if name in each.taken], first) for name in devices
        },
        gangs=tuple(gangs),
    )


def comparable(demand: Demand) -> Any:
    """Return a whole demand in a comparable form, with gangs in any order."""
    gangs = sorted((sorted(group.requests.items()), group.count) for group in demand.gangs)
    return dict(demand.peak), dict(demand.accelerator_shares), gangs
