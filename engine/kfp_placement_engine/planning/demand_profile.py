"""The demand of a run: the most that the rest of its plan takes of each resource at any one time.

Pods take what they request from their start to their end; one that ends at a moment frees its room
before another starts. Every resource has its own peak over time. Where branches exclude each other,
the outcome that takes most counts. What runs only after a failure counts as if it always ran, since
whoever writes a run decides whether it fails. Beside it stands the most that the run may take,
whatever time its steps take.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.bounds.precedence import PodName, precedence_of
from kfp_placement_engine.contract.run_request import refuse_more_than_fits
from kfp_placement_engine.lowering.activities import ROOT_NAME
from kfp_placement_engine.lowering.branches import (
    AFTER_FAILURE,
    BranchArrays,
    Path,
    branch_arrays,
    has_branches,
    paths_of_groups,
)
from kfp_placement_engine.lowering.pods import DRIVER_REQUESTS
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.step_names import enclosing
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers
from kfp_placement_engine.problem.use_over_time import Pods, largest_use
from kfp_placement_engine.units.resources import MAX_SUM, Resources, is_extended, without_zeros


class DemandProfile:
    """The room that the pods of a run take over time by its plan."""

    def __init__(self, plan: Plan, graph: RunGraph) -> None:
        """Keep the requests and times of a plan's pods.

        Args:
            plan: plan of the run from its submission on, preferably of this run alone: beside
                others its steps wait, its peaks are too low, and too many runs are admitted.
            graph: run that was planned; it says which steps make workers.
        """
        paths = {step.name: step.branches for step in graph.steps}
        if has_branches(graph):
            groups = paths_of_groups(graph).items()
            paths |= {name or ROOT_NAME: _without_failures(path) for name, path in groups}
        drivers = [
            _Row(
                driver.name,
                driver.start_seconds,
                driver.finish_seconds,
                DRIVER_REQUESTS,
                path=paths.get(driver.name, ()),
            )
            for driver in plan.drivers
        ]
        rows = [*drivers, *_pods_of(plan, graph)]
        self._pods = _table(rows)
        self._owners = tuple(row.owner for row in rows)
        self._drivers = len(drivers)
        self._from_cache = np.array([row.is_cached for row in rows], np.bool_)
        self._precedence = precedence_of(graph)
        node_of = self._precedence.node_of
        self._nodes = [
            node_of[PodName(row.owner, number < self._drivers)] for number, row in enumerate(rows)
        ]

    def left(self, ended: Collection[str] = (), running: Collection[str] = ()) -> Demand:
        """Return the demand of the steps that are left.

        Pods take their room as planned. A step that makes workers holds theirs from its own start
        to its end, and drivers count beside steps. Steps that have ended take nothing, nor do those
        that the plan takes from the cache, nor drivers of steps and groups that have begun. Steps
        that run now take their room together, whatever was planned: from the first moment of what
        is left to their planned end.

        A step without a node does not have times in the plan. It counts as if it ran as soon as the
        steps before it have ended, and so do the steps after it. No run can do with less than its
        largest pod, so a pod that takes no time counts as well, on its own unless it runs now.

        In `most`, no time counts and nothing comes from the cache.

        Args:
            ended: names of the steps that do not need room any more.
            running: names of the steps that run now.

        Raises:
            LimitError: the demand lists more than a RunRequest can hold.
        """
        begun = {group for name in (*ended, *running) for group in (*enclosing(name), name)}
        begun |= {ROOT_NAME} if begun else set()
        over = [
            owner in (begun if row < self._drivers else ended)
            for row, owner in enumerate(self._owners)
        ]
        runs = [owner in running and row >= self._drivers for row, owner in enumerate(self._owners)]
        is_over = np.array(over, np.bool_)
        planned = self._pods.left(is_over | self._from_cache, np.array(runs, np.bool_)).demand()
        most = self._most(~is_over)
        return replace(planned, most={} if most == planned.peak else most)

    def _most(self, left: Booleans) -> dict[str, int]:
        """Return the most that rows may take at once of each resource, whatever their times are."""
        taken = np.zeros((self._precedence.nodes, len(self._pods.names)), np.int64)
        np.add.at(taken, self._nodes, self._pods.amounts * (self._pods.count * left)[:, None])
        columns = zip(self._pods.names, taken.T.tolist(), strict=True)
        scope = self._precedence.scope
        return without_zeros({name: scope.most_at_once(column, {}) for name, column in columns})


def _without_failures(path: Path) -> Path:
    """Return the branches around a driver without that of what runs only after a failure."""
    return tuple(branch for branch in path if branch != AFTER_FAILURE)


class _Row(NamedTuple):
    """Pods that request the same for the same time.

    Attributes:
        owner: name of the step, or of a driver's group.
        start, end: times on the plan's clock.
        requests: requests of each pod.
        pods: number of pods.
        in_gang: whether they work only together with others.
        path: branches around the step, outermost first.
        is_cached: whether the plan takes the step from the cache, so that no pod is made.
    """

    owner: str
    start: float
    end: float
    requests: Resources
    pods: int = 1
    in_gang: bool = False
    path: Path = ()
    is_cached: bool = False


def _pods_of(plan: Plan, graph: RunGraph) -> Iterator[_Row]:
    """Yield the pods of the steps, and the workers that steps make."""
    workers = {step.name: step.workers for step in graph.steps if step.workers}
    ends: dict[str, float] = {}
    # Steps that others wait for come first.
    for step in plan.steps:
        start, end = step.start_seconds, step.finish_seconds
        if step.node is None and step.progress is ProgressState.WAITING:
            before = [ends[name] for name in step.spec.depends_on if name in ends]
            start = max([plan.run.release_seconds, *before])
            end = start if step.is_cached else start + step.phases.duration_seconds
        if start is None or end is None:
            continue
        ends[step.name] = end
        if not step.spec.kind.has_pod:
            continue
        made = workers.get(step.name, ())
        row = _Row(
            step.name,
            start,
            end,
            step.requests,
            in_gang=bool(made),
            path=step.spec.branches,
            is_cached=step.is_cached,
        )
        yield row
        for group in made:
            yield row._replace(requests=group.requests, pods=group.count)


@dataclass(frozen=True)
class _Table:
    """Rows of pods as arrays: P rows, R resources, the last of them `pods`.

    Attributes:
        names: names of the resources.
        start, end: [P] times on the plan's clock.
        count: [P] number of pods.
        amounts: [P, R] amounts that each pod takes.
        in_gang: [P] whether they work only together with others.
        branch: [P] innermost branch around them, -1 = none.
        tree: branches and choices of the run.
    """

    names: tuple[str, ...]
    start: Floats
    end: Floats
    count: Integers
    amounts: Integers
    in_gang: Booleans
    branch: Integers
    tree: BranchArrays

    def left(self, over: Booleans, running: Booleans) -> "_Table":
        """Return the rows that are not over; rows that run start first, and take some time.

        Args:
            over: [P] rows that do not need room any more.
            running: [P] rows that run now.
        """
        kept = ~over
        runs, start, end = running[kept], self.start[kept], self.end[kept]
        first = start.min(initial=np.inf)
        return _Table(
            self.names,
            start=np.where(runs, first, start),
            end=np.where(runs, np.maximum(end, np.nextafter(first, np.inf)), end),
            count=self.count[kept],
            amounts=self.amounts[kept],
            in_gang=self.in_gang[kept],
            branch=self.branch[kept],
            tree=self.tree,
        )

    def demand(self) -> Demand:
        """Return the demand: peaks over time of the rows.

        Raises:
            LimitError: no RunRequest can hold it; this is known before each peak takes its time.
        """
        refuse_more_than_fits(int(self.amounts[:, :-1].any(axis=0).sum()))
        columns = {name: column for column, name in enumerate(self.names) if is_extended(name)}
        shares = {name: self._peaks(self.amounts[:, columns[name]] > 0) for name in columns}
        return Demand(
            peak=self._peaks(np.ones(self.count.size, np.bool_)),
            accelerator_shares={name: share for name, share in shares.items() if share},
            gangs=self._gangs(),
        )

    def _peaks(self, rows: Booleans) -> dict[str, int]:
        """Return the peak of each resource over time, for the pods of some rows."""
        peaks = self._most(rows, self.amounts[rows] * self.count[rows, None]).tolist()
        return without_zeros(dict(zip(self.names, peaks, strict=True)))

    def _gangs(self) -> tuple[PodGroup, ...]:
        shapes, shape_of = np.unique(self.amounts[self.in_gang], axis=0, return_inverse=True)
        refuse_more_than_fits(0, len(shapes))
        rows = np.flatnonzero(self.in_gang)
        groups = []
        for shape, amounts in enumerate(shapes[:, :-1].tolist()):
            same = rows[shape_of.ravel() == shape]
            peak = self._most(same, self.count[same, None])
            requests = dict(zip(self.names[:-1], amounts, strict=True))
            groups.append(PodGroup(int(peak[0]), without_zeros(requests)))
        return tuple(groups)

    def _most(self, rows: Booleans | Integers, taken: Integers) -> Integers:
        """Return the peaks over time of the amounts that some rows take."""
        pods = Pods(self.start[rows], self.end[rows], taken, self.branch[rows])
        most = largest_use(pods, self.tree).amounts.max(axis=0)
        # Rows that take no time are not in the sums.
        return np.asarray(np.maximum(most, taken.max(axis=0, initial=0)), np.int64)


def _table(rows: Sequence[_Row]) -> _Table:
    names = sorted(set().union(*(row.requests for row in rows)) - {"pods"})
    count = np.array([row.pods for row in rows], np.int64)
    columns = [[row.requests.get(name, 0) for row in rows] for name in names]
    # Cut, so that sums stay within int64: beyond, they are more than any cluster has.
    most = MAX_SUM // max(1, int(count.sum()))
    tree = branch_arrays([row.path for row in rows], [0] * len(rows))
    return _Table(
        (*names, "pods"),
        start=np.array([row.start for row in rows], np.float64),
        end=np.array([row.end for row in rows], np.float64),
        count=count,
        amounts=np.minimum(np.array([*columns, [1] * len(rows)], np.int64), most).T,
        in_gang=np.array([row.in_gang for row in rows], np.bool_),
        branch=tree.branch,
        tree=tree,
    )
