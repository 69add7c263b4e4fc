"""What if something about the run or its cluster were different: planned from the plan there is.

The search starts from the present plan, so that more of something does not come out as a loss only
because the search was short. `best_changes` tries single changes automatically.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kfp_placement_engine.model.changes import (
    SHARED,
    AddNodes,
    Change,
    ClaimAccess,
    HoldImage,
    LoopLimit,
    ResizeNodes,
)
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.objective import ENDS_EARLIEST
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.progress import Progress, no_progress
from kfp_placement_engine.model.resources import is_less
from kfp_placement_engine.model.run_graph import Group, RunGraph
from kfp_placement_engine.model.what_if import ChangedPlan, end_seconds, gain_seconds
from kfp_placement_engine.planning.applied_changes import with_changes
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run

_SAME_MS = 1e-6
"""Sums of round trips that differ by less are equal."""

_GENERATIONS = 50
"""A loss by more of something is searched for at least as long before it is believed."""


def what_if(
    graph: RunGraph,
    cluster: Cluster,
    present: Plan,
    changes: Sequence[Change],
    options: PlanOptions | None = None,
    progress: Progress = no_progress,
) -> ChangedPlan:
    """Plan a run as it is after changes.

    More of something can make a run end later where steps start as soon as they fit: then another
    step may be the first to take the room (R. L. Graham, Bounds on Multiprocessing Timing
    Anomalies, 1969). A search that is too short finds such losses where there are none, so it goes
    on for longer before one is reported.

    Args:
        graph: the run.
        cluster: the cluster.
        present: the plan of the run on the cluster, made with the same options.
        changes: what changes, made one after another.
        options: how to plan.
        progress: told how far planning is.

    Raises:
        ChangeError: a node, image or claim that is not there; or no node is left.
        UnknownLoopError: a loop that the run does not have.
        UnknownStepError: a step that the run does not have.
    """
    changed_graph, changed_cluster = with_changes(graph, cluster, changes)
    options = options or PlanOptions()
    replan = partial(
        plan_run, changed_graph, changed_cluster, progress=progress, warm_start=present
    )
    plan = replan(options)
    gain = _gain(present, plan)
    is_only_more = gain < 0 and _is_only_more(graph, cluster, changes)
    if is_only_more and _differ_in_time_alone(present, plan) and not plan.exact:
        plan = replan(_longer(options))
        gain = _gain(present, plan)
    is_anomaly = is_only_more and gain < 0 and _differ_in_time_alone(present, plan)
    return ChangedPlan(tuple(changes), plan, gain, is_anomaly)


def _gain(present: Plan, plan: Plan) -> float:
    return gain_seconds(end_seconds(present.figures), end_seconds(plan.figures))


def _differ_in_time_alone(present: Plan, plan: Plan) -> bool:
    """Whether nothing that takes precedence over the end of the run explains a later one."""
    one, other = present.figures, plan.figures
    return (
        plan.objective in ENDS_EARLIEST
        and one.unplaced == other.unplaced
        and abs(one.latency_excess_ms - other.latency_excess_ms) <= _SAME_MS
        and one.latency_ms <= other.latency_ms + _SAME_MS
    )


def _longer(options: PlanOptions) -> PlanOptions:
    """With the same seed it finds what the shorter search did, and more."""
    if options.generations is None:
        return replace(options, budget_seconds=2 * options.budget_seconds)
    return replace(options, generations=max(_GENERATIONS, 2 * options.generations))


def _is_only_more(graph: RunGraph, cluster: Cluster, changes: Sequence[Change]) -> bool:
    """Whether the changes give a run more of something, and take nothing from it."""
    for change in changes:
        after_graph, after_cluster = with_changes(graph, cluster, (change,))
        match change:
            case AddNodes() | HoldImage():
                pass
            case ClaimAccess():
                if change.mode != SHARED:
                    return False
            case ResizeNodes():
                pairs = zip(cluster.nodes, after_cluster.nodes, strict=True)
                if any(_is_smaller(after, before) for before, after in pairs):
                    return False
            case LoopLimit():
                groups = zip(graph.groups, after_graph.groups, strict=True)
                if any(_limit(after) < _limit(before) for before, after in groups):
                    return False
            case _:
                return False
        graph, cluster = after_graph, after_cluster
    return True


def _is_smaller(node: Node, before: Node) -> bool:
    return node.speed < before.speed or is_less(node.allocatable, before.allocatable)


def _limit(group: Group) -> float:
    return group.parallelism or float("inf")
