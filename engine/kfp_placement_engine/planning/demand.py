"""What the rest of a plan takes at most: the demand of its run.

Pods take what they request from their start to their end; one that ends at a moment frees its room
before another starts. Every resource has its own peak over time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.lowering.pods import DRIVER_REQUESTS
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.plan import Plan, PlannedStep
from kfp_placement_engine.model.resources import MAX_SUM, Resources, is_extended, without_zeros
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers


def demand_of(plan: Plan, graph: RunGraph, elapsed_seconds: float = 0.0) -> Demand:
    """The most that the rest of a plan takes at any one time.

    Steps that have ended, and those from the cache, take nothing; those that run already take their
    room from now on. A step that makes workers holds theirs from its own start to its end.

    A step without a node has no times in the plan. It counts as if it ran as soon as all that it
    waits for has ended, and so do the steps that wait for it. No run can do with less than its
    largest pod, so a pod that takes no time counts as well, on its own.

    Args:
        plan: of the run.
        graph: the run that was planned; it says which steps make workers.
        elapsed_seconds: from when on, on the plan's clock; what ends before is over.
    """
    pods = _Pods()
    pods.start += [driver.start_seconds for driver in plan.drivers]
    pods.end += [driver.finish_seconds for driver in plan.drivers]
    pods.requests += [DRIVER_REQUESTS] * len(plan.drivers)
    workers = {step.name: step.workers for step in graph.steps if step.workers is not None}
    _add_steps(pods, plan.steps, workers, max(elapsed_seconds, plan.release_seconds))
    return pods.table(elapsed_seconds).demand()


def _add_steps(
    pods: "_Pods",
    steps: Iterable[PlannedStep],
    workers: Mapping[str, PodGroup],
    earliest_seconds: float,
) -> None:
    """Add the pods of steps, and those that steps make.

    Args:
        pods: what they are added to.
        steps: in an order in which those that others wait for come first.
        workers: by name of the step that makes them.
        earliest_seconds: no step without times starts before.
    """
    ends: dict[str, float] = {}
    for step in steps:
        start, end = step.start_seconds, step.finish_seconds
        if step.node is None and step.progress is ProgressState.WAITING:
            before = [ends[name] for name in step.depends_on if name in ends]
            start = max([earliest_seconds, *before])
            end = start if step.cached else start + step.duration_seconds
        if start is None or end is None:
            continue
        ends[step.name] = end
        if step.name in workers and not step.cached:
            pods.add_gang(start, end, step.requests, workers[step.name])
        elif not step.cached:
            pods.start.append(start)
            pods.end.append(end)
            pods.requests.append(step.requests)


@dataclass
class _Pods:
    """Collects pods, row by row: those of a row request the same for the same time.

    Attributes:
        start, end: on the plan's clock.
        requests: of each pod.
        gangs: rows whose pods work only together with others, and how many pods they are; other
            rows are one pod.
    """

    start: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    requests: list[Resources] = field(default_factory=list)
    gangs: dict[int, int] = field(default_factory=dict)

    def add_gang(self, start: float, end: float, requests: Resources, workers: PodGroup) -> None:
        """Add the pod of a step and its workers."""
        for group in (PodGroup(1, requests), workers):
            self.gangs[len(self.requests)] = group.count
            self.start.append(start)
            self.end.append(end)
            self.requests.append(group.requests)

    def table(self, elapsed_seconds: float) -> "_Table":
        """What is not over, as arrays."""
        names = sorted(set().union(*self.requests) - {"pods"})
        count = np.ones(len(self.requests), np.int64)
        count[list(self.gangs)] = list(self.gangs.values())
        in_gang = np.zeros(len(self.requests), np.bool_)
        in_gang[list(self.gangs)] = True
        columns = [[each.get(name, 0) for each in self.requests] for name in names]
        # Cut, so that sums stay within int64: beyond, they are more than any cluster has.
        most = MAX_SUM // max(1, int(count.sum()))
        amounts = np.minimum(np.array([*columns, [1] * len(count)], np.int64), most).T
        start, end = np.array(self.start, np.float64), np.array(self.end, np.float64)
        left = (end > elapsed_seconds) | (start >= elapsed_seconds)
        start = np.maximum(start, elapsed_seconds)
        rows = start[left], end[left], count[left], amounts[left], in_gang[left]
        return _Table((*names, "pods"), *rows)


@dataclass(frozen=True)
class _Table:
    """The same as arrays: P rows, R resources, the last of them `pods`.

    Attributes:
        names: of the resources.
        start, end: [P] on the plan's clock.
        count: [P] how many pods.
        amounts: [P, R] what each of them takes.
        in_gang: [P] they work only together with others.
    """

    names: tuple[str, ...]
    start: Floats
    end: Floats
    count: Integers
    amounts: Integers
    in_gang: Booleans

    def demand(self) -> Demand:
        """The peaks of all that is asked for."""
        columns = {name: column for column, name in enumerate(self.names) if is_extended(name)}
        shares = {name: self._peaks(self.amounts[:, columns[name]] > 0) for name in columns}
        return Demand(
            peak=self._peaks(np.ones(self.count.size, np.bool_)),
            accelerator_shares={name: share for name, share in shares.items() if share},
            gangs=self._gangs(),
        )

    def _peaks(self, rows: Booleans) -> dict[str, int]:
        """Of the pods of some rows, by resource."""
        taken = self.amounts[rows] * self.count[rows, None]
        peaks = _most(self.start[rows], self.end[rows], taken).tolist()
        return without_zeros(dict(zip(self.names, peaks, strict=True)))

    def _gangs(self) -> tuple[PodGroup, ...]:
        shapes, shape_of = np.unique(self.amounts[self.in_gang], axis=0, return_inverse=True)
        rows = np.flatnonzero(self.in_gang)
        groups = []
        for shape, amounts in enumerate(shapes[:, :-1].tolist()):
            same = rows[shape_of.ravel() == shape]
            peak = _most(self.start[same], self.end[same], self.count[same, None])
            requests = dict(zip(self.names[:-1], amounts, strict=True))
            groups.append(PodGroup(int(peak[0]), without_zeros(requests)))
        return tuple(groups)


def _most(start: Floats, end: Floats, taken: Integers) -> Integers:
    """[R] peaks over time of what rows take, [P, R]."""
    lasting = start < end
    times = np.concatenate([end[lasting], start[lasting]])
    changes = np.concatenate([-taken[lasting], taken[lasting]])
    # A stable sort keeps ends before starts at the same time.
    used = changes[np.argsort(times, kind="stable")].cumsum(axis=0)
    # What takes no time is in no sum.
    most: Integers = np.maximum(used.max(axis=0, initial=0), taken.max(axis=0, initial=0))
    return most
