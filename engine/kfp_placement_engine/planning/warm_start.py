"""Plans to start a search from, given in the form in which people and other parts keep them."""

from collections.abc import Mapping

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers
from kfp_placement_engine.search.list_scheduling import list_schedule

WarmStart = Mapping[tuple[str, str], str | None]
"""(run key, step name) -> node name."""


def warm_placement(lowered: Lowered, warm_start: WarmStart) -> Placement:
    """The given nodes, and a list schedule's order and nodes for all else.

    Args:
        lowered: the problem.
        warm_start: where steps should go; what is missing, None or not allowed is free.
    """
    listed, kept = list_schedule(lowered.problem).placement, _kept_nodes(lowered, warm_start)
    return Placement(np.where(kept >= 0, kept, listed.gene_nodes), listed.priority, np.empty(0))


def replayed(lowered: Lowered, plan: Plan) -> Placement:
    """The plan of a run, in the same run and cluster or in one that has changed.

    Steps keep their nodes, as far as those are still there and allowed. Where plans may hold a step
    back (`ordered`), they keep the plan's order and start no earlier than it says.

    Args:
        lowered: the problem of that run alone.
        plan: its plan.
    """
    run = lowered.runs[0].key
    nodes = _kept_nodes(lowered, {(run, step.name): step.node for step in plan.steps})
    if (nodes < 0).any():
        nodes = np.where(nodes >= 0, nodes, list_schedule(lowered.problem).placement.gene_nodes)
    starts = _starts(lowered, plan)
    holds = lowered.problem.dispatch == "ordered"
    return Placement(nodes, starts, starts if holds else np.empty(0))


def _kept_nodes(lowered: Lowered, warm_start: WarmStart) -> Integers:
    """[G] the node that each gene is given, -1 where none is given or that one is not allowed."""
    problem, index = lowered.problem, {n: i for i, n in enumerate(lowered.problem.node_names)}
    genes, allowed = problem.arrays.gene.tolist(), problem.arrays.allowed
    nodes = np.full(problem.genes, -1, np.int64)
    for run, activities in zip(lowered.runs, lowered.step_activities, strict=True):
        for name, activity in activities.items():
            node, gene = warm_start.get((run.key, name)), genes[activity]
            if node in index and gene >= 0 and allowed[gene, index[node]]:
                nodes[gene] = index[node]
    return nodes


def _starts(lowered: Lowered, plan: Plan) -> Floats:
    """[A] the planned starts; a pod of which the plan says none comes right after its causes."""
    arrays, planned = lowered.problem.arrays, dict[int, float]()
    for step in plan.steps:
        activity = lowered.step_activities[0].get(step.name)
        if activity is not None and step.start_seconds is not None:
            planned[activity] = step.start_seconds
    bounds, before = arrays.predecessors_start.tolist(), arrays.predecessors.tolist()
    starts = [0.0] * lowered.problem.activities
    for activity in lowered.problem.topological.tolist():
        causes = before[bounds[activity] : bounds[activity + 1]]
        latest = max((starts[cause] for cause in causes), default=0.0)
        starts[activity] = planned.get(activity, latest)
    return np.array(starts)
