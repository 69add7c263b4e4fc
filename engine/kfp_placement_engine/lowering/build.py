"""The entry point of lowering: `lower_runs` makes one placement problem of runs and a cluster."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.activities import Activity, needs_pod
from kfp_placement_engine.lowering.apart import ApartRules
from kfp_placement_engine.lowering.arrays import Parts, problem_arrays
from kfp_placement_engine.lowering.classes import pod_classes
from kfp_placement_engine.lowering.edges import edges_between, topological_order
from kfp_placement_engine.lowering.genes import assign_genes
from kfp_placement_engine.lowering.images import image_table
from kfp_placement_engine.lowering.limits import limits_of
from kfp_placement_engine.lowering.lowered import Lowered, LoweringOptions
from kfp_placement_engine.lowering.remaining import remaining_activities
from kfp_placement_engine.lowering.running import running_pods
from kfp_placement_engine.lowering.tables import class_tables, node_tables
from kfp_placement_engine.lowering.volumes import VolumeRules, volume_rules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.images import image_sizes
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph, StepKind
from kfp_placement_engine.problem.problem import PlacementProblem


def lower(graph: RunGraph, cluster: Cluster, options: LoweringOptions | None = None) -> Lowered:
    """Lower a run on a cluster to a placement problem.

    Raises:
        PlanningError: a cluster without nodes, a run without steps, a cycle or a dangling
            dependency.
    """
    return lower_runs((ActiveRun("", graph),), cluster, options)


def lower_runs(
    runs: Sequence[ActiveRun], cluster: Cluster, options: LoweringOptions | None
) -> Lowered:
    """Lower the rest of several runs to one placement problem, in which time zero is now.

    Steps that have ended are not part of it. `cluster` must not count pods of these runs as load.

    Args:
        runs: runs to plan.
        cluster: cluster to plan on.
        options: options of lowering, or None for the defaults.

    Raises:
        PlanningError: as for `lower`; no run, two of one key, or runs that move data in different
            ways.
    """
    options = options or LoweringOptions()
    _check_problem(runs, cluster)
    activities = remaining_activities(runs)
    volumes = volume_rules(runs, cluster)
    apart = ApartRules(runs)
    parts = _parts(runs, cluster, options, activities, volumes, apart)
    problem = _problem(parts)
    notices = (
        *parts.classes.notices,
        *volumes.notices,
        *apart.notices,
        *parts.genes.notices,
        *_driver_notices(problem),
    )
    return Lowered(
        problem=problem,
        runs=tuple(runs),
        options=options,
        activities=tuple(activities),
        shapes=parts.classes.shapes,
        image_sizes=parts.image_sizes,
        tables=parts.tables,
        volumes=volumes,
        limits=parts.limits.names,
        notices=notices,
    )


def _check_problem(runs: Sequence[ActiveRun], cluster: Cluster) -> None:
    """Refuse runs and clusters that callers may build although no reader does.

    Raises:
        PlanningError: see `lower_runs`.
    """
    if not cluster.nodes:
        raise PlanningError("the cluster has no nodes; nothing can be placed")
    if not runs:
        raise PlanningError("no run is given; there is nothing to place")
    _refuse_twice("run", (run.key for run in runs))
    if len({run.graph.direct_transfers for run in runs}) > 1:
        raise PlanningError(
            "some runs move data through the object store and some from node to node; "
            "plan them apart"
        )
    _refuse_twice("node", (node.name for node in cluster.nodes))
    for node in cluster.nodes:
        rates = {
            "speed": node.speed,
            "bandwidth to the object store": node.store_bytes_per_second,
            "pull rate": node.pull_bytes_per_second,
        }
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise PlanningError(f"node {node.name!r} has {name} {rate}; it must be above 0")
    for run in runs:
        _check_graph(run.graph)


def _refuse_twice(kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise PlanningError(f"{kind} {name!r} appears {count} times; names must differ")


def _check_graph(graph: RunGraph) -> None:
    if not graph.steps:
        raise PlanningError("the run has no steps; there is nothing to place")
    _refuse_twice("step", (step.name for step in graph.steps))
    groups = {group.name for group in graph.groups}
    for group in graph.groups:
        if group.parent not in groups:
            raise PlanningError(
                f"group {group.name!r} is in group {group.parent!r}, which does not exist"
            )
    for step in graph.steps:
        seconds = step.duration_seconds
        if seconds is not None and not 0 <= seconds < math.inf:
            raise PlanningError(f"step {step.name!r} takes {seconds} s; it must be 0 or more")


def _parts(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    options: LoweringOptions,
    activities: list[Activity],
    volumes: VolumeRules,
    apart: ApartRules,
) -> Parts:
    """Lower each part separately."""
    assumptions = options.assumptions
    node_index = {node.name: index for index, node in enumerate(cluster.nodes)}
    has_pod = np.array([needs_pod(activity) for activity in activities], np.bool_)
    running = running_pods(activities, node_index)
    classes = pod_classes(runs, cluster, activities, volumes, apart, options)
    nodes = node_tables(cluster, apart.wholes, classes.resources, assumptions)
    users = [
        [step for run in runs if run.namespace == namespace for step in run.graph.steps]
        for namespace in {run.namespace: None for run in runs}
    ]
    sizes = image_sizes(cluster, users, assumptions.image_bytes)
    images = image_table(cluster, classes.shapes, sizes)
    tables = class_tables(
        cluster,
        classes.shapes,
        classes.requests,
        nodes,
        images,
        volumes.pinned,
        options.latency_tolerance,
        options.weights,
    )
    genes = assign_genes(
        activities,
        classes.of_activity,
        tables,
        volumes,
        planned=np.array([_is_planned(activity, options) for activity in activities], np.bool_),
        waiting=has_pod & ~running.running,
        held=_held_nodes(runs, activities, node_index),
    )
    return Parts(
        runs=runs,
        cluster=cluster,
        options=options,
        activities=activities,
        edges=edges_between(activities),
        has_pod=has_pod,
        running=running,
        classes=classes,
        nodes=nodes,
        image_sizes=sizes,
        images=images,
        tables=tables,
        genes=genes,
        limits=limits_of(runs, activities),
    )


def _problem(parts: Parts) -> PlacementProblem:
    """Return the problem: the arrays, and the names and settings beside them."""
    activities, options = parts.activities, parts.options
    names = tuple([activity.name for activity in activities])
    order = topological_order(parts.edges, names)
    return PlacementProblem(
        arrays=problem_arrays(parts),
        activity_names=names,
        is_driver=np.array([a.step is None and not a.is_join for a in activities], np.bool_),
        is_step=np.array([activity.step is not None for activity in activities], np.bool_),
        unplaceable=parts.genes.unplaceable,
        node_names=tuple(node.name for node in parts.cluster.nodes),
        resource_names=parts.classes.resources,
        latency_ms=parts.tables.latency_ms,
        ruled=np.array([shape.nearest for shape in parts.classes.shapes], np.bool_),
        gene_activities=parts.genes.members,
        topological=order,
        direct_transfers=parts.direct_transfers,
        link_bytes_per_second=options.assumptions.link_bytes_per_second,
        kube_version=options.kube_version,
        objective=options.objective,
        dispatch=options.dispatch,
    )


def _held_nodes(
    runs: Sequence[ActiveRun], activities: Sequence[Activity], node_index: Mapping[str, int]
) -> dict[int, int]:
    """Return activity -> index of the node that its step keeps, if the cluster has that node."""
    held: dict[int, int] = {}
    if not any(run.held for run in runs):
        return held
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
    """Return whether the plan decides the pod's node, and not the default scheduler."""
    step = activity.step
    if step is None or step.kind is not StepKind.CONTAINER:
        return False
    if activity.running is not None or step.assumed_cached:
        return False
    return bool(step.scheduler) or not options.marked_only
