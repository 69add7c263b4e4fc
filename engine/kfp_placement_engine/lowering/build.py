"""Put the pieces of a lowered problem together."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.assumptions import Assumptions
from kfp_placement_engine.cluster import Cluster, Node
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.activities import (
    Activity,
    activities_of,
    edge_arrays,
    limited_iterations,
    needs_pod,
    reversed_edges,
    topological_order,
)
from kfp_placement_engine.lowering.genes import Genes, assign_genes
from kfp_placement_engine.lowering.latency import latency_rule
from kfp_placement_engine.lowering.pods import PodShape, driver_shape, resource_names, step_shape
from kfp_placement_engine.lowering.tables import (
    ClassTables,
    NodeTables,
    amounts,
    class_tables,
    node_tables,
)
from kfp_placement_engine.lowering.volumes import VolumeRules, volume_rules
from kfp_placement_engine.lowering.work import image_table, transfer_edges, work_of
from kfp_placement_engine.problem import Integers, PlacementProblem, ProblemArrays
from kfp_placement_engine.run_graph import Notice, RunGraph, StepKind


@dataclass(frozen=True)
class LoweringOptions:
    """How a run becomes a problem; fields as in `planning.PlanOptions`."""

    assumptions: Assumptions = field(default_factory=Assumptions)
    dispatch: str = "ready"
    objective: str = "completion"
    kube_version: tuple[int, int] = (1, 36)
    marked_only: bool = False
    latency_ruled_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A problem and what is needed to explain it.

    Attributes:
        problem: the problem.
        activities: [A] the pods.
        shapes: [K] the shapes of pods.
        tables: the class tables.
        volumes: the volume rules.
        notices: what to tell people.
    """

    problem: PlacementProblem
    activities: tuple[Activity, ...]
    shapes: tuple[PodShape, ...]
    tables: ClassTables
    volumes: VolumeRules
    notices: tuple[Notice, ...]


def lower(graph: RunGraph, cluster: Cluster, options: LoweringOptions | None = None) -> Lowered:
    """Lower a run on a cluster to a placement problem.

    Raises:
        PlanningError: a cluster without nodes, a run without steps, a cycle or a dangling
            dependency.
    """
    options = options or LoweringOptions()
    _check(graph, cluster)
    activities = activities_of(graph)
    shapes, class_of, notices = _shapes(graph, cluster, activities, options)
    resources = resource_names(shapes)
    class_requests = _class_requests(shapes, resources)
    nodes = node_tables(cluster, resources, options.assumptions)
    volumes = volume_rules(graph, cluster)
    tables = class_tables(cluster, shapes, class_requests, nodes, volumes.pinned)
    planned = np.array([_is_planned(activity, options) for activity in activities], np.bool_)
    genes = assign_genes(activities, class_of, tables, volumes, planned)
    arrays = _arrays(
        graph,
        cluster,
        options,
        activities,
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
        direct_transfers=graph.direct_transfers,
        link_bytes_per_second=options.assumptions.link_bytes_per_second,
        kube_version=options.kube_version,
        objective=options.objective,
        dispatch=options.dispatch,
    )
    told = (*notices, *volumes.notices, *genes.notices, *_driver_notices(problem))
    return Lowered(problem, tuple(activities), tuple(shapes), tables, volumes, told)


def _check(graph: RunGraph, cluster: Cluster) -> None:
    """Refuse what no reader makes but a caller may."""
    if not cluster.nodes:
        raise PlanningError("the cluster has no nodes; nothing can be placed")
    if not graph.steps:
        raise PlanningError("the run has no steps; nothing is to be placed")
    names = Counter([step.name for step in graph.steps])
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise PlanningError(f"step {twice[0]!r} appears {names[twice[0]]} times; names must differ")
    nodes = Counter([node.name for node in cluster.nodes])
    twice = [name for name, count in nodes.items() if count > 1]
    if twice:
        raise PlanningError(f"node {twice[0]!r} appears {nodes[twice[0]]} times; names must differ")
    for node in cluster.nodes:
        _check_node(node)
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


def _check_node(node: Node) -> None:
    rates = {
        "speed": node.speed,
        "bandwidth to the object store": node.store_bytes_per_second,
        "pull rate": node.pull_bytes_per_second,
    }
    for name, rate in rates.items():
        if rate is not None and not 0 < rate < math.inf:
            raise PlanningError(f"node {node.name!r} has {name} {rate}; it must be above 0")


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
    if step is None or step.kind is not StepKind.CONTAINER or step.assumed_cached:
        return False
    return bool(step.scheduler) or not options.marked_only


def _shapes(
    graph: RunGraph, cluster: Cluster, activities: Sequence[Activity], options: LoweringOptions
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
            shape = step_shape(graph, activity.step, rule)
        class_of[number] = index_of.setdefault(shape, len(index_of))
    return list(index_of), class_of, list(notices.values())


def _class_requests(shapes: Sequence[PodShape], resources: Sequence[str]) -> Integers:
    return amounts([{**dict(shape.requests), "pods": 1} for shape in shapes], resources)


def _arrays(
    graph: RunGraph,
    cluster: Cluster,
    options: LoweringOptions,
    activities: list[Activity],
    classes: tuple[list[PodShape], Integers, Integers],
    nodes: NodeTables,
    tables: ClassTables,
    genes: Genes,
) -> ProblemArrays:
    shapes, class_of, class_requests = classes
    work = work_of(graph, activities, options.assumptions)
    images = image_table(cluster, shapes, options.assumptions)
    predecessors = [activity.predecessors for activity in activities]
    predecessors_start, predecessor_values = edge_arrays(predecessors)
    successors_start, successors = edge_arrays(reversed_edges(predecessors))
    claims_start, claims = edge_arrays(genes.claims)
    limits = limited_iterations(graph.groups, activities)
    no_pod = np.array([not needs_pod(activity) for activity in activities], np.bool_)
    scored = np.array([shape.scored_requests for shape in shapes], np.int64)
    arrays = ProblemArrays(
        requests=class_requests[class_of],
        scored_requests=scored[class_of],
        duration_seconds=np.where(no_pod, 0.0, work.duration_seconds),
        scales=work.scales,
        virtual=no_pod | genes.unplaceable,
        gene=genes.gene,
        class_of=class_of,
        image=np.where(work.pulls, images.of_class[class_of], -1),
        download_bytes=work.download_bytes,
        upload_bytes=work.upload_bytes,
        release_seconds=np.zeros(len(activities)),
        run=np.zeros(len(activities), np.int64),
        predecessors_start=predecessors_start,
        predecessors=predecessor_values,
        transfer_bytes=transfer_edges(graph, activities, options.assumptions),
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
        run_weight=np.ones(1),
    )
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays._asdict().items()}
    return arrays._replace(**contiguous)
