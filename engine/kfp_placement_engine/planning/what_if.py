"""What if something about the run or its cluster were different: planned from the plan there is.

The search starts from the present plan, so that more of something does not come out as a loss only
because the search was short. `best_changes` tries single changes automatically.
"""

from collections.abc import Sequence

from kfp_placement_engine.model.changes import Change
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.progress import Progress, no_progress
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.what_if import ChangedPlan, end_seconds, gain_seconds
from kfp_placement_engine.planning.applied_changes import with_changes
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run


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
    step may be the first to get the room (R. L. Graham, Bounds on Multiprocessing Timing Anomalies,
    1969).

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
    plan = plan_run(changed_graph, changed_cluster, options, progress, warm_start=present)
    gain = gain_seconds(end_seconds(present.figures), end_seconds(plan.figures))
    return ChangedPlan(tuple(changes), plan, gain)
