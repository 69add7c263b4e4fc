"""The plan of a run after changes to the run or its cluster, in comparison with the present plan.

The search starts from the present plan, so that a short search does not report a larger cluster as
slower. `best_changes` tries single changes automatically.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.objective import ENDS_EARLIEST
from kfp_placement_engine.model.run_graph import Group, RunGraph
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run
from kfp_placement_engine.planning.what_if.applied_changes import with_changes
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.plans.what_if import ChangedPlan, end_seconds, gain_seconds
from kfp_placement_engine.plans.what_if_changes import SHARED, Change
from kfp_placement_engine.units.resources import is_less

_SAME_MS = 1e-6
"""Largest difference of sums of round trips that counts as none."""

_GENERATIONS = 50
"""Smallest number of generations before a loss is believed."""


def plan_with_changes(
    graph: RunGraph,
    cluster: Cluster,
    present: Plan,
    changes: Sequence[Change],
    options: PlanOptions,
    progress: Progress = no_progress,
) -> ChangedPlan:
    """Plan a run as it is after changes.

    More of something can make a run end later where steps start as soon as they fit: then another
    step may be the first to take the room (R. L. Graham, Bounds on Multiprocessing Timing
    Anomalies, 1969). A search that is too short finds such losses where there are none, so it goes
    on for longer before one is reported.

    Args:
        graph: run before the changes.
        cluster: cluster before the changes.
        present: plan of the run on the cluster, made with the same options.
        changes: changes, made one after another.
        options: options of the planner.
        progress: callback with the progress of planning.

    Raises:
        EngineError: as for `with_changes` and `plan_run`.
    """
    after_graph, after_cluster = with_changes(graph, cluster, changes)
    takes_nothing = _may_do_no_less(after_graph, graph) and _has_no_less(after_cluster, cluster)
    replan = partial(plan_run, after_graph, after_cluster, progress=progress, warm_start=present)
    plan = replan(options)
    if takes_nothing and _is_later(present, plan) and not plan.search.exact:
        plan = replan(_longer(options))
    gain = gain_seconds(end_seconds(present.figures), end_seconds(plan.figures))
    return ChangedPlan(tuple(changes), plan, gain, takes_nothing and _is_later(present, plan))


def _is_later(present: Plan, plan: Plan) -> bool:
    """Return whether the run ends later, although nothing that counts before its end got better."""
    before, after = present.figures, plan.figures
    return (
        end_seconds(before) < end_seconds(after)
        and plan.search.objective in ENDS_EARLIEST
        and before.unplaced == after.unplaced
        and abs(before.latency_excess_ms - after.latency_excess_ms) <= _SAME_MS
        and before.latency_ms <= after.latency_ms + _SAME_MS
    )


def _may_do_no_less(graph: RunGraph, before: RunGraph) -> bool:
    """Return whether the steps are the same, and no loop or volume is limited more than before."""
    groups = zip(graph.groups, before.groups, strict=True)
    claims = zip(graph.claims, before.claims, strict=True)
    return (
        graph.steps == before.steps
        and all(_limit(after) >= _limit(group) for after, group in groups)
        and all(after == claim or after.access_modes == (SHARED,) for after, claim in claims)
    )


def _limit(group: Group) -> float:
    return group.parallelism or math.inf


def _has_no_less(cluster: Cluster, before: Cluster) -> bool:
    nodes = {node.name: node for node in cluster.nodes}
    return all(
        (after := nodes.get(node.name)) is not None
        and after.speed >= node.speed
        and not is_less(after.allocatable, node.allocatable)
        for node in before.nodes
    )


def _longer(options: PlanOptions) -> PlanOptions:
    """Return options for a longer search.

    If generations limit both, it repeats the shorter one and goes on, so it finds no worse plan.
    """
    if options.generations is None:
        return replace(options, budget_seconds=2 * options.budget_seconds)
    return replace(options, generations=max(_GENERATIONS, 2 * options.generations))
