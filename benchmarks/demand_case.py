"""One measurement of demand: the peak of a plan beside coarser measures of what its run needs."""

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import Cluster, Node, RunGraph, plan_run, read_run_file
from kfp_placement_engine.contract.quota_units import quota_units
from kfp_placement_engine.lowering.pods import DRIVER_REQUESTS
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.planning.demand_profile import DemandProfile
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.plan import Plan

RESOURCES = ("cpu", "memory")
GPU = "nvidia.com/gpu"
_WORKERS = PodGroup(3, {"cpu": 4000, "memory": 16 * 2**30, GPU: 1})
_WORKERS_EVERY = 20
_NODES, _ROOM = 10, {"cpu": 64_000, "memory": 512 * 2**30, "pods": 110, GPU: 8}
_REPEATS = 5
_ENDED_SHARES = (0.25, 0.5, 0.75)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Outcome:
    """One run; shares are of its peak, CPU first, then memory.

    Attributes:
        name: name of the run.
        steps: number of steps.
        peak: CPU in milli-CPU and memory in bytes.
        gang_pods: pods that work only together, at their peak.
        shapes: number of different requests of its pods.
        sums: all steps together, workers included.
        per_shape: the sum of the peaks of each shape.
        units: requests of the podSets for Kueue.
        pod_sets: number of these podSets.
        plan_seconds: CPU time.
        profile_seconds, demand_seconds: CPU time of making the profile and of the demand; of
            several the shortest.
        is_as_reference: the demand is the reference's, of the whole run and when a quarter, half
            and three quarters of its steps have ended.
        is_covered: podSets request no less than the peak, and not a unit more.
    """

    name: str
    steps: int
    peak: tuple[int, ...]
    gang_pods: int
    shapes: int
    sums: tuple[float, ...]
    per_shape: tuple[float, ...]
    units: tuple[float, ...]
    pod_sets: int
    plan_seconds: float
    profile_seconds: float
    demand_seconds: float
    is_as_reference: bool
    is_covered: bool


_Pods = tuple[float, float, Counter[str]]
"""Start, end and total requests of some pods."""


def made_up(shape: Shape, *, with_workers: bool = False) -> Outcome:
    """Measure a made-up run.

    Args:
        shape: shape of the run and its cluster.
        with_workers: every twentieth step makes three pods of 4 CPU, 16 GiB and a GPU.
    """
    run = made_up_run(shape)
    if with_workers:
        steps = (
            step if number % _WORKERS_EVERY else replace(step, workers=(_WORKERS,))
            for number, step in enumerate(run.steps)
        )
        run = replace(run, steps=tuple(steps))
    name = f"{shape.kind} on {shape.nodes} nodes{', workers' if with_workers else ''}"
    return measure(name, run, made_up_cluster(shape))


def recorded(path: Path) -> Outcome:
    """Measure the run of a file, on ten equal nodes."""
    cluster = Cluster(tuple(Node(f"node-{number + 1}", _ROOM) for number in range(_NODES)))
    return measure(path.stem, read_run_file(path), cluster)


def measure(name: str, run: RunGraph, cluster: Cluster) -> Outcome:
    """Plan a run at once, and compare its demand with what others would reserve."""
    started = time.process_time()
    plan = plan_run(run, cluster, PlanOptions(quick=True, compare=()))
    planned = time.process_time() - started
    profile, profile_seconds = _timed(lambda: DemandProfile(plan, run))
    demand, demand_seconds = _timed(profile.left)
    peak = [demand.peak.get(resource, 0) for resource in RESOURCES]
    by_shape = _per_shape(plan, run)
    steps = _total(taken for _, _, taken in list(_pods_of(plan, run))[len(plan.drivers) :])
    requested = _requested(demand)

    def shares(amounts: Counter[str]) -> tuple[float, ...]:
        pairs = zip(RESOURCES, peak, strict=True)
        return tuple(amounts[resource] / (most or 1) for resource, most in pairs)

    return Outcome(
        name=name,
        steps=len(run.steps),
        peak=tuple(peak),
        gang_pods=sum(each.count for each in demand.gangs),
        shapes=len(by_shape),
        sums=shares(steps),
        per_shape=shares(_total(by_shape)),
        units=shares(requested),
        pod_sets=len(quota_units(demand)),
        plan_seconds=planned,
        profile_seconds=profile_seconds,
        demand_seconds=demand_seconds,
        is_as_reference=_is_exact(profile, plan, run) and not plan.unschedulable,
        is_covered=_is_covered(demand, requested),
    )


def _timed(work: Callable[[], ResultT]) -> tuple[ResultT, float]:
    times = []
    for _ in range(_REPEATS):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return result, min(times)


def _is_exact(profile: DemandProfile, plan: Plan, run: RunGraph) -> bool:
    """Return whether demands equal those of the reference, of the whole run and of later rests."""
    times = [
        (row.name, row.start_seconds, row.finish_seconds)
        for row in plan.steps
        if row.start_seconds is not None and row.finish_seconds is not None
    ]
    ends = sorted(end for _, _, end in times)
    names: list[tuple[set[str], set[str]]] = [(set(), set())]
    for share in _ENDED_SHARES if ends else ():
        moment = ends[int(share * (len(ends) - 1))]
        ended = {name for name, _, end in times if end <= moment}
        names.append((ended, {name for name, start, end in times if start <= moment < end}))
    return all(
        profile.left(ended, running).peak == peak_of(_pods_of(plan, run, ended, running))
        for ended, running in names
    )


def _pods_of(
    plan: Plan, run: RunGraph, ended: Collection[str] = (), running: Collection[str] = ()
) -> Iterator[_Pods]:
    """Return the pods that a plan still has: drivers first, then steps with their workers.

    Args:
        plan: plan of the run.
        run: planned run.
        ended: names of the steps that have ended.
        running: names of the steps that run now: they are there from the beginning.
    """
    over = _begun(run, {*ended, *running})
    driver = Counter({**DRIVER_REQUESTS, "pods": 1})
    for each in plan.drivers:
        if each.name not in over:
            yield each.start_seconds, each.finish_seconds, driver
    for step, row in zip(run.steps, plan.steps, strict=True):
        if row.node is None or row.start_seconds is None or row.finish_seconds is None:
            continue
        if step.name in ended:
            continue
        start = -math.inf if step.name in running else row.start_seconds
        for group in (PodGroup(1, row.requests), *step.workers):
            taken = {name: group.count * amount for name, amount in group.requests.items()}
            yield start, row.finish_seconds, Counter({**taken, "pods": group.count})


def _begun(run: RunGraph, names: Collection[str]) -> set[str]:
    """Return these steps and all groups around them, whose drivers have ended."""
    parents = {group.name: group.parent for group in run.groups}
    begun = {*names, *(step.group for step in run.steps if step.name in names)}
    while more := {parents[name] for name in begun if name in parents} - begun:
        begun |= more
    return begun


def peak_of(pods: Iterable[_Pods]) -> Counter[str]:
    """Return the peak of each resource, pod after pod in the order of their starts."""
    used: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    running: list[tuple[float, int, Counter[str]]] = []
    for number, (start, end, taken) in enumerate(sorted(pods, key=lambda each: each[:2])):
        while running and running[0][0] <= start:
            used.subtract(heapq.heappop(running)[2])
        used.update(taken)
        heapq.heappush(running, (end, number, taken))
        peak |= used
    return peak


def _per_shape(plan: Plan, run: RunGraph) -> list[Counter[str]]:
    """Return the peak of the pods of each shape, as with a podSet for each shape."""
    by_shape: dict[tuple[tuple[str, int], ...], list[_Pods]] = {}
    for start, end, taken in _pods_of(plan, run):
        count = taken["pods"]
        shape = tuple(sorted((name, amount // count) for name, amount in taken.items()))
        by_shape.setdefault(shape, []).append((start, end, taken))
    return [peak_of(pods) for pods in by_shape.values()]


def _total(amounts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each)
    return total


def _requested(demand: Demand) -> Counter[str]:
    """Return the total requests of the podSets for Kueue."""
    return _total(
        Counter({name: each.count * amount for name, amount in each.requests.items()})
        for each in quota_units(demand)
    )


def _is_covered(demand: Demand, requested: Counter[str]) -> bool:
    units: Counter[str] = Counter()
    for each in quota_units(demand):
        units |= Counter(each.requests)
    return all(
        peak <= requested[name] < peak + units[name]
        for name, peak in demand.peak.items()
        if name != "pods"
    )
