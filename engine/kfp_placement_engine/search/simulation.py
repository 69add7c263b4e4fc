"""The simulation of a placement or a policy: all figures come from its schedules."""

from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    owners,
)

DISPATCH_POLICIES = {"ready": native.READY, "ordered": native.ORDERED}
"""Dispatch -> policy of the simulation."""

_NONE = np.empty(0)
_AS_NUMBERED = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class TieBreak:
    """One way in which kube-scheduler may decide among nodes of equal score.

    Attributes:
        listed: [N] nodes in the order in which kube-scheduler lists them; empty = as numbered.
            Since Kubernetes 1.35 a heap over that list decides.
        draw: seed, 0 or more, of the random choice that decided until Kubernetes 1.34.
    """

    listed: Integers = field(default_factory=lambda: _AS_NUMBERED)
    draw: int = 0


AS_LISTED = TieBreak()
"""Tie-break in simulations of plans, where only the nodes of driver pods depend on it."""


@dataclass(frozen=True)
class Schedule:
    """Result of a simulation: where and when each activity runs.

    Attributes:
        start: [A] time of the bind, in seconds after submission; infinite if it never starts.
        begin: [A] time at which its volumes are attached.
        end: [A] end of the upload.
        node: [A] node index, -1 = none.
        pull_seconds: [A] time of waiting for the image.
        cause: [A] activity whose end let this one start, -1 = none.
        terms: [5] terms of the objective, see `fitness`.
    """

    start: Floats
    begin: Floats
    end: Floats
    node: Integers
    pull_seconds: Floats
    cause: Integers
    terms: Floats

    @property
    def finished(self) -> Booleans:
        """[A] Whether the activity ends."""
        return np.asarray(np.isfinite(self.end))

    @property
    def makespan_seconds(self) -> float:
        """End of the last activity that ends; 0 if none does."""
        ends = self.end[self.finished]
        return float(ends.max()) if ends.size else 0.0


def simulate(problem: PlacementProblem, placement: Placement) -> Schedule:
    """Simulate a placement under the problem's dispatch.

    Raises:
        PlanningError: the placement's arrays do not fit the problem.
    """
    nodes, priority, not_before = _arrays(problem, placement)
    return _simulate(problem, DISPATCH_POLICIES[problem.dispatch], nodes, priority, not_before)


def _arrays(problem: PlacementProblem, placement: Placement) -> tuple[Integers, Floats, Floats]:
    """Return a placement's arrays for the kernel: nodes, priorities, and earliest starts.

    Raises:
        PlanningError: the placement does not fit the problem.
    """
    nodes = np.ascontiguousarray(placement.gene_nodes, np.int64)
    priority = np.ascontiguousarray(placement.priority, np.float64)
    not_before = np.ascontiguousarray(placement.not_before, np.float64)
    shape = (problem.activities,)
    if (
        nodes.shape != (problem.genes,)
        or ((nodes < 0) | (nodes >= problem.nodes)).any()
        or priority.shape != shape
        or (not_before.size and not_before.shape != shape)
    ):
        raise PlanningError("the placement belongs to another problem")
    return nodes, priority, not_before


def simulate_policy(problem: PlacementProblem, policy: int, ties: TieBreak = AS_LISTED) -> Schedule:
    """Simulate a policy without a placement (kube-default, strict FIFO)."""
    return _simulate(problem, policy, ties=ties)


def simulate_list(problem: PlacementProblem, priority: Floats) -> Schedule:
    """Simulate list scheduling: smallest priority first, each on the node where it ends first."""
    return _simulate(problem, native.GREEDY, priority=priority)


def simulate_fullest(problem: PlacementProblem, priority: Floats) -> Schedule:
    """Simulate packing: each node takes the ready steps that fill it most, ties by priority."""
    return _simulate(problem, native.FULLEST, priority=priority)


def simulate_planned(problem: PlacementProblem, gene_nodes: Integers, priority: Floats) -> Schedule:
    """Simulate backfilling: ready steps start by priority on their planned nodes, if they fit."""
    return _simulate(problem, native.BACKFILL, gene_nodes, priority)


def _simulate(
    problem: PlacementProblem,
    policy: int,
    planned: Integers | None = None,
    priority: Floats | None = None,
    not_before: Floats = _NONE,
    ties: TieBreak = AS_LISTED,
) -> Schedule:
    nodes = np.zeros(problem.genes, np.int64) if planned is None else np.ascontiguousarray(planned)
    order = np.zeros(problem.activities) if priority is None else np.ascontiguousarray(priority)
    listed = np.ascontiguousarray(ties.listed, np.int64)
    return Schedule(**native.simulate(problem, policy, nodes, order, not_before, listed, ties.draw))


def slot_starts(problem: PlacementProblem, schedule: Schedule) -> Floats:
    """Return as [A] when activities take their slots if a schedule becomes an `ordered` plan.

    With direct transfers, a planned step takes its slot when its inputs have arrived. In schedules
    of other policies a step may take its slot earlier.
    """
    if not problem.direct_transfers or problem.dispatch != "ordered":
        return schedule.start
    arrays, starts = problem.arrays, schedule.start.copy()
    to, before = owners(arrays.predecessors_start), arrays.predecessors
    apart = schedule.node[before] != schedule.node[to]
    moving = np.where(apart, arrays.transfer_bytes / problem.link_bytes_per_second, 0.0)
    np.maximum.at(starts, to, schedule.end[before] + moving)
    return starts
