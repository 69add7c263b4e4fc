"""Warm starts: earlier plans as placements from which a search starts."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers
from kfp_placement_engine.search.list_scheduling import list_schedule

WarmStart = Mapping[tuple[str, str], str | None]
"""(Run key, step name) -> node name, or None where the step may go anywhere."""


def warm_placement(lowered: Lowered, warm_start: WarmStart) -> Placement:
    """Return a placement with the given nodes; a list schedule decides order and other nodes.

    Args:
        lowered: problem with its origin.
        warm_start: nodes of steps; a step is free if it is missing, or its node is None or not
            allowed.
    """
    listed, kept = list_schedule(lowered.problem).placement, _kept_nodes(lowered, warm_start)
    return Placement(np.where(kept >= 0, kept, listed.gene_nodes), listed.priority)


def placement_by_plan(lowered: Lowered, plan: Plan) -> Placement:
    """Return the placement of a run by its plan, even if run or cluster have changed since.

    Steps keep their nodes, as far as those are still there and allowed; else a list schedule
    decides. A step without a start comes right after the steps before it. Where plans may hold a
    step back (`ordered`), steps keep the plan's order and do not start earlier than planned.

    Args:
        lowered: problem of that run alone.
        plan: plan of the run.
    """
    run = lowered.runs[0].key
    kept = _kept_nodes(lowered, {(run, step.name): step.node for step in plan.steps})
    if (kept < 0).any():
        kept = np.where(kept >= 0, kept, list_schedule(lowered.problem).placement.gene_nodes)
    starts = {
        step.name: step.start_seconds for step in plan.steps if step.start_seconds is not None
    }
    placement = Placement(kept, _starts(lowered, starts))
    holds = lowered.problem.dispatch == "ordered"
    return replace(placement, not_before=placement.priority) if holds else placement


def _kept_nodes(lowered: Lowered, warm_start: WarmStart) -> Integers:
    """Return [G] the given node of each gene, -1 where it is missing or not allowed."""
    problem, index = lowered.problem, {n: i for i, n in enumerate(lowered.problem.node_names)}
    genes, allowed = problem.arrays.gene.tolist(), problem.arrays.allowed
    nodes = np.full(problem.genes, -1, np.int64)
    for run, activities in zip(lowered.runs, lowered.step_activities, strict=True):
        for name, activity in activities.items():
            node, gene = warm_start.get((run.key, name)), genes[activity]
            if node in index and gene >= 0 and allowed[gene, index[node]]:
                nodes[gene] = index[node]
    return nodes


def _starts(lowered: Lowered, seconds_of_step: Mapping[str, float]) -> Floats:
    """Return [A] the starts, none before those of its predecessors: clocks of nodes may differ."""
    arrays, activities = lowered.problem.arrays, lowered.step_activities[0]
    given = {
        activities[name]: seconds for name, seconds in seconds_of_step.items() if name in activities
    }
    bounds, before = arrays.predecessors_start.tolist(), arrays.predecessors.tolist()
    starts = [0.0] * lowered.problem.activities
    for activity in lowered.problem.topological.tolist():
        earlier = [starts[each] for each in before[bounds[activity] : bounds[activity + 1]]]
        start = given.get(activity, max(earlier, default=0.0))
        starts[activity] = max([start, *earlier])
    return np.array(starts)
