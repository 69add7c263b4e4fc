"""The arrays of a problem, put together from what was lowered piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kfp_placement_engine.lowering.activities import (
    Activity,
    edge_arrays,
    needs_pod,
    reversed_edges,
)
from kfp_placement_engine.lowering.classes import PodClasses
from kfp_placement_engine.lowering.genes import Genes
from kfp_placement_engine.lowering.iterations import limited_iterations
from kfp_placement_engine.lowering.lowered import LoweringOptions
from kfp_placement_engine.lowering.running import Running, with_remaining_work
from kfp_placement_engine.lowering.tables import ClassTables, NodeTables
from kfp_placement_engine.lowering.work import image_table, transfer_edges, work_of
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.problem.problem import Booleans, ProblemArrays

_Arrays: TypeAlias = dict[str, NDArray[Any]]
"""By their names in `ProblemArrays`, which refuses one too many, twice or missing."""


@dataclass(frozen=True)
class Parts:
    """The pieces of a problem.

    Attributes:
        runs, cluster, options: what is lowered, and how.
        activities: the pods that have not ended, run after run.
        running: those of them that run already.
        classes: classes of pods that look alike.
        nodes: what the nodes are and have.
        tables: what each class makes of each node.
        genes: what the search decides.
    """

    runs: Sequence[ActiveRun]
    cluster: Cluster
    options: LoweringOptions
    activities: list[Activity]
    running: Running
    classes: PodClasses
    nodes: NodeTables
    tables: ClassTables
    genes: Genes


def problem_arrays(parts: Parts) -> ProblemArrays:
    """Put the arrays together, contiguous as the kernel reads them."""
    arrays = ProblemArrays(
        **_pods(parts),
        **_work(parts),
        **_edges(parts),
        **_iterations(parts),
        **_nodes(parts.nodes),
        **_classes(parts),
        **_genes(parts.genes),
        run_weight=np.array([run.weight for run in parts.runs], np.float64),
    )
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays._asdict().items()}
    return arrays._replace(**contiguous)


def _pods(parts: Parts) -> _Arrays:
    """What a pod takes, when it is ready, and where it runs already."""
    classes, running = parts.classes, parts.running
    scored = np.array([shape.scored_requests for shape in classes.shapes], np.int64).reshape(-1, 2)
    release = np.array([max(0.0, run.release_seconds) for run in parts.runs])
    run_of = np.array([activity.run for activity in parts.activities], np.int64)
    return {
        "requests": classes.requests[classes.of_activity],
        "scored_requests": scored[classes.of_activity],
        "virtual": _no_pod(parts) | parts.genes.unplaceable | running.on_unknown_node,
        "class_of": classes.of_activity,
        "release_seconds": np.where(running.running, 0.0, release[run_of]),
        "run": run_of,
        "fixed_node": running.fixed_node,
        "is_running": running.fixed_node >= 0,
    }


def _work(parts: Parts) -> _Arrays:
    """What a pod has left to pull, read, run and write, and the images that it takes."""
    assumptions, class_of = parts.options.assumptions, parts.classes.of_activity
    work, images = with_remaining_work(
        work_of([run.graph for run in parts.runs], parts.activities, assumptions),
        image_table(parts.cluster, parts.classes.shapes, assumptions),
        class_of,
        parts.activities,
        parts.running,
        parts.nodes,
        assumptions,
    )
    return {
        "duration_seconds": np.where(_no_pod(parts), 0.0, work.duration_seconds),
        "scales": work.scales,
        "image": np.where(work.pulls, images.of_class[class_of], -1),
        "download_bytes": work.download_bytes,
        "upload_bytes": work.upload_bytes,
        "image_bytes": images.size_bytes,
        "image_present": images.present,
        "image_scored": images.scored,
    }


def _no_pod(parts: Parts) -> Booleans:
    return np.array([not needs_pod(activity) for activity in parts.activities], np.bool_)


def _edges(parts: Parts) -> _Arrays:
    """What must have ended before, and the data that comes from there."""
    before = [activity.predecessors for activity in parts.activities]
    predecessors_start, predecessors = edge_arrays(before)
    successors_start, successors = edge_arrays(reversed_edges(before))
    graphs = [run.graph for run in parts.runs]
    return {
        "predecessors_start": predecessors_start,
        "predecessors": predecessors,
        "successors_start": successors_start,
        "successors": successors,
        "transfer_bytes": transfer_edges(graphs, parts.activities, parts.options.assumptions),
    }


def _iterations(parts: Parts) -> _Arrays:
    limits = limited_iterations(parts.runs, parts.activities)
    return {
        "iteration": limits.iteration,
        "entry_iteration": limits.entry_iteration,
        "iteration_parent": limits.parent,
        "iteration_loop": limits.loop,
        "iteration_size": limits.size,
        "iteration_started": limits.started,
        "loop_parallelism": limits.parallelism,
    }


def _nodes(nodes: NodeTables) -> _Arrays:
    return {
        "free": nodes.free,
        "allocatable": nodes.allocatable,
        "scored_used": nodes.scored_used,
        "speed": nodes.speed,
        "store_rate": nodes.store_rate,
        "pull_rate": nodes.pull_rate,
    }


def _classes(parts: Parts) -> _Arrays:
    """What pods that look alike are to the nodes."""
    shapes, requests, tables = parts.classes.shapes, parts.classes.requests, parts.tables
    affinity = [bool(shape.affinity.preferred) for shape in shapes]
    return {
        "feasible": tables.feasible,
        "preferred_taints": tables.preferred_taints,
        "preferred_weight": tables.preferred_weight,
        "containers": np.array([shape.containers for shape in shapes], np.int64),
        "scores_affinity": np.array(affinity, np.bool_),
        "scores_balance": (requests[:, 0] > 0) | (requests[:, 1] > 0),
        "latency_excess_ms": tables.latency_excess_ms,
        "assignment_gain": tables.assignment_gain,
    }


def _genes(genes: Genes) -> _Arrays:
    """What the search decides, and the volumes that bind it."""
    claims_start, claims = edge_arrays(genes.claims)
    return {
        "gene": genes.gene,
        "allowed": genes.allowed,
        "sticky": genes.sticky,
        "claims_start": claims_start,
        "claims": claims,
        "exclusive": genes.exclusive,
    }
