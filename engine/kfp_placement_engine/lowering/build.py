"""Put the pieces of a lowered problem together."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from kfp_placement_engine.lowering.activities import (
    Activity,
    edge_arrays,
    joined_iterations,
    limited_iterations,
    needs_pod,
    reversed_edges,
    topological_order,
)
from kfp_placement_engine.lowering.checks import check_problem
from kfp_placement_engine.lowering.genes import Genes, assign_genes
from kfp_placement_engine.lowering.latency import latency_rule
from kfp_placement_engine.lowering.lowered import Lowered, LoweringOptions
from kfp_placement_engine.lowering.pods import PodShape, driver_shape, resource_names, step_shape
from kfp_placement_engine.lowering.remaining import remaining_activities
from kfp_placement_engine.lowering.running import Running, running_pods, with_remaining_work
from kfp_placement_engine.lowering.tables import (
    ClassTables,
    NodeTables,
    amounts,
    class_tables,
    node_tables,
)
from kfp_placement_engine.lowering.volumes import VolumeRules, volume_rules
from kfp_placement_engine.lowering.work import image_table, transfer_edges, work_of
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import Notice, RunGraph, StepKind
from kfp_placement_engine.problem.problem import Integers, PlacementProblem, ProblemArrays


def lower(graph: RunGraph, cluster: Cluster, options: LoweringOptions | None = None) -> Lowered:
    """Lower a run on a cluster to a placement problem.

    Raises:
        PlanningError: a cluster without nodes, a run without steps, a cycle or a dangling
            dependency.
    """
    return lower_runs((ActiveRun("", graph),), cluster, options)


def lower_runs(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    options: LoweringOptions | None = None,
) -> Lowered:
    """Lower what is left of several runs to one placement problem; time zero is now.

    Steps that have ended are no part of it. `cluster` must not count pods of these runs as load.

    Args:
        runs: the runs to plan.
        cluster: the cluster.
        options: how.

    Raises:
        PlanningError: as for `lower`; no run, two of one key, or runs that move data in different
            ways.
    """
    options = options or LoweringOptions()
    check_problem(runs, cluster)
    activities = remaining_activities(runs)
    volumes = volume_rules(runs, cluster)
    shapes, class_of, notices = _shapes(runs, cluster, activities, volumes, options)
    resources = resource_names(shapes)
    class_requests = _class_requests(shapes, resources)
    nodes = node_tables(cluster, resources, options.assumptions)
    tables = class_tables(
        cluster, shapes, class_requests, nodes, volumes.pinned, options.latency_tolerance
    )
    planned = np.array([_is_planned(activity, options) for activity in activities], np.bool_)
    node_index = {node.name: index for index, node in enumerate(cluster.nodes)}
    held = _held_nodes(runs, activities, node_index)
    genes = assign_genes(activities, class_of, tables, volumes, planned, held)
    arrays = _arrays(
        runs,
        cluster,
        options,
        activities,
        running_pods(activities, node_index),
        (shapes, class_of, class_requests),
        nodes,
        tables,
        genes,
    )
    problem = PlacementProblem(
        arrays=arrays,
        activity_names=tuple(activity.name for activity in activities),
        is_driver=np.array([a.step is None and not a.is_join for a in activities], np.bool_),
        is_step=np.array([activity.step is not None for activity in activities], np.bool_),
        unplaceable=genes.unplaceable,
        node_names=tuple(node.name for node in cluster.nodes),
        resource_names=resources,
        latency_ms=tables.latency_ms,
        ruled=np.array([shape.nearest for shape in shapes], np.bool_),
        gene_activities=genes.members,
        topological=np.array(
            topological_order([a.predecessors for a in activities], [a.name for a in activities]),
            np.int64,
        ),
        direct_transfers=runs[0].graph.direct_transfers,
        link_bytes_per_second=options.assumptions.link_bytes_per_second,
        kube_version=options.kube_version,
        objective=options.objective,
        dispatch=options.dispatch,
    )
    told = (*notices, *volumes.notices, *genes.notices, *_driver_notices(problem))
    return Lowered(
        problem=problem,
        runs=tuple(runs),
        activities=tuple(activities),
        shapes=tuple(shapes),
        tables=tables,
        volumes=volumes,
        notices=told,
    )


def _held_nodes(
    runs: Sequence[ActiveRun], activities: Sequence[Activity], node_index: Mapping[str, int]
) -> dict[int, int]:
    """Activity -> index of the node that its step keeps; unknown nodes hold nothing."""
    held: dict[int, int] = {}
    for index, activity in enumerate(activities):
        if activity.step is not None:
            node = runs[activity.run].held.get(activity.step.name, "")
            if node in node_index:
                held[index] = node_index[node]
    return held


def _driver_notices(problem: PlacementProblem) -> list[Notice]:
    stuck = problem.is_driver & problem.unplaceable
    if not stuck.any():
        return []
    return [
        Notice(
            "drivers-unschedulable",
            f"no node can take KFP's driver pods ({int(stuck.sum())} of them); the run would not "
            "start: is every node tainted, cordoned or full?",
        )
    ]


def _is_planned(activity: Activity, options: LoweringOptions) -> bool:
    """Whether the plan decides where the pod goes; all others stay with the default scheduler."""
    step = activity.step
    if step is None or step.kind is not StepKind.CONTAINER:
        return False
    if activity.running is not None or step.assumed_cached:
        return False
    return bool(step.scheduler) or not options.marked_only


def _shapes(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    activities: Sequence[Activity],
    volumes: VolumeRules,
    options: LoweringOptions,
) -> tuple[list[PodShape], Integers, list[Notice]]:
    """Distinct shapes, the class of each activity, and notices about latency rules (one a task)."""
    index_of: dict[PodShape, int] = {}
    class_of = np.zeros(len(activities), np.int64)
    notices: dict[tuple[str, str], Notice] = {}
    driver = driver_shape()
    for number, activity in enumerate(activities):
        shape = driver
        if activity.step is not None:
            rule, notice = latency_rule(activity.step, cluster, options.latency_ruled_types)
            if notice is not None:
                notices.setdefault((notice.code, notice.step), notice)
            keys = volumes.keys[activity.run]
            claims = tuple(keys[use.claim] for use in activity.step.claims)
            shape = step_shape(runs[activity.run].graph, activity.step, rule, claims)
        class_of[number] = index_of.setdefault(shape, len(index_of))
    return list(index_of), class_of, list(notices.values())


def _class_requests(shapes: Sequence[PodShape], resources: Sequence[str]) -> Integers:
    return amounts([{**dict(shape.requests), "pods": 1} for shape in shapes], resources)


def _arrays(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    options: LoweringOptions,
    activities: list[Activity],
    running: Running,
    classes: tuple[list[PodShape], Integers, Integers],
    nodes: NodeTables,
    tables: ClassTables,
    genes: Genes,
) -> ProblemArrays:
    shapes, class_of, class_requests = classes
    graphs = [run.graph for run in runs]
    images = image_table(cluster, shapes, options.assumptions)
    work, images = with_remaining_work(
        work_of(graphs, activities, options.assumptions),
        images,
        class_of,
        activities,
        running,
        nodes,
        options.assumptions,
    )
    predecessors = [activity.predecessors for activity in activities]
    predecessors_start, predecessor_values = edge_arrays(predecessors)
    successors_start, successors = edge_arrays(reversed_edges(predecessors))
    claims_start, claims = edge_arrays(genes.claims)
    run_of = np.array([activity.run for activity in activities], np.int64)
    bounds = np.searchsorted(run_of, np.arange(len(runs) + 1)).tolist()
    limits = joined_iterations(
        [
            limited_iterations(graph.groups, activities[first:last])
            for graph, (first, last) in zip(graphs, itertools.pairwise(bounds), strict=True)
        ]
    )
    release = np.array([max(0.0, run.release_seconds) for run in runs])
    no_pod = np.array([not needs_pod(activity) for activity in activities], np.bool_)
    scored = np.array([shape.scored_requests for shape in shapes], np.int64).reshape(-1, 2)
    arrays = ProblemArrays(
        requests=class_requests[class_of],
        scored_requests=scored[class_of],
        duration_seconds=np.where(no_pod, 0.0, work.duration_seconds),
        scales=work.scales,
        virtual=no_pod | genes.unplaceable | running.elsewhere,
        gene=genes.gene,
        class_of=class_of,
        image=np.where(work.pulls, images.of_class[class_of], -1),
        download_bytes=work.download_bytes,
        upload_bytes=work.upload_bytes,
        release_seconds=np.where(running.running, 0.0, release[run_of]),
        run=run_of,
        fixed_node=running.fixed_node,
        is_running=running.fixed_node >= 0,
        predecessors_start=predecessors_start,
        predecessors=predecessor_values,
        transfer_bytes=transfer_edges(graphs, activities, options.assumptions),
        successors_start=successors_start,
        successors=successors,
        claims_start=claims_start,
        claims=claims,
        exclusive=genes.exclusive,
        iteration=limits.iteration,
        entry_iteration=limits.entry_iteration,
        iteration_parent=limits.parent,
        iteration_loop=limits.loop,
        iteration_size=limits.size,
        iteration_started=limits.started,
        loop_parallelism=limits.parallelism,
        free=nodes.free,
        allocatable=nodes.allocatable,
        scored_used=nodes.scored_used,
        speed=nodes.speed,
        store_rate=nodes.store_rate,
        pull_rate=nodes.pull_rate,
        feasible=tables.feasible,
        preferred_taints=tables.preferred_taints,
        preferred_weight=tables.preferred_weight,
        containers=np.array([shape.containers for shape in shapes], np.int64),
        scores_affinity=np.array([bool(shape.affinity.preferred) for shape in shapes], np.bool_),
        scores_balance=(class_requests[:, 0] > 0) | (class_requests[:, 1] > 0),
        latency_excess_ms=tables.latency_excess_ms,
        assignment_gain=tables.assignment_gain,
        allowed=genes.allowed,
        sticky=genes.sticky,
        image_bytes=images.size_bytes,
        image_present=images.present,
        image_scored=images.scored,
        run_weight=np.array([run.weight for run in runs], np.float64),
    )
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays._asdict().items()}
    return arrays._replace(**contiguous)
