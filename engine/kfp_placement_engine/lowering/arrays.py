"""The arrays of a problem, put together from its lowered parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.branches import branch_arrays
from kfp_placement_engine.lowering.classes import PodClasses
from kfp_placement_engine.lowering.edges import Edges, edge_arrays
from kfp_placement_engine.lowering.genes import Genes
from kfp_placement_engine.lowering.images import Images
from kfp_placement_engine.lowering.limits import Limits
from kfp_placement_engine.lowering.lowered import LoweringOptions
from kfp_placement_engine.lowering.running import Running, with_remaining_work
from kfp_placement_engine.lowering.tables import ClassTables, NodeTables
from kfp_placement_engine.lowering.work import transfer_edges, work_of
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.images import ImageSize
from kfp_placement_engine.problem.problem import Booleans, ProblemArrays


@dataclass(frozen=True)
class Parts:
    """The lowered parts of a problem.

    Attributes:
        runs: runs that are lowered.
        cluster: cluster that is lowered.
        options: options of lowering.
        activities: activities that have not ended, run after run.
        edges: dependencies between the activities.
        has_pod: [A] whether the activity needs a pod, see `activities.needs_pod`.
        running: pods that run already.
        classes: classes of pods that look alike to a node.
        nodes: arrays of the nodes.
        image_sizes: sizes of the runs' images, by canonical reference.
        images: sizes of the images by number, and the nodes that hold them.
        tables: tables of classes by nodes.
        genes: placement decisions.
        limits: limits of what is under way at once.
    """

    runs: Sequence[ActiveRun]
    cluster: Cluster
    options: LoweringOptions
    activities: list[Activity]
    edges: Edges
    has_pod: Booleans
    running: Running
    classes: PodClasses
    nodes: NodeTables
    image_sizes: Mapping[str, ImageSize]
    images: Images
    tables: ClassTables
    genes: Genes
    limits: Limits

    @property
    def direct_transfers(self) -> bool:
        """True if data moves from node to node; all runs of a problem agree on that."""
        return self.runs[0].graph.direct_transfers


def problem_arrays(parts: Parts) -> ProblemArrays:
    """Return the arrays of a problem, each contiguous, as the kernel needs them."""
    arrays = _arrays(parts)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays._asdict().items()}
    return arrays._replace(**contiguous)


def _arrays(parts: Parts) -> ProblemArrays:
    activities, classes, class_of = parts.activities, parts.classes, parts.classes.of_activity
    assumptions = parts.options.assumptions
    # The work that is left, and the images with those of running pods as present.
    work, images = with_remaining_work(
        work_of(
            activities,
            [run.driver_seconds for run in parts.runs],
            assumptions,
            direct_transfers=parts.direct_transfers,
        ),
        parts.images,
        class_of,
        activities,
        parts.running,
        parts.nodes,
        assumptions,
    )
    claims_start, claims = edge_arrays(parts.genes.claims)
    run_of = np.array([activity.run for activity in activities], np.int64)
    release = np.array([max(0.0, run.release_seconds) for run in parts.runs])
    scored = np.array([shape.scored_requests for shape in classes.shapes], np.int64).reshape(-1, 2)
    return ProblemArrays(
        requests=classes.requests[class_of],
        scored_requests=scored[class_of],
        duration_seconds=np.where(_takes_time(parts), work.duration_seconds, 0.0),
        scales=work.scales,
        virtual=~parts.has_pod | parts.genes.unplaceable | parts.running.on_unknown_node,
        gene=parts.genes.gene,
        class_of=class_of,
        image=np.where(work.pulls, images.of_class[class_of], -1),
        download_bytes=work.download_bytes,
        upload_bytes=work.upload_bytes,
        release_seconds=np.where(parts.running.running, 0.0, release[run_of]),
        run=run_of,
        fixed_node=parts.running.fixed_node,
        is_running=parts.running.fixed_node >= 0,
        **parts.edges._asdict(),
        **parts.nodes._asdict(),
        **parts.limits.arrays._asdict(),
        **branch_arrays([each.path for each in activities], run_of.tolist())._asdict(),
        transfer_bytes=transfer_edges(
            activities, parts.options.assumptions, direct_transfers=parts.direct_transfers
        ),
        claims_start=claims_start,
        claims=claims,
        exclusive=parts.genes.exclusive,
        feasible=parts.tables.feasible,
        preferred_taints=parts.tables.preferred_taints,
        preferred_weight=parts.tables.preferred_weight,
        containers=np.array([shape.containers for shape in classes.shapes], np.int64),
        scores_affinity=np.array(
            [bool(shape.affinity.preferred) for shape in classes.shapes], np.bool_
        ),
        scores_balance=(classes.requests[:, 0] > 0) | (classes.requests[:, 1] > 0),
        latency_excess_ms=parts.tables.latency_excess_ms,
        assignment_gain=parts.tables.assignment_gain,
        allowed=parts.genes.allowed,
        sticky=parts.genes.sticky,
        image_bytes=images.size_bytes,
        image_present=images.present,
        image_scored=images.scored,
        run_weight=np.array([run.weight for run in parts.runs], np.float64),
    )


def _takes_time(parts: Parts) -> Booleans:
    """Return [A] whether time passes for the activity: it has a pod, or is a pause."""
    pauses = [
        activity.step is not None and not activity.step.kind.has_pod
        for activity in parts.activities
    ]
    return np.asarray(parts.has_pod | np.array(pauses, np.bool_))
