"""The simulation of a placement or a policy: all figures come from its schedules."""

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem, owners
from kfp_placement_engine.problem.schedule import AS_LISTED, Schedule, TieBreak

DISPATCH_POLICIES = {"ready": Policy.READY, "ordered": Policy.ORDERED}
"""Dispatch -> policy of the simulation."""


def simulate(problem: PlacementProblem, placement: Placement) -> Schedule:
    """Simulate a placement under the problem's dispatch.

    Raises:
        PlanningError: the placement's arrays do not fit the problem.
    """
    policy = DISPATCH_POLICIES[problem.dispatch]
    return native.simulate(problem, policy, _fitting(problem, placement), AS_LISTED)


def _fitting(problem: PlacementProblem, placement: Placement) -> Placement:
    """Return a placement with arrays that the kernel can read.

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
    return Placement(nodes, priority, not_before)


def simulate_policy(
    problem: PlacementProblem, policy: Policy, ties: TieBreak = AS_LISTED
) -> Schedule:
    """Simulate a policy without a placement (kube-default, strict FIFO)."""
    return _simulate(problem, policy, priority=np.zeros(problem.activities), ties=ties)


def simulate_list(problem: PlacementProblem, priority: Floats) -> Schedule:
    """Simulate list scheduling: smallest priority first, each on the node where it ends first."""
    return _simulate(problem, Policy.GREEDY, priority=priority)


def simulate_fullest(problem: PlacementProblem, priority: Floats) -> Schedule:
    """Simulate packing: each node takes the ready steps that fill it most, ties by priority."""
    return _simulate(problem, Policy.FULLEST, priority=priority)


def simulate_planned(problem: PlacementProblem, gene_nodes: Integers, priority: Floats) -> Schedule:
    """Simulate backfilling: ready steps start by priority on their planned nodes, if they fit."""
    placement = Placement(np.ascontiguousarray(gene_nodes), np.ascontiguousarray(priority))
    return native.simulate(problem, Policy.BACKFILL, placement, AS_LISTED)


def _simulate(
    problem: PlacementProblem, policy: Policy, priority: Floats, ties: TieBreak = AS_LISTED
) -> Schedule:
    """Simulate a policy that decides on the nodes itself."""
    no_nodes = np.zeros(problem.genes, np.int64)
    placement = Placement(no_nodes, np.ascontiguousarray(priority))
    return native.simulate(problem, policy, placement, ties)


def slot_starts(problem: PlacementProblem, schedule: Schedule) -> Floats:
    """Return [A] when each activity takes its slot if a schedule becomes an `ordered` plan.

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
