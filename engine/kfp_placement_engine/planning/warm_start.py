"""Plans to start a search from, given in the form in which people and other parts keep them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.plans.plan import Plan
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
    nodes = {step.name: step.node for step in plan.steps}
    starts = {
        step.name: step.start_seconds for step in plan.steps if step.start_seconds is not None
    }
    placement = as_started(lowered, nodes, starts)
    holds = lowered.problem.dispatch == "ordered"
    return replace(placement, not_before=placement.priority) if holds else placement


def as_started(
    lowered: Lowered, nodes: Mapping[str, str | None], starts: Mapping[str, float]
) -> Placement:
    """A run as its steps were placed, in the order in which they started.

    Args:
        lowered: the problem of that run alone.
        nodes: by step; where one is not there or not allowed, a list schedule decides.
        starts: seconds by step; what is missing comes right after its causes.
    """
    run = lowered.runs[0].key
    kept = _kept_nodes(lowered, {(run, name): node for name, node in nodes.items()})
    if (kept < 0).any():
        kept = np.where(kept >= 0, kept, list_schedule(lowered.problem).placement.gene_nodes)
    return Placement(kept, _starts(lowered, starts), np.empty(0))


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


def _starts(lowered: Lowered, known: Mapping[str, float]) -> Floats:
    """[A] starts, of which none is before those of its causes: clocks of nodes may differ."""
    arrays, activities = lowered.problem.arrays, lowered.step_activities[0]
    of_steps = {activities[name]: each for name, each in known.items() if name in activities}
    bounds, before = arrays.predecessors_start.tolist(), arrays.predecessors.tolist()
    starts = [0.0] * lowered.problem.activities
    for activity in lowered.problem.topological.tolist():
        of_causes = [starts[cause] for cause in before[bounds[activity] : bounds[activity + 1]]]
        start = of_steps.get(activity, max(of_causes, default=0.0))
        starts[activity] = max([start, *of_causes])
    return np.array(starts)
